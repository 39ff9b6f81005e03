"""Describes a run's events in plain lines, for logs and for output that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.effects import EffectKind, scope_of
from signoff.core.outcome import Status
from signoff.core.spend import Usage
from signoff.core.stop_reason import AnswerPending, NotConverging, StopReason
from signoff.errors import AgentStopped
from signoff.runtime.amounts import count, duration, money
from signoff.runtime.timeline import Running, StepVisit, Timeline, error_of, readable

SHOWN_VALUE = 60
SHOWN_WHY = 500
"""Characters of an answer, and of its reason, that are shown."""


class Weight(StrEnum):
    """How much a line matters to someone who watches the run."""

    DETAIL = "detail"
    NEWS = "news"
    TROUBLE = "trouble"


class LogLine(NamedTuple):
    """One line of a run's log."""

    at: float
    text: str
    weight: Weight = Weight.NEWS


Lines = Iterator[tuple[str, Weight]]


class Narrator:
    """Follows one run and describes its events."""

    def __init__(self, timeline: Timeline | None = None) -> None:
        self.timeline = timeline if timeline is not None else Timeline()
        self._reasons: set[str] = set()

    def narrate(self, event: ev.Event) -> list[LogLine]:
        """Returns the lines that describe an event, in order."""
        if isinstance(event, _NEW_ATTEMPTS):
            self._reasons.clear()
        before, status = self.timeline.current, self.timeline.state.status
        ended = self.timeline.running.get(getattr(event, "id", ""))
        self.timeline.apply(event)
        describe = _DESCRIBE.get(event.tag)
        if describe is None:
            return []
        scene = _Scene(self.timeline, before, status, ended, self._reasons)
        return [LogLine(event.at, text, weight) for text, weight in describe(scene, event)]


_NEW_ATTEMPTS = (
    ev.RunResumed,
    ev.StepFinished,
    ev.AttemptFailed,
    ev.AttemptOpened,
    ev.AttemptReplaced,
)
"""After these, a failure that was described before is described again in full."""


def describe_stop(status: str, reason: StopReason | None) -> tuple[str, str]:
    """Returns how a run stopped, given its status as text, and why."""
    match reason:
        case None | AnswerPending():
            return status, ""
        case NotConverging(rule=rule, evidence=evidence):
            return f"{status} ({rule})", evidence
        case _:
            return status, str(reason)


def describe_answer(answer: Mapping[str, Any]) -> str:
    """Returns an answer with who gave it and why: `rejected by ann: too long`."""
    value, by = answer.get("value"), answer.get("by")
    why = " ".join(str(answer.get("text") or "").split())
    match value:
        case True | False:
            decision = "approved" if value else "rejected"
        case "" | None:
            decision = "answered"
        case _:
            first_line = str(value).strip().partition("\n")[0]
            decision = f"answered {_cut(first_line, SHOWN_VALUE)!r}"
    author = f" by {by}" if by else ""
    return f"{decision}{author}{why and f': {_cut(why, SHOWN_WHY)}'}"


class _Scene(NamedTuple):
    line: Timeline
    before: StepVisit | None
    """The current visit before the event."""
    status: Status
    """The run's status before the event."""
    ended: Running | None
    """The effect in progress that the event is about."""
    reasons: set[str]
    """Reasons of failed items that were described already."""

    @property
    def step(self) -> str:
        return self.before.step if self.before else ""

    def item_failed(self, what: str, reason: str) -> tuple[str, Weight]:
        """Describes an item's failure; of many with the same reason, only the first in full."""
        if reason in self.reasons:
            return f"{what} failed for the same reason", Weight.DETAIL
        self.reasons.add(reason)
        return f"{what} failed: {reason}", Weight.TROUBLE


def _run_started(scene: _Scene, event: ev.RunStarted) -> Lines:
    yield f"workflow {event.workflow} started", Weight.NEWS
    yield from _entered(scene.line.current)


def _run_resumed(scene: _Scene, _event: ev.RunResumed) -> Lines:
    where = f" at {scene.step}" if scene.before else ""
    if scene.before and scene.status is Status.RUNNING:
        # The journal has no stop before this resume, so the process did not end normally.
        yield "its process had died", Weight.TROUBLE
    yield f"resumed{where}", Weight.NEWS


def _run_stopped(scene: _Scene, event: ev.RunStopped) -> Lines:
    fine = event.status in (Status.COMPLETED, Status.WAITING, Status.PARKED)
    how, why = describe_stop(event.status.value.replace("_", " "), scene.line.state.stop_reason)
    yield f"{how}{why and f': {why}'}", Weight.NEWS if fine else Weight.TROUBLE


def _limits_changed(_scene: _Scene, event: ev.LimitsChanged) -> Lines:
    listed = ", ".join(f"{name} {value:g}" for name, value in event.limits.items())
    yield f"limits are now: {listed or 'none'}", Weight.NEWS


def _agent_switched(_scene: _Scene, event: ev.AgentSwitched) -> Lines:
    replaced = "every agent" if event.agent == ev.ANY_AGENT else event.agent
    yield f"{event.to} answers in place of {replaced} from here on", Weight.NEWS


def _params_corrected(_scene: _Scene, event: ev.ParamsCorrected) -> Lines:
    listed = ", ".join(f"{name} {value!r:.60}" for name, value in event.params.items())
    yield f"parameters are now: {listed}", Weight.NEWS


def _definition_adopted(_scene: _Scene, event: ev.DefinitionAdopted) -> Lines:
    yield f"continues with the changed definition {event.definition[:12]}", Weight.NEWS


def _attempt_failed(scene: _Scene, event: ev.AttemptFailed) -> Lines:
    yield f"{scene.step}: retrying: {event.problem}", Weight.TROUBLE


def _escalated(scene: _Scene, event: ev.Escalated) -> Lines:
    yield f"{scene.step}: a human has to decide: {event.problem}", Weight.TROUBLE


def _attempt_opened(scene: _Scene, event: ev.AttemptOpened) -> Lines:
    yield f"{scene.step}: a human sent it back: {event.feedback}", Weight.NEWS


def _attempt_replaced(scene: _Scene, _event: ev.AttemptReplaced) -> Lines:
    yield f"{scene.step}: started over, because its requests have changed", Weight.NEWS


def _limit_lifted(_scene: _Scene, event: ev.LimitLifted) -> Lines:
    yield f"a human let {event.way} continue", Weight.NEWS


def _step_finished(scene: _Scene, event: ev.StepFinished) -> Lines:
    took = f" in {duration(scene.before.seconds)}" if scene.before else ""
    error = error_of(event)
    if error:
        yield f"{scene.step}: {event.outcome.value}{took}: {error}", Weight.TROUBLE
    else:
        yield f"{scene.step}: {event.outcome.value}{took}", Weight.NEWS
    if event.to is not None:
        yield from _entered(scene.line.current)


def _effect_started(scene: _Scene, event: ev.EffectStarted) -> Lines:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    match event.kind:
        case EffectKind.WAIT:
            yield (
                f"{scene.step}: waits for a human ({scene.line.running[event.id].label})",
                Weight.NEWS,
            )
        case EffectKind.ASK | EffectKind.COMMAND:
            verb = "asks" if event.kind is EffectKind.ASK else "runs"
            who = scene.line.running[event.id].label
            yield f"{_where(scene, event.id)}: {verb} {who}{again}", Weight.DETAIL


def _effect_finished(scene: _Scene, event: ev.EffectFinished) -> Lines:
    if event.error is not None:
        yield from _effect_failed(scene, event.id, event.error)
        return
    if scene.ended is None:
        return
    where, who = _where(scene, event.id), scene.ended.label
    took = duration(event.at - scene.ended.started_at)
    weight = Weight.DETAIL if scene.ended.fan else Weight.NEWS
    match scene.ended.kind:
        case EffectKind.ASK:
            by = _answerer(event.reply, who)
            yield f"{where}: {by} answered in {took}{_usage(event.usage)}", weight
        case EffectKind.COMMAND:
            code = event.reply.get("code") if isinstance(event.reply, dict) else None
            yield f"{where}: {who} exited with {code} in {took}", weight
        case EffectKind.WRITE:
            yield f"{where}: wrote {who}", weight
        case EffectKind.WAIT:
            reply = event.reply if isinstance(event.reply, dict) else {}
            yield f"{where}: {describe_answer(reply)}", Weight.NEWS


def _effect_failed(scene: _Scene, effect: str, error: dict[str, Any]) -> Lines:
    if "failures" in error:
        yield from _items_failed(scene, effect, error["failures"])
        return
    if scene.ended is None:
        return
    what = f"{_where(scene, effect)}: {scene.ended.label}"
    if error.get("type") == AgentStopped.__name__:
        # Its run was stopped or its step timed out, which has its own line.
        yield f"{what} was stopped", Weight.DETAIL
    elif scene.ended.fan:
        yield scene.item_failed(what, error.get("message", ""))
    else:
        yield f"{what} failed: {error.get('message', '')}", Weight.TROUBLE


def _items_failed(scene: _Scene, fan: str, failures: dict[str, str]) -> Lines:
    if len(set(failures.values())) < len(failures):
        # Some of them were not described in full.
        name = readable(fan)
        yield f"{scene.step}: {count(len(failures), 'item')} of {name} failed", Weight.TROUBLE


def _answerer(reply: object, asked: str) -> str:
    """Returns who answered, and for whom if another agent was asked."""
    by = reply.get("agent") if isinstance(reply, dict) else None
    return asked if by is None or asked.split(" ")[0] == by else f"{by} (for {asked})"


def _item_finished(scene: _Scene, event: ev.ItemFinished) -> Lines:
    fan = scene.line.fans.get(readable(event.scope.rpartition("[")[0]))
    if fan is None:
        return
    # A line for each of a thousand items would drown everything else.
    last = len(fan.done) == fan.size and not scene.line.running
    weight = Weight.NEWS if last else Weight.DETAIL
    yield f"{scene.step}: {fan.name} {len(fan.done)}/{fan.size}", weight


def _item_failed(scene: _Scene, event: ev.ItemFailed) -> Lines:
    yield scene.item_failed(f"{scene.step} {readable(event.scope)}:", event.problem)


_DESCRIBE: dict[str, Callable[[_Scene, Any], Lines]] = {
    ev.RunStarted.tag: _run_started,
    ev.RunResumed.tag: _run_resumed,
    ev.RunStopped.tag: _run_stopped,
    ev.LimitsChanged.tag: _limits_changed,
    ev.AgentSwitched.tag: _agent_switched,
    ev.ParamsCorrected.tag: _params_corrected,
    ev.DefinitionAdopted.tag: _definition_adopted,
    ev.AttemptFailed.tag: _attempt_failed,
    ev.Escalated.tag: _escalated,
    ev.AttemptOpened.tag: _attempt_opened,
    ev.AttemptReplaced.tag: _attempt_replaced,
    ev.LimitLifted.tag: _limit_lifted,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectFinished.tag: _effect_finished,
    ev.ItemFinished.tag: _item_finished,
    ev.ItemFailed.tag: _item_failed,
}


def _entered(visit: StepVisit | None) -> Lines:
    if visit is None:
        return
    marks = []
    if visit.visit > 1:
        marks.append(f"visit {visit.visit}")
    if visit.iteration > 1:
        marks.append(f"iteration {visit.iteration}")
    tail = f" ({', '.join(marks)})" if marks else ""
    yield f"{visit.step}: begins{tail}", Weight.NEWS


def _where(scene: _Scene, effect: str) -> str:
    """Returns the step, and inside a fan-out also the item."""
    scope = readable(scope_of(effect))
    return f"{scene.step} {scope}" if scope else scene.step


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _usage(data: dict[str, Any] | None) -> str:
    if data is None:
        return ""
    usage = Usage(**data)
    parts = []
    if usage.tokens is not None:
        parts.append(count(usage.tokens, "token"))
    if usage.usd is not None:
        parts.append(money(usage.usd))
    return f" ({', '.join(parts)})" if parts else ""
