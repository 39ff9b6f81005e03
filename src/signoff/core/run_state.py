"""The state of a run: everything a runner has to know to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.core.delta import Delta, merged
from signoff.core.effects import EffectKind, scope_of
from signoff.core.frozen import FrozenDict
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import LedgerEntry, Limits, Spend
from signoff.core.stop_reason import StopReason


class Stage(StrEnum):
    """How far the current visit of a step has come."""

    ENTER = "enter"
    WORK = "work"
    CHECK = "check"
    GATE = "gate"
    ESCALATED = "escalated"


@dataclass(slots=True)
class EffectRecord:
    """What is known of one effect of the current attempt."""

    kind: EffectKind
    digest: str
    attempt: int = 1
    done: bool = False
    reply: Any = None
    error: dict[str, Any] | None = None
    process: dict[str, Any] | None = None
    on_crash: str = "rerun"
    agent: str = ""
    """Who is asked, and for which model, when it is a call."""
    model: str = ""
    shape: str = field(default="", compare=False)
    """The digest of the request without its wording, as a checkpoint stored it; else empty."""
    request: dict[str, Any] | None = field(default=None, compare=False)
    """The request without its wording, from which `core.wording` can compute the shape."""
    ended: bool = False
    """Whether the last attempt is known to have failed and has been charged; a retry follows."""


@dataclass(slots=True)
class Pending:
    """What a step produced, held back until a person has decided."""

    outcome: Outcome | None
    delta: Delta
    problem: str = ""
    way: str = ""


@dataclass(slots=True)
class RunState:
    """Everything a runner has to know to go on."""

    workflow: str = ""
    definition: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seed: str = ""
    folder: str = ""
    """Where it was started."""
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Which agent answers in place of another, since somebody switched them."""
    status: Status = Status.RUNNING
    reason: str = ""
    """The text of why it stopped."""
    stop_reason: StopReason | None = None
    """Why it stopped, as a value."""
    due_at: float | None = None
    step: str | None = None
    """The step the run stands in; the last one when it has ended."""
    visits: dict[str, int] = field(default_factory=dict)
    iteration: int = 1
    attempt: int = 1
    stage: Stage = Stage.ENTER
    feedback: str | None = None
    previous_answers: dict[str, str] = field(default_factory=dict)
    """What agents answered in the attempt before this one, by key, so that a retry can show it."""
    counters: dict[str, int] = field(default_factory=dict)
    """How often each loop has gone round; under `ROUNDS`, how often more rounds were granted."""
    state: FrozenDict = field(default_factory=FrozenDict)
    """What the handlers have made so far."""
    outcome: Outcome | None = None
    """How the last finished step ended."""
    pending: Pending | None = None
    effects: dict[str, dict[str, EffectRecord]] = field(default_factory=dict)
    """Of the current attempt only, by scope and id; a finished step or item needs none."""
    items: dict[str, Any] = field(default_factory=dict)
    """Results of finished fan-out items of the current attempt, by scope."""
    item_failures: dict[str, list[str]] = field(default_factory=dict)
    """Why attempts at fan-out items fell short, by scope."""
    forgiven: dict[str, int] = field(default_factory=dict)
    """How many of those were before the run last failed: its resume grants new attempts."""
    spend: Spend = field(default_factory=Spend)
    visit_spend: Spend = field(default_factory=Spend)
    ledger: dict[tuple[str, str, str], LedgerEntry] = field(default_factory=dict)
    """The same by step, agent and model."""
    started_at: float = 0.0
    updated_at: float = 0.0
    active_since: float | None = None
    """When the time being counted began; None while nobody works the run."""
    adopted: bool = False
    """Whether the definition was changed since the current attempt began."""
    begun: int = 1
    """Which attempt was the last to begin from the step's top."""
    replaced: int = 0
    """Attempts at the current visit that could not go on so: they are no tries."""

    @property
    def visit(self) -> int:
        """Which time the current step is being visited."""
        return self.visits.get(self.step or "", 0)

    @property
    def late(self) -> bool:
        """Whether the current attempt goes on from what one before it had finished in time."""
        return self.begun < self.attempt

    @property
    def state_with_pending(self) -> Mapping[str, Any]:
        """What the handlers have produced so far, including what waits for a decision."""
        return merged(self.state, self.pending.delta) if self.pending else self.state

    def effect(self, identity: str) -> EffectRecord | None:
        """Returns what is known of an effect of the current attempt."""
        return self.effects.get(scope_of(identity), {}).get(identity)
