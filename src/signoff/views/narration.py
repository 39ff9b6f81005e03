"""Describes a run's events in plain lines, for logs and for output that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.amounts import count, cut, duration, money
from signoff.core.effects import EffectKind, scope_of
from signoff.core.errors import AgentStopped
from signoff.core.outcome import Status
from signoff.core.questions import format_answer
from signoff.core.requests import request_word
from signoff.core.spend import Usage
from signoff.core.stop_reason import describe_stop
from signoff.views.timeline import (
    ATTEMPT_ENDS,
    EffectTry,
    StepVisit,
    Timeline,
    error_of,
    readable,
)

SHOWN_VALUE = 60
SHOWN_WHY = 500
"""Characters of an answer, and of its reason, that are shown."""


class Weight(StrEnum):
    """How much a line matters to someone who watches the run."""

    DETAIL = "detail"
    NEWS = "news"
    TROUBLE = "trouble"


DETAIL, NEWS, TROUBLE = Weight


class LogLine(NamedTuple):
    """One line of a run's log."""

    at: float
    text: str
    weight: Weight = NEWS


Lines = Iterator[tuple[str, Weight]]


class Narrator:
    """Follows one run and describes its events."""

    def __init__(
        self,
        timeline: Timeline | None = None,
        warnings_of: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _state: (),
        news_of: Callable[[ev.Event], Sequence[str]] = lambda _event: (),
    ) -> None:
        """`warnings_of` returns the warnings that the steps of a run have stored in its state.

        `news_of` returns what an event adds to the run's review: findings and verdicts.
        """
        self.timeline = timeline if timeline is not None else Timeline()
        self._warnings_of = warnings_of
        self._news_of = news_of
        self._warned = 0
        """How many warnings were described already."""
        self._reasons: set[str] = set()
        """Reasons of failed items that were described already."""
        # The next three are as of the moment before the event that is being described.
        self._visit: StepVisit | None = None
        self._status = Status.RUNNING
        self._ended: EffectTry | None = None
        """The effect in progress that the event is about."""

    def narrate(self, event: ev.Event) -> list[LogLine]:
        """Returns the lines that describe an event, in order."""
        if isinstance(event, (*ATTEMPT_ENDS, ev.RunResumed)):
            # From here on, a failure that was described before is described in full again.
            self._reasons.clear()
        self._visit, self._status = self.timeline.current, self.timeline.state.status
        self._ended = self.timeline.running.get(getattr(event, "id", ""))
        self.timeline.apply(event)
        # A step ends after what it has found and changed.
        lines = [(text, NEWS) for text in self._news_of(event)]
        lines += self._warnings() if isinstance(event, _WITH_STATE) else ()
        if event.tag in _TEMPLATES:
            template, weight = _TEMPLATES[event.tag]
            lines.append((template.format(step=self._step, event=event), weight))
        if event.tag in _DESCRIBE:
            lines += _DESCRIBE[event.tag](self, event)
        # A question or an error may have several lines; the second could pass for an entry.
        return [LogLine(event.at, " ".join(text.split()), weight) for text, weight in lines]

    def _warnings(self) -> Lines:
        """Yields what a step warns of; one whose result a human has to decide about ends later."""
        warnings = self._warnings_of(self.timeline.state.state_with_pending)
        for text in warnings[self._warned :]:
            yield f"{self._step}: warning: {text}", NEWS
        self._warned = len(warnings)

    @property
    def _step(self) -> str:
        return self._visit.step if self._visit else ""

    def _run_started(self, event: ev.RunStarted) -> Lines:
        yield f"workflow {event.workflow} started", NEWS
        yield _entered(self.timeline.visits[-1]), NEWS

    def _run_resumed(self, _event: ev.RunResumed) -> Lines:
        where = f" at {self._step}" if self._visit else ""
        if self._visit and self._status is Status.RUNNING:
            # The journal has no stop before this resume, so its process could not record one.
            yield "the previous process is gone; nothing finished is repeated", TROUBLE
        yield f"resumed{where}", NEWS

    def _run_stopped(self, event: ev.RunStopped) -> Lines:
        planned = (Status.COMPLETED, Status.WAITING, Status.PARKED, Status.QUEUED)
        fine = event.status in planned
        status = event.status.value.replace("_", " ")
        how, why = describe_stop(status, self.timeline.state.stop_reason)
        yield f"{how}{why and f': {why}'}", NEWS if fine else TROUBLE

    def _limits_changed(self, event: ev.LimitsChanged) -> Lines:
        listed = ", ".join(f"{name} {value:g}" for name, value in event.limits.items())
        yield f"limits are now: {listed or 'none'}", NEWS

    def _agent_switched(self, event: ev.AgentSwitched) -> Lines:
        replaced = "every agent" if event.agent == ev.ANY_AGENT else event.agent
        yield f"{event.to} answers in place of {replaced} from here on", NEWS

    def _params_corrected(self, event: ev.ParamsCorrected) -> Lines:
        listed = ", ".join(f"{name} {value!r:.60}" for name, value in event.params.items())
        yield f"parameters are now: {listed}", NEWS

    def _step_finished(self, event: ev.StepFinished) -> Lines:
        took = f" in {duration(self._visit.seconds)}" if self._visit else ""
        error = error_of(event)
        line = f"{self._step}: {self._visit.result if self._visit else event.outcome.value}{took}"
        yield (f"{line}: {error}", TROUBLE) if error else (line, NEWS)
        if event.to is not None:
            yield _entered(self.timeline.visits[-1]), NEWS

    def _effect_started(self, event: ev.EffectStarted) -> Lines:
        running = self.timeline.running.get(event.id)
        label = running.label if running is not None else ""
        if event.kind is EffectKind.WAIT:
            word = request_word(running.payload) if running is not None else "answer"
            yield f"{self._where(event.id)}: waits for a human ({word})", NEWS
        elif event.kind in (EffectKind.ASK, EffectKind.COMMAND):
            verb = "asks" if event.kind is EffectKind.ASK else "runs"
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            yield f"{self._where(event.id)}: {verb} {label}{again}", DETAIL

    def _effect_finished(self, event: ev.EffectFinished) -> Lines:
        if event.error is not None:
            yield from self._effect_failed(event.id, event.error)
            return
        if self._ended is None:
            return
        where, who = self._where(event.id), self._ended.label
        took = duration(event.at - self._ended.started_at)
        reply = event.reply if isinstance(event.reply, dict) else {}
        weight = DETAIL if self._ended.fan else NEWS
        match self._ended.kind:
            case EffectKind.ASK:
                by = _answerer(reply, who)
                yield f"{where}: {by} answered in {took}{_usage(event.usage)}", weight
            case EffectKind.COMMAND:
                yield f"{where}: {who} exited with {reply.get('code')} in {took}", weight
            case EffectKind.WRITE | EffectKind.REPLACE:
                yield f"{where}: {_wrote(reply, who)}", weight
            case EffectKind.READ:
                yield f"{where}: read {who}" if reply else f"{where}: {who} is missing", DETAIL
            case EffectKind.WAIT:
                yield f"{where}: {describe_answer(reply)}", NEWS

    def _effect_failed(self, effect: str, error: dict[str, Any]) -> Lines:
        failures = error.get("failures", {})
        if len(set(failures.values())) < len(failures):
            # Some of the failed items were not described in full.
            items = f"{count(len(failures), 'item')} of {readable(effect)}"
            yield f"{self._step}: {items} failed", TROUBLE
        if self._ended is None:
            return
        what = f"{self._where(effect)}: {self._ended.label}"
        if error.get("type") == AgentStopped.__name__:
            # Its run was stopped or its step timed out, which has its own line.
            yield f"{what} was stopped", DETAIL
        elif self._ended.fan:
            yield self._describe_item(what, error.get("message", ""))
        else:
            yield f"{what} failed: {error.get('message', '')}", TROUBLE

    def _item_finished(self, event: ev.ItemFinished) -> Lines:
        fan = self.timeline.fans.get(readable(event.scope.rpartition("[")[0]))
        if fan is None:
            return
        # A line for each of a thousand items would drown everything else.
        last = len(fan.done) == fan.size and not self.timeline.running
        weight = NEWS if last else DETAIL
        yield f"{self._step}: {fan.name} {len(fan.done)}/{fan.size}", weight

    def _item_failed(self, event: ev.ItemFailed) -> Lines:
        yield self._describe_item(f"{self._step} {readable(event.scope)}:", event.problem)

    def _logged(self, event: ev.Logged) -> Lines:
        scope = readable(event.scope)
        yield f"{self._step}{scope and f' {scope}'}: {event.text}", NEWS

    def _where(self, effect: str) -> str:
        """Returns the step, and inside a fan-out also the item, by its name if it has one."""
        running = self._ended or self.timeline.running.get(effect)
        name = running.name if running is not None and running.id == effect else ""
        scope = name or readable(scope_of(effect))
        return f"{self._step} {scope}" if scope else self._step

    def _describe_item(self, what: str, reason: str) -> tuple[str, Weight]:
        """Describes an item's failure; of many with the same reason, only the first in full."""
        if reason in self._reasons:
            return f"{what} failed for the same reason", DETAIL
        self._reasons.add(reason)
        return f"{what} failed: {reason}", TROUBLE


_WITH_STATE = (ev.StepWorked, ev.Escalated, ev.StepFinished)
"""Events that change what steps have stored."""

_TEMPLATES = {
    ev.DefinitionAdopted.tag: (
        "continues with the changed definition {event.definition:.12}",
        NEWS,
    ),
    ev.AttemptFailed.tag: ("{step}: retrying: {event.problem}", TROUBLE),
    ev.Escalated.tag: ("{step}: a human has to decide: {event.problem}", TROUBLE),
    ev.AttemptOpened.tag: ("{step}: a human sent it back: {event.feedback}", NEWS),
    ev.AttemptReplaced.tag: ("{step}: started over, because its requests have changed", NEWS),
    ev.LimitLifted.tag: ("a human let {event.way} continue", NEWS),
}
"""Events that a single sentence describes."""

_DESCRIBE: dict[str, Callable[[Narrator, Any], Lines]] = {
    ev.RunStarted.tag: Narrator._run_started,
    ev.RunResumed.tag: Narrator._run_resumed,
    ev.RunStopped.tag: Narrator._run_stopped,
    ev.LimitsChanged.tag: Narrator._limits_changed,
    ev.AgentSwitched.tag: Narrator._agent_switched,
    ev.ParamsCorrected.tag: Narrator._params_corrected,
    ev.StepFinished.tag: Narrator._step_finished,
    ev.EffectStarted.tag: Narrator._effect_started,
    ev.EffectFinished.tag: Narrator._effect_finished,
    ev.ItemFinished.tag: Narrator._item_finished,
    ev.ItemFailed.tag: Narrator._item_failed,
    ev.Logged.tag: Narrator._logged,
}


_DECISIONS = {
    "approve": "approved",
    "reject": "rejected",
    "request changes": "changes requested",
}
"""What a human did at a sign-off, by the option that was chosen."""


def describe_answer(answer: Mapping[str, Any]) -> str:
    """Returns an answer with who gave it and why: `rejected by ann: too long`."""
    value, by = answer.get("value"), answer.get("by")
    why = " ".join(str(answer.get("text") or "").split())
    match value:
        case True | False:
            decision = "approved" if value else "rejected"
        case "" | None:
            decision = "answered"
        case str() if value in _DECISIONS:
            decision = _DECISIONS[value]
        case _:
            first_line = format_answer(value).strip().partition("\n")[0]
            decision = f"answered {cut(first_line, SHOWN_VALUE)!r}"
    author = f" by {by}" if by else ""
    if passkey := (answer.get("presence") or {}).get("passkey"):
        author += f", signed with passkey {passkey!r}"
    return f"{decision}{author}{why and f': {cut(why, SHOWN_WHY)}'}"


def _answerer(reply: Mapping[str, Any], asked: str) -> str:
    """Returns the agent that answered, and the agent that was asked if that is another."""
    by = reply.get("agent")
    return asked if by is None or asked.split(" ")[0] == by else f"{by} (for {asked})"


def _wrote(reply: Mapping[str, Any], label: str) -> str:
    """Returns which file was written, or which files of the project were replaced, if any."""
    if conflicts := reply.get("conflicts"):
        return f"wrote no file; changed meanwhile: {', '.join(conflicts)}"
    return f"wrote {', '.join(reply.get('written', ())) or label}"


def _entered(visit: StepVisit) -> str:
    # In most loops a step is entered once a round, and the round says enough.
    again = " again" if visit.visit not in (1, visit.iteration) else ""
    round_ = f" (round {visit.iteration})" if visit.iteration > 1 else ""
    return f"{visit.step}: begins{again}{round_}"


def _usage(data: dict[str, Any] | None) -> str:
    usage = Usage(**(data or {}))
    tokens = count(usage.tokens, "token") if usage.tokens is not None else ""
    cost = money(usage.usd) if usage.usd is not None else ""
    amounts = ", ".join(filter(None, (tokens, cost)))
    return f" ({amounts})" if amounts else ""
