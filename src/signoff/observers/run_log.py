"""Logs what runs do: one record per event, with what it is about as fields.

Prompts, replies and inputs stay out of the records unless `log_content` is on, and so does every
other text that a model or a user wrote. That is why messages are fixed texts and not the lines of
`signoff logs`: those are for the owner of a run, while log records are sent to other systems.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.outcome import Outcome, Status
from signoff.observers.history import History
from signoff.observers.run_facts import DECIDING, WRITING, RunFacts, pair_settings
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.telemetry.metrics import PAIR_REASONS

LOGGER = "signoff.run"

DEBUG, INFO, WARNING = logging.DEBUG, logging.INFO, logging.WARNING

_RECORDS: Mapping[str, tuple[int, str, tuple[str, ...], tuple[str, ...]]] = {
    ev.RunStarted.tag: (INFO, "Starting workflow", (), ("params",)),
    ev.RunResumed.tag: (INFO, "Resuming workflow", (), ()),
    ev.RunStopped.tag: (INFO, "Workflow completed", ("status", "due_at"), ("reason",)),
    ev.LimitsChanged.tag: (INFO, "Limits changed", ("limits",), ()),
    ev.AgentSwitched.tag: (INFO, "Agent switched", ("agent", "to"), ()),
    ev.ParamsCorrected.tag: (INFO, "Parameters corrected", (), ("params",)),
    ev.DefinitionAdopted.tag: (INFO, "Definition adopted", ("definition",), ()),
    ev.StepBegun.tag: (DEBUG, "Preconditions met", (), ()),
    ev.StepWorked.tag: (DEBUG, "Step worked", ("outcome",), ()),
    ev.AttemptFailed.tag: (WARNING, "Attempt failed", ("late",), ("problem",)),
    ev.Escalated.tag: (WARNING, "Escalated to a human", (), ("problem",)),
    ev.AttemptOpened.tag: (INFO, "Sent back by a human", (), ("feedback",)),
    ev.AttemptReplaced.tag: (INFO, "Attempt started over", (), ()),
    ev.LimitLifted.tag: (INFO, "Limit lifted by a human", (), ()),
    ev.StepFinished.tag: (INFO, "Step finished", ("outcome", "to"), ()),
    ev.EffectStarted.tag: (DEBUG, "Effect started", ("attempt",), ("payload",)),
    ev.EffectRunning.tag: (DEBUG, "Process started", (), ()),
    ev.EffectAttemptFailed.tag: (WARNING, "Effect failed and is retried", (), ()),
    ev.EffectFinished.tag: (INFO, "Effect finished", (), ("reply",)),
    ev.ItemFinished.tag: (DEBUG, "Item finished", ("scope",), ("result",)),
    ev.ItemFailed.tag: (WARNING, "Item failed", ("scope",), ("problem",)),
    ev.Logged.tag: (INFO, "Handler logged a line", ("scope",), ("text",)),
}
"""By event: the level, the message, fields that are always logged, and fields with content."""

_ENDINGS = {
    Status.WAITING: "Workflow waiting",
    Status.QUEUED: "Workflow queued",
    Status.PARKED: "Workflow parked",
    Status.INTERRUPTED: "Workflow interrupted",
}
_AS_PLANNED = frozenset({Status.COMPLETED, Status.WAITING, Status.PARKED, Status.QUEUED})

_HIGHEST = {
    ev.RunStopped.tag: WARNING,
    ev.EffectStarted.tag: INFO,
    ev.EffectFinished.tag: WARNING,
}
"""The highest level of a record, where that depends on the event."""

_VERBS = {
    EffectKind.ASK: ("Asking agent", "Agent answered"),
    EffectKind.COMMAND: ("Running program", "Program ended"),
    EffectKind.WAIT: ("Waiting for a human", "Human answered"),
}

_QUOTES_REPLIES = frozenset({"StepFailed", "AgentBadOutput"})
"""Errors about content, which quote it."""


class LogEntry(NamedTuple):
    """One record, before it is written anywhere."""

    level: int
    message: str
    fields: dict[str, Any]
    at: float
    """When it happened, in seconds since 1970; 0 if that is now."""


class RunLog:
    """Turns notices into records.

    `history` returns what was recorded before, for runs that are resumed. Without it, their
    records lack some fields, such as the workflow.
    """

    def __init__(self, *, log_content: bool = False, history: History | None = None) -> None:
        self._content = log_content
        self._history = history
        self._runs: dict[str, RunFacts] = {}

    def entries(self, notice: Notice, least: int = logging.NOTSET) -> Iterator[LogEntry]:
        """Yields the records of one notice that have at least this level."""
        match notice:
            case Recorded():
                yield from self._events(notice, least)
            case Progress(run=run, step=step, text=text) if self._content and least <= DEBUG:
                yield LogEntry(DEBUG, f"{run}: {step}: {text}", {"run": run, "step": step}, 0.0)
            case Retrying(run=run, effect=effect, error=error, seconds=seconds):
                fields = {"run": run, "effect": effect, "error": error, "pause": seconds}
                if least <= WARNING:
                    yield LogEntry(WARNING, f"{run}: Retrying in {seconds:.1f}s", fields, 0.0)

    def _events(self, notice: Recorded, least: int) -> Iterator[LogEntry]:
        facts = self._facts(notice)
        for event in notice.events:
            level = _HIGHEST.get(event.tag) or _RECORDS[event.tag][0]
            if level < least:
                # Most events of a run are details that no one wants to have described.
                facts.apply(event)
                continue
            entry = self._entry(notice.run, facts, event)
            if entry.level >= least:
                yield entry
            if facts.is_pair and isinstance(event, ev.StepFinished) and event.to == WRITING:
                yield _turn_started(notice.run, facts, event.at)
        if isinstance(notice.events[-1], ev.RunStopped):
            # A process that drives thousands of runs must not remember them all.
            del self._runs[notice.run]

    def _facts(self, notice: Recorded) -> RunFacts:
        facts = self._runs.get(notice.run)
        # A gap means that the queue was full and a notice was dropped.
        if facts is None or facts.seq + 1 != notice.seq:
            facts = self._runs[notice.run] = RunFacts()
            if self._history is not None and not isinstance(notice.events[0], ev.RunStarted):
                for event in self._history(notice.run, notice.seq):
                    facts.apply(event)
        facts.seq = notice.seq
        return facts

    def _entry(self, run: str, facts: RunFacts, event: ev.Event) -> LogEntry:
        level, message, plain, content = _RECORDS[event.tag]
        started = isinstance(event, ev.RunStarted)
        if started:
            facts.apply(event)
        step = facts.step
        fields = {
            "run": run,
            "event": event.tag,
            "workflow": facts.workflow,
            "step": step,
            "times": facts.visits.get(step, 1),
            "round": facts.round,
            **{name: value for name in plain if (value := getattr(event, name)) not in ("", None)},
        }
        if self._content:
            fields |= {name: getattr(event, name) for name in content}
        describe = _DESCRIBE.get(event.tag)
        if describe is not None:
            level, message = describe(facts, event, fields, self._content) or (level, message)
        if not started:
            facts.apply(event)
        return LogEntry(level, _named(run, event, message, step), fields, event.at)


def _turn_started(run: str, facts: RunFacts, at: float) -> LogEntry:
    fields = {"run": run, "workflow": facts.workflow, "step": WRITING, "round": facts.round}
    return LogEntry(INFO, f"{run}: Starting turn {facts.round}", fields, at)


class LoggingObserver:
    """Writes one record per event to a logger of Python's logging."""

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        log_content: bool = False,
        history: History | None = None,
    ) -> None:
        self._logger = logger if logger is not None else logging.getLogger(LOGGER)
        self._log = RunLog(log_content=log_content, history=history)

    def notice(self, notice: Notice) -> None:
        """Logs one notice."""
        logger = self._logger
        for level, message, fields, at in self._log.entries(notice, logger.getEffectiveLevel()):
            record = logger.makeRecord(
                logger.name, level, __name__, 0, message, (), None, extra=fields
            )
            if at:
                # The time of the event, not that of its record, which may wait in a queue.
                record.created, record.msecs = at, at % 1 * 1000
            logger.handle(record)


_MARKS = frozenset({_RECORDS[ev.RunStarted.tag][1], _RECORDS[ev.RunStopped.tag][1]})
_ABOUT_RUN = (ev.RunResumed, ev.RunStopped, ev.LimitsChanged, ev.AgentSwitched, ev.ParamsCorrected)


def _named(run: str, event: ev.Event, message: str, step: str) -> str:
    """Returns a message with its run and step, for formats that show no fields."""
    # The two messages that mark a run's start and end are fixed: people search for them.
    if message in _MARKS:
        return message
    about_run = not step or isinstance(event, _ABOUT_RUN)
    return f"{run}: {message}" if about_run else f"{run}: {step}: {message}"


Description = tuple[int, str] | None
"""The level and the message, if they are not those of the table."""


def _started(_: RunFacts, event: ev.RunStarted, fields: dict[str, Any], content: bool) -> None:
    """Adds the settings of a pair."""
    settings = pair_settings(event.params)
    fields |= {name: settings.get(name) for name in ("model_name", "max_turns") if settings}
    if settings and content:
        fields["user_input"] = settings.get("task")


def _stopped(
    facts: RunFacts, event: ev.RunStopped, fields: dict[str, Any], content: bool
) -> Description:
    reason = event.stop_reason or {}
    pair_reason = PAIR_REASONS.get(event.status) if facts.is_pair else None
    fields["completion_reason"] = pair_reason or event.status.value
    fields["turn_count" if facts.is_pair else "rounds"] = facts.round
    fields["duration"] = round(event.at - facts.started_at, 3)
    fields["stop_reason"] = reason.get("kind")
    error = reason.get("error") or {}
    if error:
        fields |= {"error_type": error.get("kind"), **_error(error, "kind", content)}
    level = INFO if event.status in _AS_PLANNED else WARNING
    return level, _ENDINGS.get(event.status, _RECORDS[event.tag][1])


def _step_finished(
    facts: RunFacts, event: ev.StepFinished, fields: dict[str, Any], _content: bool
) -> None:
    fields["duration"] = round(event.at - facts.entered_at, 3)
    if facts.is_pair and facts.step == DECIDING:
        fields["approved"] = event.outcome is Outcome.OK


def _effect_started(
    _: RunFacts, event: ev.EffectStarted, fields: dict[str, Any], _content: bool
) -> Description:
    payload = event.payload if isinstance(event.payload, dict) else {}
    fields |= {"effect": event.id, "kind": event.kind.value}
    fields |= {name: payload[name] for name in ("agent", "model") if payload.get(name)}
    level = INFO if event.kind is EffectKind.WAIT else DEBUG
    return level, _VERBS.get(event.kind, ("Effect started", ""))[0]


def _effect_finished(
    facts: RunFacts,
    event: ev.EffectFinished | ev.EffectAttemptFailed,
    fields: dict[str, Any],
    content: bool,
) -> Description:
    effect = facts.effects.get(event.id)
    fields["effect"] = event.id
    if effect is not None:
        fields |= effect.fields()
        fields["duration"] = round(event.at - effect.started_at, 3)
    fields |= {name: value for name, value in (event.usage or {}).items() if value is not None}
    if event.error is not None:
        fields |= {"error_type": event.error.get("type"), **_error(event.error, "type", content)}
        return None if isinstance(event, ev.EffectAttemptFailed) else (WARNING, "Effect failed")
    if effect is None or effect.kind not in _VERBS:
        return DEBUG, "Effect finished"
    return INFO, _VERBS[effect.kind][1]


def _error(error: Mapping[str, Any], kind: str, content: bool) -> dict[str, Any]:
    quotes = error.get(kind) in _QUOTES_REPLIES
    return {} if quotes and not content else {"error": error.get("message")}


_DESCRIBE: Mapping[str, Callable[[RunFacts, Any, dict[str, Any], bool], Description]] = {
    ev.RunStarted.tag: _started,
    ev.RunStopped.tag: _stopped,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectFinished.tag: _effect_finished,
    ev.EffectAttemptFailed.tag: _effect_finished,
}
