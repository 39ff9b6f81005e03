"""The story of a run for people: which steps were visited, what is under way, what it cost.

Another fold of the same events than the runner's: this one forgets values and keeps
durations. `show`, `logs` and the terminal view all read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from signoff.core import events as ev
from signoff.core.edges import ERROR
from signoff.core.effects import EffectKind
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Limits, Spend, Usage
from signoff.core.stop_reason import StopReason, reason_from_json

_ITEM = re.compile(r"(?P<fan>[^/]+)\[(?P<index>\d+)\](?:~\d+)?(?:/|$)")
"""The outermost fan-out item in an effect's id or an item's scope."""
_ORDINAL = re.compile(r"[#~]\d+(?=$|/|\[)")

_WORK = "response"
"""The kind of a request for work in an agent's place."""

LABEL_WIDTH = 60
"""Characters of a command line that are worth showing."""


@dataclass(slots=True)
class StepVisit:
    """One time a step was worked."""

    step: str
    visit: int
    iteration: int
    started_at: float
    seconds: float = 0.0
    """Time at work; waits for people and for quota are left out."""
    outcome: Outcome | None = None
    """None while it is under way."""
    to: str | None = None
    """The step it led to."""
    attempts: int = 1
    effects: Counter[str] = field(default_factory=Counter)
    """How many things it had done outside, by kind; one that was tried again counts again."""
    feedback: str = ""
    """Why the last attempt fell short."""
    error: str = ""
    """What its handler raised, where the workflow says how to go on from there."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided."""

    step: str
    kind: str
    """What was asked for: an approval, a choice, a question."""
    value: Any
    text: str
    """Why, or what else they wrote."""
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class Running:
    """Something under way outside."""

    id: str
    kind: EffectKind
    label: str
    """Who or what is at work: the agent, the program, the file."""
    started_at: float
    attempt: int
    fan: str
    """The fan-out it belongs to, or empty."""
    item: int | None
    """Which item of it, counted from 0."""


@dataclass(slots=True)
class FanOutProgress:
    """How far a fan-out has come."""

    name: str
    total: int | None = None
    """None while nobody has said how many items there are."""
    seen: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    failed: int = 0

    @property
    def size(self) -> int:
        """How many items there are, as far as is known."""
        return self.total if self.total is not None else len(self.seen)


@dataclass(slots=True)
class Timeline:
    """Everything a person watching a run wants to know."""

    workflow: str = ""
    status: Status = Status.RUNNING
    reason: str = ""
    stop_reason: StopReason | None = None
    due_at: float | None = None
    params: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    visits: list[StepVisit] = field(default_factory=list)
    iteration: int = 1
    running: dict[str, Running] = field(default_factory=dict)
    """What is under way now, oldest first."""
    fans: dict[str, FanOutProgress] = field(default_factory=dict)
    """Fan-outs of the current attempt."""
    processes: dict[str, int] = field(default_factory=dict)
    """The process group of what is under way, where it has one."""
    decisions: list[Decision] = field(default_factory=list)
    """What people decided, oldest first; work they did in an agent's place is not among it."""
    spend: Spend = field(default_factory=Spend)
    started_at: float = 0.0
    updated_at: float = 0.0
    _counts: Counter[str] = field(default_factory=Counter)
    _labels: dict[str, str] = field(default_factory=dict)
    _unpaid: set[str] = field(default_factory=set)
    """Calls that were begun and are not on the bill yet, whoever began them."""
    _since: float | None = None

    @property
    def current(self) -> StepVisit | None:
        """The visit under way, or the last one when the run has ended."""
        return self.visits[-1] if self.visits else None

    def seconds(self, now: float | None = None) -> float:
        """Returns the time at work so far."""
        under_way = now - self._since if now is not None and self._since is not None else 0.0
        return self.spend.seconds + max(0.0, under_way)

    def visit_seconds(self, visit: StepVisit, now: float) -> float:
        """Returns the time at work of one visit so far."""
        if visit.outcome is not None or visit is not self.current or self._since is None:
            return visit.seconds
        return visit.seconds + max(0.0, now - self._since)

    def follow(self, events: Iterable[ev.Event]) -> Timeline:
        """Applies events in order."""
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: ev.Event) -> None:
        """Applies one event."""
        how = _HOW.get(event.tag)
        if how is not None:
            how(self, event)
        self.updated_at = event.at

    def close_bill(self) -> None:
        """Counts calls in doubt as made, at unknown cost; for a run that nobody drives."""
        for _ in self._unpaid:
            self.spend.add(None)
        self._unpaid.clear()

    def _enter(self, step: str, at: float) -> None:
        self._counts[step] += 1
        self.visits.append(StepVisit(step, self._counts[step], self.iteration, at))

    def _count_time(self, at: float) -> None:
        if self._since is None:
            return
        took = max(0.0, at - self._since)
        self._since = at
        self.spend.seconds += took
        if self.current is not None:
            self.current.seconds += took

    def _forget_attempt(self) -> None:
        # What was in doubt is asked for by nobody any more, and may have been paid for.
        self.close_bill()
        self.running.clear()
        self.processes.clear()
        self.fans.clear()
        self._labels.clear()

    def _nothing_runs(self) -> None:
        """Forgets what died with its process; requests to people outlive it."""
        self.running = {k: r for k, r in self.running.items() if r.kind is EffectKind.WAIT}
        self.processes.clear()

    def _fan(self, scope: str) -> tuple[FanOutProgress | None, int | None]:
        match = _ITEM.match(scope)
        if match is None:
            return None, None
        index = int(match["index"])
        name = readable(match["fan"])
        fan = self.fans.setdefault(name, FanOutProgress(name))
        fan.seen.add(index)
        return fan, index


def _run_started(line: Timeline, event: ev.RunStarted) -> None:
    line.workflow = event.workflow
    line.params = event.params
    line.limits = Limits.from_json(event.limits)
    line.started_at = line._since = event.at
    line._enter(event.entry, event.at)


def _run_resumed(line: Timeline, event: ev.RunResumed) -> None:
    # A process that died left no stop behind: its last sign of life is where its time ends.
    line._count_time(line.updated_at)
    line._nothing_runs()
    line._since = event.at
    line.status, line.reason, line.due_at = Status.RUNNING, "", None
    line.stop_reason = None


def _run_stopped(line: Timeline, event: ev.RunStopped) -> None:
    line._count_time(event.at)
    line._since = None
    line._nothing_runs()
    line.status, line.reason, line.due_at = event.status, event.reason, event.due_at
    line.stop_reason = reason_from_json(event.stop_reason, event.reason)


def _limits_changed(line: Timeline, event: ev.LimitsChanged) -> None:
    line.limits = Limits.from_json(event.limits)


def _new_attempt(line: Timeline, event: ev.Event) -> None:
    line._forget_attempt()
    if line.current is not None:
        line.current.attempts += 1
        match event:
            case ev.AttemptFailed(problem=said) | ev.AttemptOpened(feedback=said):
                line.current.feedback = said


def _step_finished(line: Timeline, event: ev.StepFinished) -> None:
    line._count_time(event.at)
    line._forget_attempt()
    line.iteration = event.iteration
    if line.current is not None:
        line.current.outcome = event.outcome
        line.current.to = event.to
        line.current.error = error_of(event)
    if event.to is not None:
        line._enter(event.to, event.at)


def _effect_started(line: Timeline, event: ev.EffectStarted) -> None:
    if event.kind is EffectKind.MAP:
        _fan_started(line, event)
        return
    fan, index = line._fan(event.id)
    if event.payload is not None:
        # A later attempt does not repeat what it asks for.
        line._labels[event.id] = label_of(event)
    line.running[event.id] = Running(
        event.id,
        event.kind,
        line._labels.get(event.id) or label_of(event),
        event.at,
        event.attempt,
        fan.name if fan else "",
        index,
    )
    if line.current is not None:
        line.current.effects[event.kind.value] += 1
    if event.kind is EffectKind.ASK:
        line.spend.calls += 1
        if event.attempt > 1 and event.id in line._unpaid:
            line.spend.add(Usage(**event.lost) if event.lost is not None else None)
        line._unpaid.add(event.id)


def _fan_started(line: Timeline, event: ev.EffectStarted) -> None:
    if "/" in event.id:
        return
    name = readable(event.id)
    fan = line.fans.setdefault(name, FanOutProgress(name))
    fan.total = event.payload.get("items") if isinstance(event.payload, dict) else None


def _effect_running(line: Timeline, event: ev.EffectRunning) -> None:
    if isinstance(event.process.get("pid"), int):
        line.processes[event.id] = event.process["pid"]


def _effect_attempt_failed(line: Timeline, event: ev.EffectAttemptFailed) -> None:
    line._count_time(event.at)
    line.processes.pop(event.id, None)
    _charge(line, event)


def _charge(line: Timeline, event: ev.EffectAttemptFailed | ev.EffectFinished) -> None:
    if event.id in line._unpaid:
        line._unpaid.remove(event.id)
        line.spend.add(Usage(**event.usage) if event.usage is not None else None)


def _effect_finished(line: Timeline, event: ev.EffectFinished) -> None:
    line._count_time(event.at)
    line.processes.pop(event.id, None)
    ended = line.running.pop(event.id, None)
    _charge(line, event)
    if ended is not None and ended.kind is EffectKind.WAIT and ended.label != _WORK:
        line.decisions.append(_decision(line, ended, event))


def _decision(line: Timeline, asked: Running, event: ev.EffectFinished) -> Decision:
    reply = event.reply if isinstance(event.reply, dict) else {}
    return Decision(
        line.current.step if line.current is not None else "",
        asked.label,
        reply.get("value"),
        str(reply.get("text") or ""),
        str(reply.get("by") or ""),
        reply.get("at") or event.at,
    )


def _item_finished(line: Timeline, event: ev.ItemFinished) -> None:
    fan, index = line._fan(event.scope)
    if fan is not None and index is not None and "/" not in event.scope:
        fan.done.add(index)


def _item_failed(line: Timeline, event: ev.ItemFailed) -> None:
    fan, _ = line._fan(event.scope)
    if fan is not None:
        fan.failed += 1


_HOW: dict[str, Callable[[Timeline, Any], None]] = {
    ev.RunStarted.tag: _run_started,
    ev.RunResumed.tag: _run_resumed,
    ev.RunStopped.tag: _run_stopped,
    ev.LimitsChanged.tag: _limits_changed,
    ev.AttemptFailed.tag: _new_attempt,
    ev.AttemptOpened.tag: _new_attempt,
    ev.AttemptReplaced.tag: _new_attempt,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectRunning.tag: _effect_running,
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
    error = event.delta.get("set", {}).get("_error")
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def label_of(event: ev.EffectStarted) -> str:
    """Names who or what works on an effect."""
    payload = event.payload if isinstance(event.payload, dict) else {}
    match event.kind:
        case EffectKind.ASK:
            model = payload.get("model")
            agent = str(payload.get("agent", "agent"))
            return f"{agent} ({model})" if model else agent
        case EffectKind.COMMAND:
            line = " ".join(str(part) for part in payload.get("argv", ["command"]))
            return line if len(line) <= LABEL_WIDTH else f"{line[: LABEL_WIDTH - 1]}…"
        case EffectKind.WRITE:
            return str(payload.get("path", "file"))
        case EffectKind.WAIT:
            return str(payload.get("kind", "answer"))
        case _:
            return event.kind.value
