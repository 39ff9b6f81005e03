"""The state of a run: everything a runner needs to continue it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.core.delta import Delta, apply
from signoff.core.effects import EffectKind, scope_of
from signoff.core.frozen import FrozenDict
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import LedgerEntry, Limits, Spend
from signoff.core.stop_reason import Rejected, StopReason


class Stage(StrEnum):
    """The stage that the current visit of a step has reached."""

    ENTER = "enter"
    WORK = "work"
    CHECK = "check"
    GATE = "gate"
    ESCALATED = "escalated"


@dataclass(slots=True)
class EffectRecord:
    """What the journal has about one effect of the current attempt."""

    kind: EffectKind
    digest: str
    attempt: int = 1
    done: bool = False
    reply: Any = None
    error: dict[str, Any] | None = None
    process: dict[str, Any] | None = None
    on_crash: str = "rerun"
    agent: str = ""
    """The agent and the model of a call."""
    model: str = ""
    ended: bool = False
    """Whether its last attempt has failed and is charged; a retry follows."""


@dataclass(slots=True)
class PendingResult:
    """A step's result that waits for a human's decision."""

    outcome: Outcome | None
    delta: Delta
    problem: str = ""
    way: str = ""
    """The key of the edge whose bound was reached, or `ROUNDS`; empty for other decisions."""


@dataclass(slots=True)
class RunState:
    """Everything a runner needs to continue a run."""

    workflow: str = ""
    definition: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seed: str = ""
    folder: str = ""
    """The folder it was started in."""
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Agents that the user switched, each with the one that answers in its place."""
    status: Status = Status.RUNNING
    reason: str = ""
    """Why it stopped, as text."""
    stop_reason: StopReason | None = None
    """Why it stopped, as a value."""
    due_at: float | None = None
    step: str | None = None
    """The current step; the last one after the run has ended."""
    visits: dict[str, int] = field(default_factory=dict)
    iteration: int = 1
    attempt: int = 1
    stage: Stage = Stage.ENTER
    feedback: str | None = None
    previous_answers: dict[str, str] = field(default_factory=dict)
    """The agents' answers in the previous attempt, by key, for retries to show."""
    counters: dict[str, int] = field(default_factory=dict)
    """How often each counted edge was taken, now and when its limit was last lifted."""
    state: FrozenDict = field(default_factory=FrozenDict)
    """What the handlers have produced so far."""
    outcome: Outcome | None = None
    """How the last finished step ended."""
    pending: PendingResult | None = None
    effects: dict[str, dict[str, EffectRecord]] = field(default_factory=dict)
    """The effects of the current attempt, by scope and id; finished steps and items need none."""
    items: dict[str, Any] = field(default_factory=dict)
    """Results of finished fan-out items of the current attempt, by scope."""
    item_failures: dict[str, list[str]] = field(default_factory=dict)
    """Why attempts at fan-out items fell short, by scope."""
    forgiven: dict[str, int] = field(default_factory=dict)
    """How many of those no longer count, because the run failed and was resumed since."""
    logged: dict[str, dict[str, int]] = field(default_factory=dict)
    """How often each line of the current attempt was logged, by scope and the line's digest."""
    spend: Spend = field(default_factory=Spend)
    visit_spend: Spend = field(default_factory=Spend)
    ledger: dict[tuple[str, str, str], LedgerEntry] = field(default_factory=dict)
    """The same by step, agent and model."""
    started_at: float = 0.0
    updated_at: float = 0.0
    active_since: float | None = None
    """Since when time is counted; None while no process drives the run."""
    adopted: bool = False
    """Whether a changed definition was adopted since the current attempt started."""
    begun: int = 1
    """The number of the last attempt that started without effects of an earlier one.

    This name and `Pending.way` are part of stored checkpoints."""
    replaced: int = 0
    """Attempts at the current visit that were started over; they do not count as tries."""

    @property
    def visit(self) -> int:
        """How many times the current step has been entered, this time included."""
        return self.visits.get(self.step or "", 0)

    @property
    def late(self) -> bool:
        """Whether the current attempt continues with effects of one that ran out of time."""
        return self.begun < self.attempt

    @property
    def state_with_pending(self) -> Mapping[str, Any]:
        """What the handlers have produced so far, including what waits for a decision."""
        return apply(self.state, self.pending.delta) if self.pending else self.state

    def effect(self, identity: str) -> EffectRecord | None:
        """Returns the record of an effect of the current attempt, if there is one."""
        return self.effects.get(scope_of(identity), {}).get(identity)

    @property
    def last_rejection(self) -> Rejected | None:
        """The rejection that the current attempt got last from a human; None without one.

        A workflow that ends because of it need not repeat the reason.
        """
        waits = [r for r in self.effects.get("", {}).values() if r.kind is EffectKind.WAIT]
        replies = [record.reply for record in waits if isinstance(record.reply, dict)]
        rejected = [reply for reply in replies if reply.get("value") is False]
        if not rejected:
            return None
        return Rejected(str(rejected[-1].get("by") or ""), str(rejected[-1].get("text") or ""))
