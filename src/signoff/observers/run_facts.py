"""Where a run is, as far as log records need it: much less than a timeline, and much faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.effects import EffectKind

WRITING, DECIDING = "GENERATING", "DECIDING"
"""The steps with which a turn of a pair begins and ends; `signoff.pair` is a layer above."""


class EffectFacts(NamedTuple):
    """An effect that has started."""

    kind: EffectKind
    started_at: float
    agent: str = ""
    model: str = ""
    program: str = ""

    def fields(self) -> dict[str, Any]:
        """Returns what a record says about it; empty values are left out."""
        values = {"agent": self.agent, "model": self.model, "program": self.program}
        return {"kind": self.kind.value, **{k: v for k, v in values.items() if v}}


class RunFacts:
    """Follows one run."""

    def __init__(self) -> None:
        self.seq = 0
        """The last commit that was followed."""
        self.workflow = ""
        self.step = ""
        self.round = 1
        self.visits: dict[str, int] = {}
        self.started_at = 0.0
        self.entered_at = 0.0
        self.effects: dict[str, EffectFacts] = {}
        """Effects of the current attempt that have not ended."""
        self.is_pair = False
        """Whether it is a writer-reviewer pair, whose ends have names of their own."""

    def apply(self, event: ev.Event) -> None:
        """Applies one event."""
        match event:
            case ev.RunStarted():
                self.workflow, self.started_at = event.workflow, event.at
                self.is_pair = bool(pair_settings(event.params))
                self._enter(event.entry, event.at)
            case ev.StepFinished():
                self.round = event.round
                if event.to is not None:
                    self._enter(event.to, event.at)
            case ev.EffectStarted():
                before = self.effects.get(event.id)
                self.effects[event.id] = _effect(event, before)
            case ev.EffectFinished():
                self.effects.pop(event.id, None)
            case ev.AttemptFailed() | ev.AttemptOpened() | ev.AttemptReplaced():
                self.effects.clear()

    def _enter(self, step: str, at: float) -> None:
        self.step, self.entered_at = step, at
        self.visits[step] = self.visits.get(step, 0) + 1
        self.effects.clear()


def pair_settings(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the settings of a pair, which its run stores as one parameter; empty for others."""
    settings = params.get("settings")
    if isinstance(settings, Mapping) and {"preset", "max_turns"} <= settings.keys():
        return settings
    return {}


def _effect(event: ev.EffectStarted, before: EffectFacts | None) -> EffectFacts:
    payload = event.payload
    if not isinstance(payload, dict):
        # Only the first attempt stores what was requested.
        return before._replace(started_at=event.at) if before else EffectFacts(event.kind, event.at)
    argv = payload.get("argv") or [""]
    return EffectFacts(
        event.kind,
        event.at,
        agent=str(payload.get("agent") or ""),
        model=str(payload.get("model") or ""),
        program=str(argv[0]) if event.kind is EffectKind.COMMAND else "",
    )
