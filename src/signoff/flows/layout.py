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
from signoff.runtime.paths import folded
from signoff.store.rundir.layout import AgentCall, Item, Layout, Made, Shown, word

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

    def prompt(self, asked: AgentCall) -> str:
        """Returns where a prompt goes."""
        return _call_file("prompt", asked)

    def reply(self, asked: AgentCall) -> str:
        """Returns where a reply goes."""
        return _call_file("reply", asked)

    def entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns what people said; steps tell of themselves by what they made."""
        if entry["kind"] != "wait":
            return None
        said = {key: value for key, value in entry.items() if key not in ("kind", "effect")}
        return {**said, "phase": "human"}

    def shown(self, made: Made) -> Shown:
        """Returns the artifact, the critiques or the judgement a step has made."""
        state = made.state
        record = state.get("step")
        if not isinstance(record, Mapping) or record.get("step") != made.step:
            return Shown()
        show = _SHOW.get(str(record.get("kind")))
        return show(made, state, record) if show is not None else Shown()

    def item(self, item: Item) -> Mapping[str, bytes]:
        """Returns a critique as soon as it is there: a person may have to decide about it."""
        read = item.result
        if item.phase != "critique" or not isinstance(read, Mapping) or "reviewer" not in read:
            return {}
        path = f"iterations/{item.iteration}/critiques/{_reading(read)}.json"
        return {item.place(path): _critique(read)}

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
        names = _apart([word(each["id"]) for each in constraints])
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


def _call_file(what: str, asked: AgentCall) -> str:
    folder = f"iterations/{asked.iteration}"
    key, _, ordinal = asked.key.partition("#")
    tail = f"_{ordinal}" if ordinal else ""
    if asked.phase == "critique":
        # Critics ask under the id of their constraint.
        return f"{folder}/critiques/{what}_{word(key)}_{word(asked.agent)}{tail}.txt"
    return f"{folder}/{what}_{word(asked.phase)}_{word(asked.agent)}{tail}.txt"


def _line(made: Made, phase: str, agent: Any, **more: Any) -> dict[str, Any]:
    head = {"iteration": made.iteration, "phase": phase, "step_name": made.step}
    return {**head, "agent": agent, "role": "assistant", **more}


def _artifact(made: Made, state: Mapping[str, Any], record: Mapping[str, Any]) -> Shown:
    phase = str(record["kind"])
    name = "artifact.md" if phase == "generate" else "artifact_refined.md"
    path = made.place(str(state.get("artifact_path") or f"iterations/{made.iteration}/{name}"))
    mode = {"mode": record.get("mode")} if phase == "refine" else {}
    line = _line(made, phase, record.get("agent"), **mode, artifact_path=path)
    for key in ("problem", "unclaimed"):
        if record.get(key):
            line[key] = record[key]
    files = {path: _text(state.get("artifact", ""))}
    if record.get("hunks"):
        changes = made.place(f"iterations/{made.iteration}/changes.json")
        files[changes] = _json({key: record.get(key) for key in _CHANGES})
    return Shown(files, (line,))


_CHANGES = ("step", "mode", "applied", "unmatched", "hunks", "unclaimed")


def _critiques(made: Made, state: Mapping[str, Any], _record: Mapping[str, Any]) -> Shown:
    folder = f"iterations/{made.iteration}/critiques"
    files: dict[str, bytes] = {}
    lines = []
    critiques = (state.get("critiques_by_step") or {}).get(made.step, ())
    names = _apart([_reading(critique) for critique in critiques])
    for name, critique in zip(names, critiques, strict=True):
        constraint, agent = str(critique["constraint_id"]), str(critique["reviewer"])
        path = made.place(f"{folder}/{name}.json")
        files[path] = _critique(critique)
        lines.append(
            _line(
                made,
                "critique",
                agent,
                constraint=constraint,
                issues_count=len(critique["issues"]),
                overall=critique["overall"],
            )
        )
    return Shown(files, tuple(lines))


def _apart(names: Sequence[str]) -> list[str]:
    """Returns a name for each that no other has: long ids are cut, and `a-b` may be two words."""
    given: dict[str, str] = {}
    for name in names:
        wanted, number = name, 1
        while folded(wanted) in given:
            number += 1
            wanted = f"{name}_{number}"
        given[folded(wanted)] = wanted
    return list(given.values())


def _reading(critique: Mapping[str, Any]) -> str:
    return f"{word(critique['constraint_id'])}-{word(critique['reviewer'])}"


def _critique(critique: Mapping[str, Any]) -> bytes:
    return _json({key: value for key, value in critique.items() if key != "step"})


def _judgement(made: Made, state: Mapping[str, Any], record: Mapping[str, Any]) -> Shown:
    judged = state.get("last_adjudication") or {}
    path = made.place(f"iterations/{made.iteration}/adjudication_{word(made.step)}.yaml")
    counted = judged.get("termination") or {}
    line = _line(
        made,
        "adjudicate",
        record.get("agent"),
        status=judged.get("status"),
        critical_pursuing=counted.get("critical_pursuing", 0),
        high_pursuing=counted.get("high_pursuing", 0),
    )
    return Shown({path: as_yaml(judged)}, (line,))


_SHOW: Mapping[str, Callable[[Made, Mapping[str, Any], Mapping[str, Any]], Shown]] = {
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
