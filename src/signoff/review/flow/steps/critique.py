"""Reviews the artifact: one review for each constraint and each of its critics.

Parallel critics all finish, and only then do the behaviors of their findings apply. Serial
critics work one constraint after the other, and a finding that halts or escalates skips the
remaining ones. A judge whose approval would end the run has the rest read by a `CriticPanel`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import filterfalse
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.outcome import Outcome
from signoff.core.severity import IssueBehavior
from signoff.core.words import FindingStatus
from signoff.review.flow.model import Flow, StepKind, WorkflowStep
from signoff.review.flow.state import (
    FlowState,
    after,
    critique_warnings,
    format_issues,
    reading_key,
    report_warnings,
    stored,
    with_best,
    with_round,
)
from signoff.review.flow.steps.critic import CERTAIN, CONSTRAINTS, CRITIQUES, PATHS, CriticHandler
from signoff.review.flow.steps.handler import FlowHandler, StepResult
from signoff.review.flow.steps.sign_off import ask_about_findings
from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.coverage import ReaderKind
from signoff.review.pure.critique import Critique, CritiqueIssue
from signoff.review.pure.finding import is_set_aside
from signoff.review.pure.findings import Ledger
from signoff.review.pure.review_scope import show_files


@dataclass(frozen=True)
class CritiqueHandler(FlowHandler):
    """The handler of a critique step."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Reviews the artifact against every matching constraint and stores the findings.

        A finding that escalates is asked about in a visit of its own: by then the reviews are
        stored, so the human can look at what the question is about.
        """
        state = FlowState(ctx.step_state)
        pending = ctx.step_state.get("escalation")
        if pending is not None:
            return await self._escalate(ctx, pending)
        reading = CriticPanel(self.flow, self.step, state)
        due = reading.due()
        skipped = reading.skipped(due)
        if skipped:
            ctx.progress(f"not repeated, as nothing they cited has changed: {len(skipped)}")
        update, critiques = reading.update(ctx, await reading.read(ctx, due))
        if self.flow.config.rereview == "changed":
            # An approval later needs to know which constraints were not read again on purpose, or
            # their missing critiques would look like a review that was never made.
            names = sorted(set(skipped))
            update["not_repeated"] = {**state.not_repeated, self.step.id: names}
        update |= {
            "unadjudicated_critiques": [
                *state.unadjudicated,
                *update["critiques_by_step"][self.step.id],
            ],
            "last_critique_step": self.step.id,
            **self.record(halted=bool(issues_that(critiques, IssueBehavior.HALT))),
        }
        if not (state.has_files and self.flow.of_kind(StepKind.ADJUDICATE)):
            # A run may end before its judge has decided, and the critiques are paid for. Files are
            # all shown as they are at the end.
            update |= with_best(ctx, after(ctx.step_state, update))
        if escalated := undecided(critiques, Ledger.from_json(update["findings"])):
            update |= {
                "escalation": format_issues(escalated),
                "escalated": [issue.finding_id for issue in escalated],
                "step_index": self.flow.index(self.step),
            }
            # The step is visited again to ask the human. The reviews are stored by then, so a crash
            # while the question is open costs none of them.
            return Outcome.ITERATE, update
        return Outcome.OK, update

    async def _escalate(self, ctx: StepContext, issues: str) -> StepResult:
        prompt = f"Review step {self.step.id!r} has findings that you must decide on:\n{issues}"
        state, ids = FlowState(ctx.step_state), ctx.step_state.get("escalated", ())
        update = await ask_about_findings(ctx, self.flow, state, "escalate", prompt, ids)
        return Outcome.OK, {**update, **self.record(kind="answered"), "escalation": None}


Item = Mapping[str, Any]
"""A constraint and the agent that reads the artifact, or some of its files, against it."""
Wanted = Callable[[str, str, str], bool]
"""`(constraint, agent, path) -> whether that is read now`."""

MOST_BATCHED = 8
"""Files that one critic reads in one call."""
BATCH_CHARACTERS = 24_000
"""Characters of files that are read in one call; a longer file is read alone."""
AT_ONCE = 8
"""Critics of files that are asked at the same time, unless their agent has a limit of its own."""

MOST_COMBINED = 8
"""Constraints that one critic reads again in one call; with more, it would overlook too much."""


@dataclass(frozen=True)
class CriticPanel:
    """The critics of one critique step and the artifact they read."""

    flow: Flow
    step: WorkflowStep
    state: FlowState

    @cached_property
    def ledger(self) -> Ledger:
        """All findings so far."""
        return self.state.ledger

    def items(self, wanted: Wanted = lambda *_: True) -> list[list[Item]]:
        """Returns the reviews of the step that are wanted, grouped by constraint."""
        return [self._items(each, wanted) for each in self.flow.selected(self.step)]

    def _items(self, constraint: Constraint, wanted: Wanted) -> list[Item]:
        items: list[Item] = []
        for agent in self.flow.reviewers(self.step, constraint):
            paths = [
                path
                for path in self.state.files
                if constraint.applies_to(path) and wanted(constraint.id, agent, path)
            ]
            item = {"constraint": constraint.id, "agent": agent}
            if self.state.has_files:
                items += [{**item, PATHS: batch} for batch in self._batches(agent, paths)]
            elif paths:
                items.append(item)
        return items

    def _batches(self, agent: str, paths: Sequence[str]) -> list[list[str]]:
        """Returns files in groups that one critic reads in one call.

        A program reads one, or all of them if it is about the project.
        """
        can = self.flow.capabilities(agent)
        if can.whole_project:
            return [[*paths]] if paths else []
        most = 1 if can.deterministic else MOST_BATCHED
        sizes = {
            each.path: len(each.text)
            for each in show_files(self.state.files, self.state.base, paths)
        }
        batches: list[list[str]] = []
        for path in paths:
            size = sum(sizes[each] for each in batches[-1]) if batches else 0
            if batches and len(batches[-1]) < most and size + sizes[path] <= BATCH_CHARACTERS:
                batches[-1].append(path)
            else:
                batches.append([path])
        return batches

    def due(self) -> list[list[Item]]:
        """Returns the reviews to make now, grouped by constraint: all that are needed, and more."""
        if self.flow.config.rereview == "all":
            groups = self.items()
        elif self.state.has_files:
            groups = self.items(self._is_due)
        else:
            needed = [item for group in self.items(self._is_due) for item in group]
            chosen = [*needed, *self._joining(needed)]
            groups = [[item for item in group if item in chosen] for group in self.items()]
        return [group for group in groups if group]

    def skipped(self, due: Sequence[Sequence[Item]]) -> list[str]:
        """Returns the constraint of each review that is not made now."""
        chosen = {each for group in due for item in group for each in _readings(item)}
        every = [each for group in self.items() for item in group for each in _readings(item)]
        return [constraint for constraint, *rest in every if (constraint, *rest) not in chosen]

    def unread(self) -> list[Item]:
        """Returns the reviews of which no answer is about the current version."""
        readings, content = self.state.readings, self.state.content

        def is_unread(constraint: str, agent: str, path: str) -> bool:
            return readings.get(reading_key(constraint, agent, path)) != content.digest(path)

        return [item for group in self.items(is_unread) for item in group]

    def _is_due(self, constraint: str, agent: str, path: str) -> bool:
        """Whether a critic can have something new to say: see `rereview` in the flow's settings."""
        # Nobody has read this text against this constraint yet, so there is nothing to rely on.
        if reading_key(constraint, agent, path) not in self.state.readings:
            return True
        if self.flow.capabilities(agent).deterministic:
            return True  # A program costs nothing and may look at more than the artifact.
        about = (constraint, path)
        known = [f for f in self.ledger.findings.values() if (f.constraint, f.path) == about]
        if any(finding.status is FindingStatus.OPEN for finding in known):
            return True
        # A quote that is gone is a passage that was changed after the critic relied on it. Its
        # other findings may have changed with it.
        before, text = self._before.text(path), self.state.content.text(path)
        cited = [finding.quote for finding in known if not finding.omission]
        return any(before.contains(q) and not text.contains(q) for q in cited)

    def _joining(self, needed: Sequence[Item]) -> list[Item]:
        """Returns reviews that are not needed yet, but cost little in a call that is made anyway.

        They find what a fix broke a round earlier, and are not left for a call before the approval.
        """
        if self.step.execution != "parallel":
            return []
        unread = [item for item in self.unread() if self._can_be_combined(item)]
        cheap = [item for item in unread if self._adds_little(item["constraint"])]
        joining: list[Item] = []
        for agent in dict.fromkeys(item["agent"] for item in unread if item in needed):
            calls = [i for i in needed if i["agent"] == agent and self._can_be_combined(i)]
            others = [i for i in cheap if i["agent"] == agent and i not in needed]
            joining += others[: -len(calls) % MOST_COMBINED]
        return joining

    def _adds_little(self, name: str) -> bool:
        """Whether a constraint makes the call of others only a little longer."""
        # A script is run for each reading, and what it prints may be longer than all the rest.
        if self.flow.by_id[name].script:
            return False
        own, shown = self.state.source(name), self.state.source()
        # A call of its own would repeat the artifact, so material up to that length costs nothing;
        # that of the goal is in the prompt anyway.
        return own == shown or len(own) <= len(self.state.artifact)

    @cached_property
    def _before(self) -> ArtifactVersion:
        return ArtifactVersion.of(self.state.previously_reviewed)

    async def read(self, ctx: StepContext, groups: Sequence[Sequence[Item]]) -> list[Any]:
        """Has the critics review the artifact; returns their critiques as stored values."""
        if self.step.execution == "parallel":
            items = [item for group in groups for item in group]
            return await self.read_all(ctx, items, key="critics")
        results: list[Any] = []
        for group in groups:
            results += await self.read_all(ctx, group, key=group[0]["constraint"])
            if issues_that(_critiques(results), IssueBehavior.HALT, IssueBehavior.ESCALATE):
                break
        return results

    async def read_all(self, ctx: StepContext, items: Sequence[Item], *, key: str) -> list[Any]:
        """Has these critics review the artifact at the same time."""
        critic = CriticHandler(self.flow, self.step, self.state)
        # All critics of a step are one fan-out: those that have answered are not asked again after
        # a crash, and a slow one does not hold back the answers of the others.
        results = await ctx.map(
            self._combined(items),
            critic,
            key=key,
            cache_group=self._cache_group,
            concurrency=AT_ONCE if self.state.has_files else None,
        )
        critiques = [each for result in results for each in result.get(CRITIQUES, [result])]
        keys = dict.fromkeys((item["constraint"], item["agent"]) for item in items)
        # The order of critiques is that of the flow and not that of the answers. A replay, or a
        # resume on a faster machine, must build the same prompt for the judge.
        order = {key: position for position, key in enumerate(keys)}
        return sorted(critiques, key=lambda c: order[c["constraint_id"], c["reviewer"]])

    def _combined(self, items: Sequence[Item]) -> list[Mapping[str, Any]]:
        """Returns the calls to make: what a model has read before, it reads again in one call.

        A first reading deserves the whole attention of a critic. Later ones look for what a fix
        left or broke, and would otherwise send the artifact once for each constraint.
        """
        if self.flow.config.rereview == "all" or self.step.execution != "parallel":
            return [*items]
        again: dict[str, list[str]] = {}
        for item in filter(self._can_be_combined, items):
            again.setdefault(item["agent"], []).append(item["constraint"])
        combined = [
            {CONSTRAINTS: names[start : start + MOST_COMBINED], "agent": agent}
            for agent, names in again.items()
            for start in range(0, len(names), MOST_COMBINED)
        ]
        return [*filterfalse(self._can_be_combined, items), *combined]

    def _can_be_combined(self, item: Item) -> bool:
        can = self.flow.capabilities(item["agent"])
        is_model = can.is_model and not (can.deterministic or can.answered_by_human)
        if not is_model or PATHS in item:
            return False
        return reading_key(**item) in self.state.readings

    def _cache_group(self, item: Mapping[str, Any]) -> str | None:
        """Returns the agent, if it pays once for what all its prompts begin with.

        An agent that does not stream would keep the others waiting for its whole first answer.
        """
        agent = item["agent"]
        group = "/".join([agent, *item.get(PATHS, ())])
        can = self.flow.capabilities(agent)
        return group if can.prompt_caching and can.streaming else None

    def _read_by(self, critiques: Sequence[Critique]) -> dict[str, Any]:
        """Returns who has read the artifact against each constraint, for those who decide."""
        read_by: dict[str, Any] = {**(self.state.raw.get("read_by") or {})}
        for each in critiques:
            agents = read_by.get(each.constraint_id) or {}
            humans = dict((agents.get(each.reviewer) or {}).get("humans") or {})
            for path in each.files_read:
                # A new answer replaces an earlier decision by a human about the same file: it was
                # about the text before.
                humans.pop(path, None)
                humans |= {path: each.decided_by} if each.decided_by else {}
            reader = each.answered_by or each.reviewer
            entry = {"name": reader, "kind": self._kind(each).value, "humans": humans}
            read_by[each.constraint_id] = {**agents, each.reviewer: entry}
        return read_by

    def _kind(self, critique: Critique) -> ReaderKind:
        reader = critique.answered_by
        if reader and reader not in self.flow.agents:
            return ReaderKind.HUMAN
        can = self.flow.capabilities(reader or critique.reviewer)
        return ReaderKind.CHECK if can.deterministic else ReaderKind.CRITIC

    def _certain(self, results: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
        """Returns the constraints and reviewers of critiques that overlook nothing.

        They are those of programs, and those of humans, who decide what counts.
        """
        return {
            (each["constraint_id"], each["reviewer"])
            for each in results
            for can in [self.flow.capabilities(each["reviewer"])]
            if each.get(CERTAIN) or can.deterministic or can.answered_by_human
        }

    def update(
        self, ctx: StepContext, results: Sequence[Mapping[str, Any]], *, more: bool = False
    ) -> tuple[dict[str, Any], list[Critique]]:
        """Returns the update of the state, and the critiques with the ids of their findings.

        `more` keeps the step's other critiques: they are about the same text.
        """
        state, before = self.state, self.state.previously_reviewed
        ledger, critiques = self.ledger.record(
            iteration=ctx.iteration,
            critiques=_critiques(results),
            artifact=state.content,
            previous_artifact=before,
            certain=self._certain(results),
        )
        readings = {
            reading_key(c.constraint_id, c.reviewer, path): state.content.digest(path)
            for c in critiques
            for path in c.files_read
        }
        entries = [stored(critique, self.step.id) for critique in critiques]
        if more:
            others = state.critiques_by_step.get(self.step.id, [])
            new = {_critique_key(each) for each in entries}
            entries = [*(each for each in others if _critique_key(each) not in new), *entries]
        update: dict[str, Any] = {
            "critiques_by_step": {**state.critiques_by_step, self.step.id: entries},
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            # The next review compares with this version: a finding whose quote is new was
            # introduced by a fix, the others were overlooked.
            "read": {"artifact": state.current, "before": before},
            "readings": {**state.readings, **readings},
            "read_by": self._read_by(critiques),
            **report_warnings(ctx, critique_warnings(critiques)),
            **_answers(results),
        }
        return update, critiques


def _readings(item: Item) -> list[tuple[str, str, str]]:
    """Returns what an item reads: its constraint and agent with each of its files."""
    return [(item["constraint"], item["agent"], path) for path in item.get(PATHS, ("",))]


def _critique_key(stored: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return stored["constraint_id"], stored["reviewer"], tuple(stored.get("paths", ()))


def issues_that(critiques: Sequence[Critique], *behaviors: IssueBehavior) -> list[CritiqueIssue]:
    """Returns the issues with a behavior; one that is set aside has no effect."""
    issues = [issue for critique in critiques for issue in critique.issues]
    return [each for each in issues if each.behavior in behaviors and not is_set_aside(each)]


def undecided(critiques: Sequence[Critique], findings: Ledger) -> list[CritiqueIssue]:
    """Returns the issues that a human must decide about, without those that one has decided."""
    escalated = {i.finding_id: i for i in issues_that(critiques, IssueBehavior.ESCALATE)}
    return [each for id_, each in escalated.items() if not findings.findings[id_].decision]


def _critiques(results: Sequence[Any]) -> list[Critique]:
    return [Critique.from_json(each) for each in results]


def _answers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the update that keeps new answers, so that the same is not asked twice."""
    answers = [
        {"request": each["request"], "answer": _answer(each)}
        for each in results
        if each.get("request") and not each.get("reused")
    ]
    answers += [entry for each in results for entry in each.get("verified", ())]
    return {"answered": Append(answers)} if answers else {}


def _answer(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("request", "verified")}
