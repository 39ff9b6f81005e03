"""The run directory of a flow, under the names its users know.

Everything shown here is computed from the frozen definition and from what each step left
in the state: artifacts, critiques and judgements as files of their iteration, and one
line of `thread.jsonl` for each of them and for each word of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from signoff.core.outcome import Status
from signoff.documents.control_characters import json_text
from signoff.flows.yaml_pages import as_yaml
from signoff.review.constraint import Constraint, compress_constraints
from signoff.runtime.paths import fold_name
from signoff.store.rundir.layout import (
    AgentCall,
    FinishedItem,
    FinishedStep,
    Layout,
    StepView,
    file_name_part,
)

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
"""A flow's own fields of `state.json`, and what stands there before any step has run."""

INTERNAL = frozenset({"read"})
"""What only the steps themselves need; with a long artifact it would be long, too."""

LAST_STEP = "last_step"
"""What the last step did; in `state.json`, `step` is where the run stands."""

_REASONS = {Status.COMPLETED: "approved", Status.LIMIT: "max_iterations"}


class FlowLayout(Layout):
    """Shows the runs of flows."""

    def prompt(self, call: AgentCall) -> str:
        """Returns where a prompt goes."""
        return _call_file("prompt", call)

    def reply(self, call: AgentCall) -> str:
        """Returns where a reply goes."""
        return _call_file("reply", call)

    def entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns what people said; steps tell of themselves by what they made."""
        if entry["kind"] != "wait":
            return None
        said = {key: value for key, value in entry.items() if key not in ("kind", "effect")}
        return {**said, "phase": "human"}

    def step(self, work: FinishedStep) -> StepView:
        """Returns the artifact, the critiques or the judgement a step has made."""
        state = work.state
        record = state.get("step")
        if not isinstance(record, Mapping) or record.get("step") != work.step:
            return StepView()
        show = _SHOW.get(str(record.get("kind")))
        return show(work, state, record) if show is not None else StepView()

    def item(self, item: FinishedItem) -> Mapping[str, bytes]:
        """Returns a critique as soon as it is there: a person may have to decide about it."""
        read = item.result
        if item.phase != "critique" or not isinstance(read, Mapping) or "reviewer" not in read:
            return {}
        path = f"iterations/{item.iteration}/critiques/{_reading(read)}.json"
        return {item.choose_path(path): _critique(read)}

    def fields(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the flow's fields, those everybody knows first."""
        known = {key: state.get(key, default) for key, default in FIELDS.items()}
        more = {LAST_STEP if key == "step" else key: value for key, value in state.items()}
        own = {key: value for key, value in more.items() if key not in INTERNAL}
        return {**known, **{key: value for key, value in own.items() if key not in known}}

    def definition(self, description: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns the goal and the constraints, as they were when the run began."""
        source = description.get("source") or {}
        constraints = source.get("constraints") or []
        names = _apart([file_name_part(each["id"]) for each in constraints])
        files = {
            f"constraints/{name}.yaml": as_yaml(each)
            for name, each in zip(names, constraints, strict=True)
        }
        if source.get("goal"):
            files["goal.yaml"] = as_yaml(source["goal"])
        files[".cache/constraints-compressed.md"] = _compressed(constraints).encode()
        return files

    def reason(self, status: Status) -> str:
        """Returns a flow's words for its two common ends."""
        return _REASONS.get(status, "")


def _call_file(what: str, call: AgentCall) -> str:
    folder = f"iterations/{call.iteration}"
    key, _, ordinal = call.key.partition("#")
    tail = f"_{ordinal}" if ordinal else ""
    agent = file_name_part(call.agent)
    if call.phase == "critique":
        # Critics ask under the id of their constraint.
        return f"{folder}/critiques/{what}_{file_name_part(key)}_{agent}{tail}.txt"
    return f"{folder}/{what}_{file_name_part(call.phase)}_{agent}{tail}.txt"


def _line(work: FinishedStep, phase: str, agent: Any, **more: Any) -> dict[str, Any]:
    head = {"iteration": work.iteration, "phase": phase, "step_name": work.step}
    return {**head, "agent": agent, "role": "assistant", **more}


def _artifact(work: FinishedStep, state: Mapping[str, Any], record: Mapping[str, Any]) -> StepView:
    phase = str(record["kind"])
    name = "artifact.md" if phase == "generate" else "artifact_refined.md"
    path = work.choose_path(
        str(state.get("artifact_path") or f"iterations/{work.iteration}/{name}")
    )
    mode = {"mode": record.get("mode")} if phase == "refine" else {}
    line = _line(work, phase, record.get("agent"), **mode, artifact_path=path)
    for key in ("problem", "unclaimed"):
        if record.get(key):
            line[key] = record[key]
    files = {path: _text(state.get("artifact", ""))}
    if record.get("hunks"):
        changes = work.choose_path(f"iterations/{work.iteration}/changes.json")
        files[changes] = _json({key: record.get(key) for key in _CHANGES})
    return StepView(files, (line,))


_CHANGES = ("step", "mode", "applied", "unmatched", "hunks", "unclaimed")


def _critiques(
    work: FinishedStep, state: Mapping[str, Any], _record: Mapping[str, Any]
) -> StepView:
    folder = f"iterations/{work.iteration}/critiques"
    files: dict[str, bytes] = {}
    lines = []
    critiques = (state.get("critiques_by_step") or {}).get(work.step, ())
    names = _apart([_reading(critique) for critique in critiques])
    for name, critique in zip(names, critiques, strict=True):
        constraint, agent = str(critique["constraint_id"]), str(critique["reviewer"])
        path = work.choose_path(f"{folder}/{name}.json")
        files[path] = _critique(critique)
        lines.append(
            _line(
                work,
                "critique",
                agent,
                constraint=constraint,
                issues_count=len(critique["issues"]),
                overall=critique["overall"],
            )
        )
    return StepView(files, tuple(lines))


def _apart(names: Sequence[str]) -> list[str]:
    """Returns a name for each that no other has: long ids are cut, and `a-b` may be two words."""
    given: dict[str, str] = {}
    for name in names:
        wanted, number = name, 1
        while fold_name(wanted) in given:
            number += 1
            wanted = f"{name}_{number}"
        given[fold_name(wanted)] = wanted
    return list(given.values())


def _reading(critique: Mapping[str, Any]) -> str:
    return f"{file_name_part(critique['constraint_id'])}-{file_name_part(critique['reviewer'])}"


def _critique(critique: Mapping[str, Any]) -> bytes:
    return _json({key: value for key, value in critique.items() if key != "step"})


def _judgement(work: FinishedStep, state: Mapping[str, Any], record: Mapping[str, Any]) -> StepView:
    judged = state.get("last_adjudication") or {}
    path = work.choose_path(
        f"iterations/{work.iteration}/adjudication_{file_name_part(work.step)}.yaml"
    )
    counted = judged.get("termination") or {}
    line = _line(
        work,
        "adjudicate",
        record.get("agent"),
        status=judged.get("status"),
        critical_pursuing=counted.get("critical_pursuing", 0),
        high_pursuing=counted.get("high_pursuing", 0),
    )
    return StepView({path: as_yaml(judged)}, (line,))


_SHOW: Mapping[str, Callable[[FinishedStep, Mapping[str, Any], Mapping[str, Any]], StepView]] = {
    "generate": _artifact,
    "critique": _critiques,
    "adjudicate": _judgement,
    "refine": _artifact,
}


def _compressed(constraints: list[Mapping[str, Any]]) -> str:
    return compress_constraints([*_summaries(constraints)])


def _summaries(constraints: list[Mapping[str, Any]]) -> Iterator[Constraint]:
    for each in constraints:
        given = {key: each[key] for key in ("id", "priority", "summary") if key in each}
        yield Constraint(**given)


def _json(value: Mapping[str, Any]) -> bytes:
    text = json_text(value, indent=2)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _text(text: Any) -> bytes:
    # A model may send half of a pair of surrogates, which no file can hold as text.
    return str(text).encode("utf-8", "backslashreplace")
