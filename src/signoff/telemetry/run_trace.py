"""The spans of a run: the run, its step visits, and its effects, folded from the journal.

Metrics, the export of traces and live tracing all use this one fold, so they cannot disagree. It
needs nothing but events: a process that resumes a run feeds it the stored ones first and then goes
on where the last process stopped.

An effect may be tried several times, and each try is a span. A try that a crash interrupted has no
recorded end. It counts as lost once something replaces it, and ends when its process was last
heard of; until then, its reply may still turn up.
"""

from __future__ import annotations

from collections import Counter
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
class _Started:
    """An effect that has started."""

    number: int
    step_attempt: int
    provider: str
    chat: bool
    running: Running
    charged: bool = False
    """Whether its end is recorded already, and a retry follows."""
    last_heard: float | None = None
    """When its process stopped, if it did before the effect ended."""


@dataclass(slots=True)
class RunTrace:
    """Folds events into spans."""

    timeline: Timeline = field(default_factory=Timeline)
    """The run so far; feed events to the trace only, never to this."""
    key: str = ""
    """Distinguishes the run from every other."""
    _started: dict[str, _Started] = field(default_factory=dict)
    _tries: Counter[tuple[int, str]] = field(default_factory=Counter)

    def apply(self, event: ev.Event) -> list[RunPart]:
        """Applies one event, and returns the spans that end with it."""
        ended = list(self._ended_by(event))
        before = self.timeline.state.updated_at
        self.timeline.apply(event)
        state = self.timeline.state
        match event:
            case ev.RunStarted():
                self.key = event.seed
            case ev.EffectStarted() if event.kind not in (EffectKind.MAP, EffectKind.NOW):
                self._tries[state.attempt, event.id] += 1
                number = self._tries[state.attempt, event.id]
                running = self.timeline.unfinished[event.id]
                self._started[event.id] = _Started(
                    number, state.attempt, event.provider, event.chat, running
                )
            case ev.RunResumed():
                self._lose_processes(before)
            case ev.RunStopped():
                self._lose_processes(event.at)
                if event.status not in NOT_ENDED:
                    ended += self._unfinished_visit()
                    ended.append(self._run())
            case ev.StepFinished():
                self._started.clear()
                self._tries.clear()
        return ended

    def unfinished(self) -> list[RunPart]:
        """Returns spans for what has not ended, up to the last event."""
        now = self.timeline.state.updated_at
        effects = [
            _effect(self._current, each, each.last_heard or now, EffectResult.OPEN)
            for each in self._started.values()
            if not each.charged
        ]
        if self.timeline.state.status not in NOT_ENDED:
            return []
        return [*effects, *self._unfinished_visit(), self._run()]

    @property
    def _current(self) -> StepVisit:
        visit = self.timeline.current
        return visit if visit is not None else StepVisit("", 0, 1, 0.0)

    def _ended_by(self, event: ev.Event) -> Iterator[RunPart]:
        """Yields what ends with an event; called before the event is applied."""
        visit = self._current
        match event:
            case ev.EffectStarted() if event.id in self._started:
                yield from self._lost(event.id, event.at)
            case ev.EffectAttemptFailed() if event.id in self._started:
                started = self._started[event.id]
                started.charged = True
                yield _effect(
                    visit, started, event.at, EffectResult.RETRIED,
                    error=event.error, usage=event.usage,
                )  # fmt: skip
            case ev.EffectFinished() if event.id in self._started:
                yield _effect(
                    visit, self._started.pop(event.id), event.at, _result(event.error),
                    reply=event.reply, error=event.error or {}, usage=event.usage,
                )  # fmt: skip
            case _ if isinstance(event, ATTEMPT_ENDS):
                for each in list(self._started):
                    yield from self._lost(each, event.at)
                if isinstance(event, ev.StepFinished):
                    yield _step(visit, event.at, event.outcome, event.delta)

    def _lost(self, identity: str, at: float) -> Iterator[EffectSpan]:
        """Yields the span of a try without a recorded end, if that is what it is."""
        started = self._started.pop(identity)
        if not started.charged:
            end = at if started.last_heard is None else started.last_heard
            yield _effect(self._current, started, end, EffectResult.LOST)

    def _lose_processes(self, at: float) -> None:
        """Notes when the process of an effect ended; requests to humans need none."""
        for each in self._started.values():
            if each.last_heard is None and each.running.id not in self.timeline.running:
                each.last_heard = at

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


def _result(error: Mapping[str, Any] | None) -> EffectResult:
    if error is None:
        return EffectResult.OK
    # A call that was cut off because its run was stopped has not failed.
    stopped = error.get("type") == AgentStopped.__name__
    return EffectResult.LOST if stopped else EffectResult.ERROR


def _effect(
    visit: StepVisit, started: _Started, at: float, result: EffectResult, **end: Any
) -> EffectSpan:
    running = started.running
    return EffectSpan(
        step=visit.step,
        visit=visit.visit,
        step_attempt=started.step_attempt,
        id=running.id,
        number=started.number,
        kind=running.kind,
        payload=running.payload,
        started_at=running.started_at,
        ended_at=at,
        result=result,
        provider=started.provider,
        chat=started.chat,
        **end,
    )


def _step(
    visit: StepVisit, at: float, outcome: Outcome | None, delta: Mapping[str, Any]
) -> StepSpan:
    return StepSpan(
        visit.step, visit.visit, visit.iteration, visit.started_at, at, outcome, visit.attempts,
        delta,
    )  # fmt: skip
