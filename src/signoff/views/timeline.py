"""The read model of a run: visits, tries at effects, fan-outs, decisions, spend.

Everything that shows a run is a rendering of this one fold: the terminal view, the log, `show`,
the run directory, traces and metrics. So they cannot disagree, and an event of a new kind is
understood here or nowhere. It builds on the runner's own state (`core.fold`) and adds what a
runner can forget: every visit with its duration, which agent works on what since when, and what
humans decided.

An effect may be tried several times, also by several processes. A try that a crash interrupted has
no recorded end. It counts as lost once something replaces it, and ends when its process was last
heard of; until then, its reply may still turn up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.core import events as ev
from signoff.core.amounts import cut
from signoff.core.edges import ERROR
from signoff.core.effects import EffectKind
from signoff.core.errors import AgentStopped
from signoff.core.fold import charge, count_time, evolve
from signoff.core.outcome import NOT_ENDED, Outcome
from signoff.core.requests import AnswerForm, RequestKind
from signoff.core.run_state import RunState
from signoff.core.spend import Spend

_ITEM = re.compile(r"(?P<fan>[^/]+)\[(?P<index>\d+)\](?:~\d+)?(?:/|$)")
"""The outermost fan-out item in an effect's id or an item's scope."""
_ORDINAL = re.compile(r"[#~]\d+(?=$|/|\[)")

_WORK = frozenset(kind.value for kind in RequestKind if kind.answer_form is AnswerForm.WORK)
"""The kinds of requests for work in an agent's place."""

ATTEMPT_ENDS = (ev.AttemptFailed, ev.AttemptOpened, ev.AttemptReplaced, ev.StepFinished)
_COUNTED = (ev.RunStopped, ev.StepFinished, ev.EffectFinished, ev.EffectAttemptFailed)
"""Events up to which time at work is counted."""

ERROR_KEY = "_error"
"""Where a run's state has what the handler of a step raised that was left by `on_error`."""

LABEL_WIDTH = 60
"""Characters of a command line that are worth showing."""


@dataclass(slots=True)
class StepVisit:
    """One visit to a step."""

    step: str
    visit: int
    iteration: int
    started_at: float
    seconds: float = 0.0
    """Time at work, without waits for humans and for quota."""
    outcome: Outcome | None = None
    """None while it is in progress."""
    to: str | None = None
    """The step it led to."""
    attempts: int = 1
    effects: Counter[str] = field(default_factory=Counter)
    """How many effects it started, by kind; a retry counts again."""
    feedback: str = ""
    """Why the last attempt failed."""
    error: str = ""
    """What its handler raised, if the step was left by its `on_error` edge."""

    @property
    def result(self) -> str:
        """How it ended, in a word; empty while it is in progress."""
        # A run that ends with findings open, or incomplete, neither iterates nor skips anything.
        if self.to is None and self.outcome in (Outcome.ITERATE, Outcome.SKIP):
            return "done"
        return self.outcome.value if self.outcome is not None else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a human decided."""

    step: str
    kind: str
    """What was asked for: an approval, a choice, a question."""
    value: Any
    text: str
    """The reason, or what else they wrote."""
    by: str
    at: float
    presence: Mapping[str, Any] = field(default_factory=dict)
    """The signature of the passkey that approved it, where that was required."""


class EffectResult(StrEnum):
    """How one try at an effect ended."""

    OK = "ok"
    ERROR = "error"
    RETRIED = "retried"
    """It failed with a transient error, and is tried again."""
    LOST = "lost"
    """Its process died or was stopped, or its step no longer needed it."""
    OPEN = "open"
    """It has no recorded end."""


@dataclass(slots=True)
class EffectTry:
    """One try at an effect: in progress at first, then with its end."""

    id: str
    kind: EffectKind
    label: str
    """The agent, the program or the file."""
    started_at: float
    attempt: int
    fan: str
    """The fan-out it belongs to, or empty."""
    item: int | None
    """Which item of it, counted from 0."""
    payload: Mapping[str, Any]
    """What was requested; only the first of several attempts repeats it in the journal."""
    visit: StepVisit
    """The visit to a step that it is part of."""
    number: int = 1
    """Counts the tries at this effect in its attempt at the step, crashed ones included."""
    step_attempt: int = 1
    provider: str = ""
    """Who serves the model, if the agent declares it."""
    chat: bool = False
    """Whether it is a single call of a model, and not a program that calls models itself."""
    result: EffectResult = EffectResult.OPEN
    ended_at: float | None = None
    """When it ended, or its process was last heard of; None while it is in progress."""
    reply: Any = None
    error: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """What the request is about, if its author has named that, such as a constraint."""
        return str((self.payload.get("about") or {}).get("name") or "")

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
        end = self.started_at if self.ended_at is None else self.ended_at
        return max(0.0, end - self.started_at)

    def end(self, event: ev.EffectFinished | ev.EffectAttemptFailed) -> None:
        """Notes its recorded end."""
        self.ended_at, self.usage, self.error = event.at, event.usage, event.error or {}
        if isinstance(event, ev.EffectAttemptFailed):
            self.result = EffectResult.RETRIED
            return
        self.reply = event.reply
        self.result = EffectResult.OK if event.error is None else EffectResult.ERROR
        # Dashboards alert on errors, and a call that was cut off with its run has not failed.
        if self.error.get("type") == AgentStopped.__name__:
            self.result = EffectResult.LOST

    def lose(self, at: float) -> None:
        """Notes that something replaces it before its end was recorded."""
        self.result = EffectResult.LOST
        self.ended_at = at if self.ended_at is None else self.ended_at


Ended = EffectTry | StepVisit | RunState
"""What an event may end: a try, a visit, or the run, which may fail and then be resumed."""


@dataclass(slots=True)
class FanOutProgress:
    """The progress of a fan-out."""

    name: str
    total: int | None = None
    """None while the number of items is unknown."""
    seen: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    failed: int = 0

    @property
    def size(self) -> int:
        """The number of items, or of those seen so far if it is unknown."""
        return self.total if self.total is not None else len(self.seen)


@dataclass(slots=True)
class Timeline:
    """Everything that the views of a run show."""

    state: RunState = field(default_factory=RunState)
    """The run as its runner knows it; feed events to the timeline only, never to this."""
    visits: list[StepVisit] = field(default_factory=list)
    running: dict[str, EffectTry] = field(default_factory=dict)
    """Effects in progress, oldest first."""
    unfinished: dict[str, EffectTry] = field(default_factory=dict)
    """Effects of the current attempt without a recorded end, even if their process is gone."""
    fans: dict[str, FanOutProgress] = field(default_factory=dict)
    """Fan-outs of the current attempt."""
    decisions: list[Decision] = field(default_factory=list)
    """What humans decided, oldest first; work they did in an agent's place is not included."""
    _tries: Counter[tuple[int, str]] = field(default_factory=Counter)
    """How often each effect of the current visit was started, by attempt and id."""
    _ended: list[Ended] = field(default_factory=list)
    """What the event that is being applied has ended."""

    @property
    def current(self) -> StepVisit | None:
        """The visit in progress, or the last one when the run has ended."""
        return self.visits[-1] if self.visits else None

    @property
    def spend(self) -> Spend:
        """What the run has cost so far."""
        return self.state.spend

    @property
    def processes(self) -> dict[str, int]:
        """The process group of each effect in progress that has one."""
        records = {effect: self.state.effect(effect) for effect in self.running}
        processes = {effect: r.process for effect, r in records.items() if r and r.process}
        return {e: p["pid"] for e, p in processes.items() if isinstance(p.get("pid"), int)}

    def seconds(self, now: float | None = None) -> float:
        """Returns the time at work so far."""
        return self.state.spend.seconds + self._since_counted(now)

    def visit_seconds(self, visit: StepVisit, now: float) -> float:
        """Returns the time at work of one visit so far."""
        in_progress = visit.outcome is None and visit is self.current
        return visit.seconds + (self._since_counted(now) if in_progress else 0.0)

    def follow(self, events: Iterable[ev.Event]) -> Timeline:
        """Applies events in order."""
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: ev.Event) -> Sequence[Ended]:
        """Applies one event, and returns what ended with it, what is part of another first."""
        state, self._ended = self.state, []
        if isinstance(event, ev.RunResumed):
            # A process that died recorded no stop, so its time ends with its last event.
            count_time(state, state.updated_at)
        elif isinstance(event, _COUNTED):
            count_time(state, event.at)
        before = state.updated_at
        # Read before the event is applied, because the end of a step resets the visit's spend.
        if self.visits and self.visits[-1].outcome is None:
            self.visits[-1].seconds = state.visit_spend.seconds
        if isinstance(event, ATTEMPT_ENDS):
            self._forget_attempt(event.at)
        evolve(state, event)
        if isinstance(event, ev.RunResumed | ev.RunStopped):
            # A process that died recorded no stop; it was last heard of with its last event.
            self._lose_processes(before if isinstance(event, ev.RunResumed) else event.at)
        how = _HOW.get(event.tag)
        if how is not None:
            how(self, event)
        if isinstance(event, ev.RunStopped) and event.status not in NOT_ENDED:
            self._ended += [*self.open_visit(), state]
        return self._ended

    def open_visit(self) -> list[StepVisit]:
        """Returns the visit in progress, if there is one."""
        return [each for each in self.visits[-1:] if each.outcome is None]

    def open_tries(self) -> list[EffectTry]:
        """Returns the tries without a recorded end."""
        return [each for each in self.unfinished.values() if each.result is EffectResult.OPEN]

    def close_bill(self) -> None:
        """Charges calls in doubt at unknown cost; for a run that no process drives."""
        for scope in self.state.effects.values():
            for record in scope.values():
                if record.kind is EffectKind.ASK and not (record.done or record.ended):
                    charge(self.state, record, None)
                    record.ended = True

    def _since_counted(self, now: float | None) -> float:
        since = self.state.active_since
        return 0.0 if now is None or since is None else max(0.0, now - since)

    def _enter(self, at: float) -> None:
        state = self.state
        self.visits.append(StepVisit(state.step or "", state.visit, state.iteration, at))

    def _forget_attempt(self, at: float) -> None:
        # A call in doubt is never asked for again, and may have been paid for.
        self.close_bill()
        for each in self.open_tries():
            self._lose(each, at)
        self.running.clear()
        self.unfinished.clear()
        self.fans.clear()

    def _lose_processes(self, at: float) -> None:
        """Forgets what died with its process; requests to humans outlive it."""
        self.running = {k: r for k, r in self.running.items() if r.kind is EffectKind.WAIT}
        for each in self.unfinished.values():
            if each.ended_at is None and each.id not in self.running:
                each.ended_at = at

    def _lose(self, effect: EffectTry, at: float) -> None:
        effect.lose(at)
        self._ended.append(effect)

    def _fan(self, scope: str) -> tuple[FanOutProgress | None, int | None]:
        match = _ITEM.match(scope)
        if match is None:
            return None, None
        index = int(match["index"])
        name = readable(match["fan"])
        fan = self.fans.setdefault(name, FanOutProgress(name))
        fan.seen.add(index)
        return fan, index


def _new_attempt(line: Timeline, event: ev.Event) -> None:
    if line.current is not None:
        line.current.attempts += 1
        if not isinstance(event, ev.AttemptReplaced):
            line.current.feedback = line.state.feedback or ""


def _step_finished(line: Timeline, event: ev.StepFinished) -> None:
    if line.current is not None:
        line.current.outcome = event.outcome
        line.current.to = event.to
        line.current.error = error_of(event)
        line._ended.append(line.current)
    line._tries.clear()
    if event.to is not None:
        line._enter(event.at)


def _effect_attempt_failed(line: Timeline, event: ev.EffectAttemptFailed) -> None:
    if (failed := line.unfinished.get(event.id)) is not None:
        failed.end(event)
        line._ended.append(failed)


def _effect_started(line: Timeline, event: ev.EffectStarted) -> None:
    if event.kind is EffectKind.MAP:
        _fan_started(line, event)
        return
    fan, index = line._fan(event.id)
    # The journal stores the payload with the first attempt only.
    before = line.unfinished.get(event.id)
    if before is not None and before.result is EffectResult.OPEN:
        line._lose(before, event.at)
    payload = event.payload or (dict(before.payload) if before is not None else {})
    attempt = line.state.attempt
    line._tries[attempt, event.id] += 1
    line.running[event.id] = line.unfinished[event.id] = EffectTry(
        event.id,
        event.kind,
        label_of(event.kind, payload),
        event.at,
        event.attempt,
        fan.name if fan else "",
        index,
        payload,
        line.current or StepVisit("", 0, 1, 0.0),
        number=line._tries[attempt, event.id],
        step_attempt=attempt,
        provider=event.provider,
        chat=event.chat,
    )
    if line.current is not None:
        line.current.effects[event.kind.value] += 1


def _fan_started(line: Timeline, event: ev.EffectStarted) -> None:
    if "/" in event.id:
        return
    name = readable(event.id)
    fan = line.fans.setdefault(name, FanOutProgress(name))
    fan.total = (event.payload or {}).get("items")


def _effect_finished(line: Timeline, event: ev.EffectFinished) -> None:
    if (ended := line.unfinished.pop(event.id, None)) is not None:
        ended.end(event)
        line._ended.append(ended)
    # A human's work in an agent's place is an answer, but not a decision.
    asked = line.running.pop(event.id, None)
    if asked is not None and asked.kind is EffectKind.WAIT and asked.label not in _WORK:
        line.decisions.append(_decision(line, asked, event))


def _decision(line: Timeline, asked: EffectTry, event: ev.EffectFinished) -> Decision:
    reply = event.reply if isinstance(event.reply, dict) else {}
    step = line.current.step if line.current is not None else ""
    text, by = str(reply.get("text") or ""), str(reply.get("by") or "")
    at, presence = reply.get("at") or event.at, reply.get("presence") or {}
    return Decision(step, asked.label, reply.get("value"), text, by, at, presence)


def _item_finished(line: Timeline, event: ev.ItemFinished) -> None:
    fan, index = line._fan(event.scope)
    # Only items of outermost fan-outs are counted; a nested one is part of its item.
    if fan is not None and index is not None and "/" not in event.scope:
        fan.done.add(index)


def _item_failed(line: Timeline, event: ev.ItemFailed) -> None:
    fan, _ = line._fan(event.scope)
    if fan is not None:
        fan.failed += 1


_HOW: dict[str, Callable[[Timeline, Any], None]] = {
    ev.RunStarted.tag: lambda line, event: line._enter(event.at),
    ev.AttemptFailed.tag: _new_attempt,
    ev.AttemptOpened.tag: _new_attempt,
    ev.AttemptReplaced.tag: _new_attempt,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectAttemptFailed.tag: _effect_attempt_failed,
    ev.EffectFinished.tag: _effect_finished,
    ev.ItemFinished.tag: _item_finished,
    ev.ItemFailed.tag: _item_failed,
}


def readable(identity: str) -> str:
    """Returns an effect's or an item's name without the ordinals only the engine needs."""
    return _ORDINAL.sub("", identity)


def error_of(event: ev.StepFinished) -> str:
    """Returns what a step's handler raised, when the step was left by its `on_error` edge."""
    if event.way.rpartition("/")[2] != ERROR:
        return ""
    error = event.delta.get("set", {}).get(ERROR_KEY)
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def label_of(kind: EffectKind, payload: Mapping[str, Any]) -> str:
    """Returns the agent, program or file of an effect, for display."""
    match kind:
        case EffectKind.ASK:
            model = payload.get("model")
            agent = str(payload.get("agent", "agent"))
            return f"{agent} ({model})" if model else agent
        case EffectKind.COMMAND:
            line = " ".join(str(part) for part in payload.get("argv", ["command"]))
            return cut(line, LABEL_WIDTH)
        case EffectKind.WRITE | EffectKind.READ:
            return str(payload.get("path", "file"))
        case EffectKind.REPLACE:
            return "files of the project"
        case EffectKind.WAIT:
            return str(payload.get("kind", "answer"))
        case _:
            return kind.value
