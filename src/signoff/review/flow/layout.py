"""The run directory of a flow, under the names its users know.

All files are computed from the stored definition and from the state after each step: artifacts,
critiques and verdicts as files of their round, and one line of `thread.jsonl` for each of
them and for each answer of a human.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signoff.core.events import Event
from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.words import PASSED
from signoff.documents.control_characters import json_text
from signoff.review.flow.end_view import end_view, stored_path
from signoff.review.flow.history import FlowHistory
from signoff.review.flow.state import VERIFY, FlowState, critiques_in, files_label
from signoff.review.pure.constraint import Constraint, compress_constraints
from signoff.review.pure.critique import PURSUED_COUNTS
from signoff.review.pure.history import log_lines
from signoff.runtime.paths import fold_name
from signoff.store import run_layout as layout

FIELDS: Mapping[str, Any] = {
    "step_index": 0,
    "artifact": "",
    "artifact_path": None,
    "critiques_by_step": {},
    "unadjudicated_critiques": [],
    "last_adjudication": None,
    "findings": {},
    "rounds": [],
}
"""A flow's own fields of `state.json`, and their values before any step has run."""

INTERNAL = frozenset(
    {
        *("read", "readings", "read_by", "answered", "escalated", "judged_versions"),
        *("files", "base"),
    }
)
"""Fields that only the steps need; with a long artifact they would be long, too."""

LAST_STEP = "last_step"
"""The record of the last step; `step` in `state.json` is the current step of the run."""

_CHANGES = ("step", "mode", "applied", "unmatched", "hunks", "unclaimed")


class FlowLayout(layout.Layout):
    """Shows the runs of flows."""

    def prompt(self, call: layout.AgentCall) -> str:
        """Returns the path of a prompt."""
        return _call_file("prompt", call)

    def reply(self, call: layout.AgentCall) -> str:
        """Returns the path of a reply."""
        return _call_file("reply", call)

    def entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns the answers of humans; steps add lines of their own."""
        if entry["kind"] != "wait":
            return None
        answer = {key: value for key, value in entry.items() if key not in ("kind", "effect")}
        return {**answer, "phase": "human"}

    def step(self, work: layout.FinishedStep) -> layout.StepView:
        """Returns the artifact, the critiques or the verdict of a step."""
        record = work.state.get("step")
        if not isinstance(record, Mapping) or record.get("step") != work.step:
            return layout.StepView()
        show = _VIEWS.get(str(record.get("kind")))
        return show(work, record) if show is not None else layout.StepView()

    # A step is shown when it ends, its items as soon as each of them is done.
    def item(self, item: layout.FinishedItem) -> Mapping[str, bytes]:
        """Returns critiques as soon as they exist: a human may have to decide about them."""
        # A judge may have the rest read before it approves.
        if item.phase not in ("critique", "adjudicate"):
            return {}
        paths = {
            f"iterations/{item.iteration}/critiques/{_critique_name(each)}.json": each
            for each in critiques_in(item.result)
        }
        return {item.choose_path(path): _critique_json(each) for path, each in paths.items()}

    def fields(self, run: layout.ShownRun) -> Mapping[str, Any]:
        """Returns the flow's fields, the documented ones first."""
        state = run.state.state_with_pending
        # Scripts of users read these keys, so they are there from the start, with empty values.
        documented = {key: state.get(key, default) for key, default in FIELDS.items()}
        renamed = {LAST_STEP if key == "step" else key: value for key, value in state.items()}
        hidden = INTERNAL.union(documented)
        return {**documented, **{k: value for k, value in renamed.items() if k not in hidden}}

    def definition(self, description: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns the goal and the constraints, as they were when the run started."""
        source = description.get("source") or {}
        constraints = source.get("constraints") or []
        # Two long ids may be cut to the same file name, and one constraint must not hide the other.
        names = _unique([layout.file_name_part(each["id"]) for each in constraints])
        files = {
            f"constraints/{name}.yaml": _as_yaml(each)
            for name, each in zip(names, constraints, strict=True)
        }
        if source.get("goal"):
            files["goal.yaml"] = _as_yaml(source["goal"])
        keys = ("id", "priority", "summary")
        summaries = [
            Constraint(**{key: each[key] for key in keys if key in each}) for each in constraints
        ]
        files[".cache/constraints-compressed.md"] = compress_constraints(summaries).encode()
        return files

    def end(self, state: RunState, description: Mapping[str, Any]) -> layout.EndView | None:
        """Returns the result, the best reviewed version or the latest draft."""
        return end_view(state, description)

    def news(self, description: Mapping[str, Any]) -> Callable[[Event], Sequence[str]]:
        """Returns what tells the findings and verdicts of each event, for a run's log."""
        return log_lines(FlowHistory(description).apply)

    def warnings(self, state: Mapping[str, Any]) -> Sequence[str]:
        """Returns what the steps have warned of so far."""
        return [each["text"] for each in FlowState(state).warnings]

    def resolution(self, state: RunState) -> Mapping[str, Any]:
        """Returns a flow's own names for its common ends, and who decided: only humans approve."""
        view = FlowState(state.state)
        if state.status is Status.LIMIT:
            return {"reason": "max_iterations"}
        if state.status is not Status.COMPLETED or not view.passed:
            return {}
        judge = view.adjudication
        if view.approved_by:
            return {"reason": "approved", "decided_by": view.approved_by}
        return {"reason": PASSED, "decided_by": judge.by if judge else ""}


def _call_file(what: str, call: layout.AgentCall) -> str:
    key, _, ordinal = call.key.partition("#")
    if call.subject:
        # Every confirmation has the same key; its finding says more than its ordinal.
        key, ordinal = f"{key}_{call.subject}", ""
    # Critics are asked under the id of their constraint.
    by_judge = call.phase == "adjudicate" and key not in ("verdict", VERIFY)
    # A judge may have critics read the rest of the text. Their prompts belong to the critiques,
    # where a reader looks for them.
    critique = call.phase == "critique" or by_judge
    folder = f"iterations/{call.iteration}{'/critiques' if critique else ''}"
    parts = [
        what,
        layout.file_name_part(key if critique else call.phase),
        layout.file_name_part(call.agent),
    ]
    return f"{folder}/{'_'.join([*parts, *([ordinal] if ordinal else [])])}.txt"


def _line(work: layout.FinishedStep, phase: str, agent: Any, **more: Any) -> dict[str, Any]:
    head = {"iteration": work.iteration, "phase": phase, "step_name": work.step}
    return {**head, "agent": agent, "role": "assistant", **more}


def _artifact(work: layout.FinishedStep, record: Mapping[str, Any]) -> layout.StepView:
    phase = str(record["kind"])
    if FlowState(work.state).has_files:
        return _fixed_files(work, record)
    name = "artifact.md" if phase == "generate" else "artifact_refined.md"
    path = work.choose_path(
        str(work.state.get("artifact_path") or f"iterations/{work.iteration}/{name}")
    )
    mode = {"mode": record.get("mode")} if phase == "refine" else {}
    line = _line(work, phase, record.get("agent"), **mode, artifact_path=path)
    line |= {key: record[key] for key in ("problem", "unclaimed") if record.get(key)}
    # A model may send half of a surrogate pair, which no file can contain as text.
    text = str(work.state.get("artifact", "")).encode("utf-8", "backslashreplace")
    return layout.StepView({path: text, **_changes_file(work, record)}, (line,))


def _fixed_files(work: layout.FinishedStep, record: Mapping[str, Any]) -> layout.StepView:
    """Returns the files that a step has changed, like the tree they are from."""
    before, after = FlowState(work.before).files, FlowState(work.state).files
    # A round that fixes one of a thousand files must not write a thousand files.
    changed = [path for path, text in after.items() if before.get(path) != text]
    files = {
        work.choose_path(f"iterations/{work.iteration}/files/{stored_path(path)}"): after[
            path
        ].encode("utf-8", "backslashreplace")
        for path in changed
    }
    line = _line(work, "refine", record.get("agent"), mode=record.get("mode"), files=changed)
    return layout.StepView({**files, **_changes_file(work, record)}, (line,))


def _changes_file(work: layout.FinishedStep, record: Mapping[str, Any]) -> dict[str, bytes]:
    if not (record.get("hunks") or record.get("unmatched")):
        return {}
    changes = work.choose_path(f"iterations/{work.iteration}/changes.json")
    hunks = [_marked(hunk) for hunk in record.get("hunks") or ()]
    return {changes: _json({**{key: record.get(key) for key in _CHANGES}, "hunks": hunks})}


def _marked(hunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a hunk that says so if no finding asked for it."""
    return {**hunk, "unclaimed": True} if hunk["issue"] is None else hunk


def _critique_view(
    work: layout.FinishedStep, critiques: Sequence[Mapping[str, Any]]
) -> layout.StepView:
    files: dict[str, bytes] = {}
    lines = []
    names = _unique([_critique_name(critique) for critique in critiques])
    for name, critique in zip(names, critiques, strict=True):
        path = work.choose_path(f"iterations/{work.iteration}/critiques/{name}.json")
        files[path] = _critique_json(critique)
        line = _line(
            work,
            "critique",
            str(critique["reviewer"]),
            constraint=str(critique["constraint_id"]),
            issues_count=len(critique["issues"]),
            overall=critique["overall"],
        )
        line |= {key: critique[key] for key in ("decided_by", "answered_by") if critique.get(key)}
        lines.append(line)
    return layout.StepView(files, tuple(lines))


def _last_reading(work: layout.FinishedStep) -> list[Mapping[str, Any]]:
    """Returns the critiques that a judge asked for before it approved."""
    before, now = (
        [each for found in (state.get("critiques_by_step") or {}).values() for each in found]
        for state in (work.before, work.state)
    )
    return [each for each in now if each not in before]


def _unique(names: Sequence[str]) -> list[str]:
    """Returns different names: long ids are cut, and `a-b` may come from two pairs."""
    unique: dict[str, str] = {}
    for name in names:
        candidate, number = name, 1
        # Some file systems ignore case, and there `A` would overwrite `a`.
        while fold_name(candidate) in unique:
            number += 1
            candidate = f"{name}_{number}"
        unique[fold_name(candidate)] = candidate
    return list(unique.values())


def _critique_name(critique: Mapping[str, Any]) -> str:
    parts = [critique["constraint_id"], critique["reviewer"]]
    if paths := critique.get("paths"):
        parts.append(files_label(paths))
    return "-".join(map(layout.file_name_part, parts))


_NOT_SHOWN = frozenset({"step", "request", "reused", "verified"})


def _critique_json(critique: Mapping[str, Any]) -> bytes:
    return _json({key: value for key, value in critique.items() if key not in _NOT_SHOWN})


def _verdict(work: layout.FinishedStep, record: Mapping[str, Any]) -> layout.StepView:
    verdict = work.state.get("last_adjudication") or {}
    counts = verdict.get("termination") or {}
    line = _line(
        work,
        "adjudicate",
        record.get("agent"),
        status=verdict.get("status"),
        **{key: counts.get(key, 0) for key in PURSUED_COUNTS},
    )
    name = f"adjudication_{layout.file_name_part(work.step)}.yaml"
    path = work.choose_path(f"iterations/{work.iteration}/{name}")
    read = _critique_view(work, _last_reading(work))
    return layout.StepView({**read.files, path: _as_yaml(verdict)}, (*read.lines, line))


_VIEWS: Mapping[str, Callable[[layout.FinishedStep, Mapping[str, Any]], layout.StepView]] = {
    "generate": _artifact,
    "critique": lambda work, _record: _critique_view(
        work, (work.state.get("critiques_by_step") or {}).get(work.step, ())
    ),
    "adjudicate": _verdict,
    "refine": _artifact,
}


def _json(value: Mapping[str, Any]) -> bytes:
    return f"{json_text(value, indent=2)}\n".encode("utf-8", "backslashreplace")


def _as_yaml(value: Mapping[str, Any]) -> bytes:
    # Imported here: every command that shows a run has its layout, and few of them write YAML.
    from signoff.review.flow.yaml_pages import as_yaml

    return as_yaml(value)
