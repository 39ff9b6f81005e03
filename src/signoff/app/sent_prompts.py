"""The prompts that a run has sent to its agents, as its journal recorded them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.app.history import events_of
from signoff.app.project import Project
from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.errors import UnknownName, UsageError
from signoff.runtime.amounts import count


@dataclass(frozen=True)
class SentPrompt:
    """One recorded request to an agent."""

    step: str
    kind: str
    """The kind of its step."""
    round: int
    request: Mapping[str, Any]
    """What was sent, as the journal has it."""

    @property
    def heading(self) -> str:
        """What it was about, in a line."""
        title = (self.request.get("about") or {}).get("title") or self.kind
        return f"{self.step}, round {self.round}, {self.request['agent']}: {title}"

    @property
    def system(self) -> str | None:
        """The system prompt, if there was one."""
        return self.request.get("system")

    @property
    def prompt(self) -> str:
        """The prompt itself."""
        return str(self.request["prompt"])

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the answer had to match, if there was one."""
        return self.request.get("schema")

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "step": self.step,
            "kind": self.kind,
            "round": self.round,
            "agents": [self.request["agent"]],
            "about": dict(self.request.get("about") or {}),
            "system": self.system,
            "prompt": self.prompt,
            "schema": self.schema,
        }


def sent_prompts(
    project: Project, name: str, step: str | None = None, number: int | None = None
) -> list[SentPrompt]:
    """Returns what the steps of a run sent, or one step, in the order it was sent.

    Without the number of a round it is the latest round in which each step asked an agent: a step
    that was skipped or had nothing to ask has sent nothing.
    """
    row = project.run(name)
    steps = json.loads(project.store.description(row.id)).get("steps", ())
    kinds = {each["id"]: str(each.get("phase") or each["id"]) for each in steps}
    if step is not None and step not in kinds:
        raise UnknownName("step", step, kinds)
    if number is not None and number > row.iteration:
        rounds = count(row.iteration, "round")
        raise UsageError(f"run {row.name!r} has {rounds}, so there is no round {number}")
    sent = list(_sent(kinds, (event for _, event in events_of(project, row))))
    latest = {each.step: each.round for each in sent}
    return [
        each
        for each in sent
        if step in (None, each.step) and each.round == (number or latest[each.step])
    ]


def _sent(kinds: Mapping[str, str], events: Iterator[ev.Event]) -> Iterator[SentPrompt]:
    state = RunState()
    for event in events:
        evolve(state, event)
        # Only the first attempt at a call carries its request.
        if isinstance(event, ev.EffectStarted) and event.kind is EffectKind.ASK and event.payload:
            at = state.step or ""
            yield SentPrompt(at, kinds.get(at, at), state.iteration, event.payload)
