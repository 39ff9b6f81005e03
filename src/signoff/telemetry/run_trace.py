"""The spans of a run: the run, its step visits, and its effects, as the read model has them.

Metrics, the export of traces and live tracing all use these, so they cannot disagree. A process
that resumes a run applies the stored events first and then goes on where the last process stopped.

An effect may be tried several times, and each try is a span. A try that a crash interrupted has no
recorded end. It counts as lost once something replaces it, and ends when its process was last
heard of; until then, its reply may still turn up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED, Outcome, Status
from signoff.core.stop_reason import error_of
from signoff.errors import AgentStopped
from signoff.runtime.timeline import ATTEMPT_ENDS, Running, StepVisit, Timeline


class EffectResult(StrEnum):
    """How one try at an effect ended."""

    OK = "ok"
    ERROR = "error"
    RETRIED = "retried"
    """It failed with a transient error, and was tried again."""
    LOST = "lost"
    """Its process died or was stopped, or its step no longer needed it."""
    OPEN = "open"
    """It has not ended yet."""


@dataclass(frozen=True, slots=True)
class EffectSpan:
    """One try at an effect."""

    step: str
    visit: int
    step_attempt: int
    id: str
    number: int
    """Counts the tries at this effect in its attempt at the step, from 1."""
    kind: EffectKind
    payload: Mapping[str, Any]
    started_at: float
    ended_at: float
    result: EffectResult
    provider: str = ""
    """Who serves the model, if the agent declares it."""
    chat: bool = False
    """Whether it was a single call of a model, and not a program that calls models itself."""
    reply: Any = None
    error: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None

    @property
    def agent(self) -> str:
        """The agent that answered an ask; the one that was asked if none did. Else empty."""
        if self.kind is not EffectKind.ASK:
            return ""
        by = self.reply.get("agent") if isinstance(self.reply, Mapping) else None
        return str(by or self.payload.get("agent", ""))

    @property
    def seconds(self) -> float:
        """How long it took; never negative, even if the clock of another machine was behind."""
        return max(0.0, self.ended_at - self.started_at)


@dataclass(frozen=True, slots=True)
class StepSpan:
    """One visit to a step."""

    step: str
    visit: int
    iteration: int
    started_at: float
    ended_at: float
    outcome: Outcome | None
    """None if it has not finished."""
    attempts: int
    delta: Mapping[str, Any]
    """What it changed in the run's state."""


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The whole run."""

    workflow: str
    started_at: float
    ended_at: float
    status: Status
    iteration: int
    error: str
    """The type of the error that stopped it; empty without one."""


RunPart = EffectSpan | StepSpan | RunSpan


@dataclass(slots=True)
class RunTrace:
    """Returns the spans that end with each event of a run."""

    timeline: Timeline = field(default_factory=Timeline)
    """The run so far; feed events to the trace only, never to this."""
    key: str = ""
    """Distinguishes the run from every other."""

    def apply(self, event: ev.Event) -> list[RunPart]:
        """Applies one event, and returns the spans that end with it."""
        # Before the event is applied, because the timeline forgets an effect with its end.
        ended = list(self._ended_by(event))
        self.timeline.apply(event)
        match event:
            case ev.RunStarted():
                self.key = event.seed
            case ev.RunStopped() if event.status not in NOT_ENDED:
                ended += [*self._unfinished_visit(), self._run()]
        return ended

    def unfinished(self) -> list[RunPart]:
        """Returns spans for what has not ended, up to the last event."""
        if self.timeline.state.status not in NOT_ENDED:
            return []
        now = self.timeline.state.updated_at
        effects = [
            _effect(self._current, each, each.last_heard or now, EffectResult.OPEN)
            for each in self.timeline.unfinished.values()
            if not each.charged
        ]
        return [*effects, *self._unfinished_visit(), self._run()]

    @property
    def _current(self) -> StepVisit:
        visit = self.timeline.current
        return visit if visit is not None else StepVisit("", 0, 1, 0.0)

    def _ended_by(self, event: ev.Event) -> Iterator[RunPart]:
        """Yields what ends with an event; called before the event is applied."""
        visit, unfinished = self._current, self.timeline.unfinished
        effect = unfinished.get(getattr(event, "id", ""))
        match event:
            case ev.EffectStarted() if effect is not None:
                yield from _lost(visit, effect, event.at)
            case ev.EffectAttemptFailed() if effect is not None:
                end: dict[str, Any] = {"error": event.error, "usage": event.usage}
                yield _effect(visit, effect, event.at, EffectResult.RETRIED, **end)
            case ev.EffectFinished() if effect is not None:
                end = {"reply": event.reply, "error": event.error or {}, "usage": event.usage}
                yield _effect(visit, effect, event.at, _result(event.error), **end)
            case _ if isinstance(event, ATTEMPT_ENDS):
                for each in unfinished.values():
                    yield from _lost(visit, each, event.at)
                if isinstance(event, ev.StepFinished):
                    yield _step(visit, event.at, event.outcome, event.delta)

    def _unfinished_visit(self) -> list[StepSpan]:
        visit = self._current
        if not visit.step or visit.outcome is not None:
            return []
        return [_step(visit, self.timeline.state.updated_at, None, {})]

    def _run(self) -> RunSpan:
        state = self.timeline.state
        error = error_of(state.status, state.stop_reason)
        return RunSpan(
            state.workflow, state.started_at, state.updated_at, state.status, state.iteration,
            error.kind if error is not None else "",
        )  # fmt: skip


def _lost(visit: StepVisit, effect: Running, at: float) -> Iterator[EffectSpan]:
    """Yields the span of a try without a recorded end, if that is what it is."""
    if not effect.charged:
        end = at if effect.last_heard is None else effect.last_heard
        yield _effect(visit, effect, end, EffectResult.LOST)


def _result(error: Mapping[str, Any] | None) -> EffectResult:
    if error is None:
        return EffectResult.OK
    # Dashboards alert on errors, and stopping a run is none.
    # A call that was cut off because its run was stopped has not failed.
    stopped = error.get("type") == AgentStopped.__name__
    return EffectResult.LOST if stopped else EffectResult.ERROR


def _effect(
    visit: StepVisit, effect: Running, at: float, result: EffectResult, **end: Any
) -> EffectSpan:
    return EffectSpan(
        step=visit.step,
        visit=visit.visit,
        step_attempt=effect.step_attempt,
        id=effect.id,
        number=effect.number,
        kind=effect.kind,
        payload=effect.payload,
        started_at=effect.started_at,
        ended_at=at,
        result=result,
        provider=effect.provider,
        chat=effect.chat,
        **end,
    )


def _step(
    visit: StepVisit, at: float, outcome: Outcome | None, delta: Mapping[str, Any]
) -> StepSpan:
    return StepSpan(
        visit.step, visit.visit, visit.iteration, visit.started_at, at, outcome, visit.attempts,
        delta,
    )  # fmt: skip
