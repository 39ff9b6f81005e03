"""Folds the journal of a flow's run into the history of its review.

Only the events that change a flow's state count, and of the state only what a reader of the review
needs. Nothing is validated again: the engine wrote these values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from signoff.core import events as ev
from signoff.core.delta import Delta, apply
from signoff.review.flow.coverage import constraint_results, run_coverage
from signoff.review.flow.state import blocking_severities, critiques_in
from signoff.review.pure.artifact import UNNAMED, ArtifactVersion
from signoff.review.pure.critique import Overall, Pursuit, Verdict
from signoff.review.pure.diff import findings_of, label_key
from signoff.review.pure.finding import Finding
from signoff.review.pure.history import (
    ArtifactChanged,
    IssuesReported,
    Judgment,
    ReviewHistory,
    ReviewNews,
    Round,
    Version,
)

ARTIFACT = "artifact.md"
"""The name of an artifact that is a single text, unless the flow names another."""


class FlowHistory:
    """Follows one run, event by event."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        """`description` is the definition that the run was started with."""
        self._description = description
        source = description.get("source") or {}
        self._goal = str((source.get("goal") or {}).get("goal", ""))
        self._constraints = {each["id"]: each for each in source.get("constraints") or ()}
        output = (source.get("flow") or {}).get("output") or {}
        self._block_on = blocking_severities(description)
        steps = (source.get("flow") or {}).get("workflow") or ()
        self._fixes = any(each.get("step") in ("refine", "generate") for each in steps)
        self._file_name = str(output.get("filename") or ARTIFACT)
        self._step = ""
        self._round = 1
        self._values: dict[str, Any] = {}
        """The latest values of the keys in `_KEPT`."""
        self._versions: list[Version] = []
        self._rounds: dict[int, Round] = {}
        self._issues: dict[str, Mapping[str, Any]] = {}
        self._items: list[Any] = []
        """The results of reviews in a step that has not ended."""
        self._held_back = False
        """Whether the result of the current step waits for a human, and was followed already."""

    def follow(self, events: Iterable[ev.Event]) -> FlowHistory:
        """Applies events in order."""
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: ev.Event) -> Sequence[ReviewNews]:
        """Applies one event; returns what it adds to the review."""
        match event:
            case ev.RunStarted(entry=entry):
                self._step = entry
            case ev.ItemFinished(result=result):
                self._items.append(result)
                return [self._reported(each) for each in critiques_in(result)]
            # The step has done its work, but a human decides what follows. What it found is shown
            # at once, and must not be shown again when the step ends.
            case ev.StepWorked(delta=delta) | ev.Escalated(delta=delta) if delta:
                self._held_back = True
                return self._step_done(delta, event.at)
            case ev.AttemptFailed() | ev.AttemptOpened() | ev.AttemptReplaced():
                self._held_back = False
                self._items.clear()
            case ev.StepFinished():
                news = [] if self._held_back else self._step_done(event.delta, event.at)
                self._held_back = False
                self._items.clear()
                self._step, self._round = event.to or "", event.round
                return news
        return []

    @property
    def history(self) -> ReviewHistory:
        """The review so far."""
        values = self._values
        entries = (values.get("findings") or {}).get("entries", ())
        counts = {each["round"]: each for each in values.get("rounds") or ()}
        numbers = sorted({*self._rounds, *counts})
        verdict = values.get("last_adjudication") or {}
        findings = tuple(map(Finding.from_json, entries))
        content = self._versions[-1].content if self._versions else ArtifactVersion({})
        return ReviewHistory(
            goal=self._goal,
            file_name=self._file_name,
            constraints=self._constraints,
            versions=tuple(self._versions),
            rounds=tuple(
                replace(self._rounds.get(number) or Round(number), counts=counts.get(number, {}))
                for number in numbers
            ),
            findings=findings,
            issues=self._issues,
            block_on=self._block_on,
            warnings=tuple(values.get("remarks") or ()),
            passed=verdict.get("status") == Verdict.APPROVED,
            approved_by=str(values.get("approved_by") or ""),
            written=values.get("written") or {},
            best=self._best(),
            read_by=constraint_results(values, content, findings),
            coverage=run_coverage(values, self._description, self._paths, self._items),
        )

    @property
    def _paths(self) -> Sequence[str]:
        return list(self._versions[-1].files) if self._versions else []

    def _step_done(self, delta: Delta, at: float) -> list[ReviewNews]:
        changed = delta.get("set", {})
        # The state of a long review is large, and a history is kept for each run that is being
        # watched.
        kept = {
            part: {key: value for key, value in values.items() if key in _KEPT}
            for part, values in delta.items()
        }
        self._values = apply(self._values, kept)
        self._keep_issues(changed.get("critiques_by_step") or {})
        record = changed.get("step") or {}
        follow = _FOLLOW.get(str(record.get("kind")))
        return [*follow(self, record, changed, at)] if follow is not None else []

    def _reported(self, critique: Mapping[str, Any]) -> IssuesReported:
        issues = tuple(critique.get("issues", ()))
        places = tuple(map(self._place, issues))
        about = str(critique["constraint_id"]), str(critique["reviewer"])
        usable = critique.get("overall") != Overall.ERROR
        return IssuesReported(
            *about,
            issues,
            places,
            usable=usable,
            decided_by=str(critique.get("decided_by") or ""),
            answered_by=str(critique.get("answered_by") or ""),
            paths=tuple(critique.get("paths") or ()),
        )

    def _place(self, issue: Mapping[str, Any]) -> str:
        path, line = str(issue.get("path") or UNNAMED), int(issue.get("line") or 0)
        return f"{path or self._file_name}{f':{line}' if line else ''}"

    def _keep_issues(self, critiques: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        for critique in (each for found in critiques.values() for each in found):
            for issue in critique.get("issues", ()):
                if issue.get("finding_id"):
                    self._issues[issue["finding_id"]] = issue

    def _written(
        self, record: Mapping[str, Any], changed: Mapping[str, Any], at: float
    ) -> Iterator[ReviewNews]:
        before = self._versions[-1] if self._versions else None
        files = _files(changed) or (before.files if before is not None else {})
        # A fix that changed nothing is no version: a diff of it would be empty.
        if not files or (before is not None and files == before.files):
            return
        version = Version(
            number=len(self._versions) + 1,
            round=self._round,
            step=self._step,
            kind=str(record["kind"]),
            files=files,
            agent=str(record.get("agent") or ""),
            at=at,
            labels=dict(self._labels(record.get("hunks") or ())),
        )
        self._versions.append(version)
        if before is not None:
            self._note(replace(self._now, written=(*self._now.written, version.number)))
            yield ArtifactChanged(self._step, self._round, before, version)

    @staticmethod
    def _labels(hunks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
        for hunk in hunks:
            header = str(hunk.get("diff", "")).partition("\n")[0]
            yield label_key(str(hunk.get("path") or UNNAMED), header), findings_of(hunk)

    def _reviewed(
        self, _record: Mapping[str, Any], _changed: Mapping[str, Any], _at: float
    ) -> Iterator[ReviewNews]:
        self._note(replace(self._now, reviewed=len(self._versions)))
        yield from ()

    def _judged(
        self, record: Mapping[str, Any], changed: Mapping[str, Any], at: float
    ) -> Iterator[ReviewNews]:
        verdict = changed.get("last_adjudication") or self._values.get("last_adjudication") or {}
        decided = [
            (each, str(each.get("finding_id") or each.get("issue_id") or ""))
            for each in verdict.get("decisions", ())
        ]
        entries = (self._values.get("findings") or {}).get("entries", ())
        blocking = {each["id"] for each in entries if each["severity"] in self._block_on}
        to_fix = tuple(n for each, n in decided if each.get("status") == Pursuit.PURSUING)
        judgment = Judgment(
            round=self._round,
            step=self._step,
            by=str(record.get("agent") or ""),
            verdict=str(verdict.get("status", "")),
            stated=str(verdict.get("stated") or ""),
            dismissed={
                name: str(each.get("rationale") or "")
                for each, name in decided
                if each.get("status") == Pursuit.DISMISSED
            },
            to_fix=to_fix,
            blocking=len(blocking.intersection(to_fix)),
            fixes=self._fixes,
            notes=tuple(verdict.get("notes", ())),
            at=at,
        )
        self._note(replace(self._now, judgments=(*self._now.judgments, judgment)))
        yield judgment

    def _note(self, round_: Round) -> None:
        self._rounds[round_.number] = round_

    @property
    def _now(self) -> Round:
        return self._rounds.get(self._round) or Round(self._round)

    def _best(self) -> int:
        files = _files(self._values.get("best") or {})
        return next((v.number for v in reversed(self._versions) if v.files == files), 0)


_KEPT = (
    *("findings", "rounds", "remarks", "last_adjudication", "written", "best", "approved_by"),
    *("readings", "read_by", "skipped", "unchecked"),
)
"""The keys of a flow's state that the history shows."""

_FOLLOW: Mapping[str, Callable[..., Iterator[ReviewNews]]] = {
    "generate": FlowHistory._written,
    "files": FlowHistory._written,
    "refine": FlowHistory._written,
    "critique": FlowHistory._reviewed,
    "adjudicate": FlowHistory._judged,
}
"""How the result of each kind of step is followed."""


def _files(values: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the texts in an update, or in a stored version; empty if it has none."""
    if values.get("files"):
        return dict(values["files"])
    text = values.get("artifact")
    return {UNNAMED: str(text)} if text is not None else {}
