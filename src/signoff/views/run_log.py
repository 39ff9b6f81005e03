"""Logs what runs do: one record per event, with what it is about as fields.

Prompts, replies and inputs stay out of the records unless `log_content` is on, and so does every
other text that a model or a user wrote. That is why messages are fixed texts and not the lines of
`signoff logs`: those are for the owner of a run, while log records are sent to other systems.

A program that uses signoff gets the records through Python's logging. The settings have them
written as JSON, one object per line, to a file or to stderr.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.amounts import timestamp
from signoff.core.effects import EffectKind
from signoff.core.outcome import Outcome, Status
from signoff.documents.control_characters import json_text
from signoff.documents.regular_files import create_private
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.runtime.store_port import Store, events_in
from signoff.views.metrics import PAIR_REASONS
from signoff.views.queued import ObserverSetup
from signoff.views.timeline import EffectTry, Timeline

LOGGER = "signoff.run"

DEBUG, INFO, WARNING = logging.DEBUG, logging.INFO, logging.WARNING

History = Callable[[str, int], Iterable[ev.Event]]
"""Returns the events of a run before the commit of a number."""

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

_VERBS = {
    EffectKind.ASK: ("Asking agent", "Agent answered"),
    EffectKind.COMMAND: ("Running program", "Program ended"),
    EffectKind.WAIT: ("Waiting for a human", "Human answered"),
}

_WRITING, _DECIDING = "GENERATING", "DECIDING"
"""The steps with which a turn of a pair begins and ends; `signoff.pair` is a layer above."""

_QUOTES_REPLIES = frozenset({"StepFailed", "AgentBadOutput"})
"""Errors about content, which quote it."""


_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""The attributes that every record has; all others are fields."""


def events_before(store: Store, run: str, seq: int) -> Iterator[ev.Event]:
    """Yields a run's events before a commit, without their long texts."""
    rows = store.journal(store.row(run).id)
    return events_in((row for row in rows if row.seq < seq), lambda _digest: "")


class LoggingObserver:
    """Writes one record per event to a logger of Python's logging.

    `history` returns what was recorded before, for runs that are resumed. Without it, their
    records lack some fields, such as the workflow.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        log_content: bool = False,
        history: History | None = None,
    ) -> None:
        self._logger = logger if logger is not None else logging.getLogger(LOGGER)
        self._content = log_content
        self._history = history
        self._runs: dict[str, tuple[int, Timeline]] = {}
        """The last commit of each run that was followed, and the run up to there."""

    def notice(self, notice: Notice) -> None:
        """Logs one notice."""
        match notice:
            case Recorded():
                self._log_events(notice)
            case Progress(run=run, step=step, text=text) if self._content:
                self._log(DEBUG, f"{run}: {step}: {text}", {"run": run, "step": step})
            case Retrying(run=run, effect=effect, error=error, seconds=seconds):
                fields = {"run": run, "effect": effect, "error": error, "pause": seconds}
                self._log(WARNING, f"{run}: Retrying in {seconds:.1f}s", fields)

    def _log(self, level: int, message: str, fields: Mapping[str, Any], at: float = 0.0) -> None:
        logger = self._logger
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(logger.name, level, __name__, 0, message, (), None, extra=fields)
        if at:
            # The time of the event, not that of its record, which may wait in a queue.
            record.created, record.msecs = at, at % 1 * 1000
        logger.handle(record)

    def _log_events(self, notice: Recorded) -> None:
        line = self._timeline(notice)
        for event in notice.events:
            started = isinstance(event, ev.RunStarted)
            # Every other event belongs to the step that the run was in before it.
            if started:
                line.apply(event)
            level, message, fields = self._describe(notice.run, line, event)
            self._log(level, message, fields, event.at)
            if not started:
                line.apply(event)
            if isinstance(event, ev.StepFinished) and event.to == _WRITING and _pair_settings(line):
                self._log_turn(notice.run, line, event.at)
        self._runs[notice.run] = notice.seq, line
        if isinstance(notice.events[-1], ev.RunStopped):
            # A process that drives thousands of runs must not remember them all.
            del self._runs[notice.run]

    def _log_turn(self, run: str, line: Timeline, at: float) -> None:
        turn = line.state.iteration
        fields = {"run": run, "workflow": line.state.workflow, "step": _WRITING, "round": turn}
        self._log(INFO, f"{run}: Starting turn {turn}", fields, at)

    def _timeline(self, notice: Recorded) -> Timeline:
        seq, line = self._runs.get(notice.run, (0, Timeline()))
        # A gap means that the queue was full and a notice was dropped.
        if seq + 1 != notice.seq and self._history is not None:
            return Timeline().follow(self._history(notice.run, notice.seq))
        return line

    def _describe(
        self, run: str, line: Timeline, event: ev.Event
    ) -> tuple[int, str, dict[str, Any]]:
        """Returns the level, the message and the fields of an event's record."""
        level, message, plain, content = _RECORDS[event.tag]
        visit = line.current
        step = visit.step if visit is not None else ""
        fields = {
            "run": run,
            "event": event.tag,
            "workflow": line.state.workflow,
            "step": step,
            "times": visit.visit if visit is not None else 1,
            "round": line.state.iteration,
            **{name: value for name in plain if (value := getattr(event, name)) not in ("", None)},
        }
        if self._content:
            fields |= {name: getattr(event, name) for name in content}
        describe = _DESCRIBE.get(event.tag)
        if describe is not None:
            level, message = describe(line, event, fields, self._content) or (level, message)
        return level, _named(run, event, message, step), fields


class LogOutput(LoggingObserver):
    """Logs runs to a file or stderr, without touching the logging of the program it runs in."""

    def __init__(self, setup: ObserverSetup, *, file: str, level: str) -> None:
        """`file` is relative to the project home; empty means stderr."""
        # A logger that no other code can find, so it inherits and passes on nothing.
        logger = logging.Logger(LOGGER, level.upper())  # noqa: LOG001  # as said
        super().__init__(logger, log_content=setup.log_content, history=self._events_before)
        self._open_store = setup.open_store
        self._store: Store | None = None
        path = setup.folder / Path(file).expanduser()
        self._output = _PrivateFile(path, encoding="utf-8") if file else Stderr()
        self._output.setFormatter(JsonLines(setup.secrets))
        logger.addHandler(self._output)
        self._warnings = _Warnings(self._output)
        if file:
            logging.getLogger("signoff").addHandler(self._warnings)

    def close(self) -> None:
        """Closes the file."""
        logging.getLogger("signoff").removeHandler(self._warnings)
        self._output.close()
        if self._store is not None:
            self._store.close()

    def _events_before(self, run: str, seq: int) -> Iterable[ev.Event]:
        if seq == 1:
            return ()
        # Opened in the observer's thread, and only if a run is resumed.
        self._store = self._store or self._open_store()
        return events_before(self._store, run, seq)


class JsonLines(logging.Formatter):
    """Writes a record with its fields as a JSON object on one line, without known secrets."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        super().__init__()
        self._secrets = secrets or Secrets()

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record; fields without a value are left out."""
        fields = {k: v for k, v in vars(record).items() if k not in _OWN and v is not None}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        head = {
            "time": timestamp(record.created),
            "level": logging.getLevelName(record.levelno).lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line = json_text({**head, **fields}, ensure_ascii=True, default=str)
        return self._secrets.hide(line)


class _PrivateFile(WatchedFileHandler):
    """Appends to a file that only its owner can read, and follows it when it is rotated."""

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=create_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # logging prescribes it
        """Raises the error, so that it is reported like that of any observer."""
        raise  # noqa: PLE0704  # called by `emit` while it handles the error


class Stderr(logging.StreamHandler[Any]):
    """Writes to stderr; it is looked up each time, because a live view replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        # A closed stream must not affect the run.
        with suppress(OSError, ValueError):
            print(self.format(record), file=sys.stderr, flush=True)


class _Warnings(logging.Handler):
    """Passes on signoff's own warnings, which have no other way into the file."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__(logging.WARNING)
        self._file = handler

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on one record, unless it is about a run: those are written already."""
        if record.name != LOGGER:
            with suppress(OSError, ValueError):
                self._file.handle(record)


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


def _pair_settings(line: Timeline) -> Mapping[str, Any]:
    """Returns the settings of a pair, which its run stores as one parameter; empty for others."""
    settings = line.state.params.get("settings")
    if isinstance(settings, Mapping) and {"preset", "max_turns"} <= settings.keys():
        return settings
    return {}


def _started(line: Timeline, _: ev.RunStarted, fields: dict[str, Any], content: bool) -> None:
    """Adds the settings of a pair."""
    settings = _pair_settings(line)
    fields |= {name: settings.get(name) for name in ("model_name", "max_turns") if settings}
    if settings and content:
        fields["user_input"] = settings.get("task")


def _stopped(
    line: Timeline, event: ev.RunStopped, fields: dict[str, Any], content: bool
) -> Description:
    reason = event.stop_reason or {}
    is_pair = bool(_pair_settings(line))
    pair_reason = PAIR_REASONS.get(event.status) if is_pair else None
    fields["completion_reason"] = pair_reason or event.status.value
    fields["turn_count" if is_pair else "rounds"] = line.state.iteration
    fields["duration"] = round(event.at - line.state.started_at, 3)
    fields["stop_reason"] = reason.get("kind")
    error = reason.get("error") or {}
    if error:
        fields |= {"error_type": error.get("kind"), **_error(error, "kind", content)}
    level = INFO if event.status in _AS_PLANNED else WARNING
    return level, _ENDINGS.get(event.status, _RECORDS[event.tag][1])


def _step_finished(
    line: Timeline, event: ev.StepFinished, fields: dict[str, Any], _content: bool
) -> None:
    if line.current is not None:
        fields["duration"] = round(event.at - line.current.started_at, 3)
        if line.current.step == _DECIDING and _pair_settings(line):
            fields["approved"] = event.outcome is Outcome.OK


def _effect_started(
    _: Timeline, event: ev.EffectStarted, fields: dict[str, Any], _content: bool
) -> Description:
    payload = event.payload if isinstance(event.payload, dict) else {}
    fields |= {"effect": event.id, "kind": event.kind.value}
    fields |= {name: payload[name] for name in ("agent", "model") if payload.get(name)}
    level = INFO if event.kind is EffectKind.WAIT else DEBUG
    return level, _VERBS.get(event.kind, ("Effect started", ""))[0]


def _effect_finished(
    line: Timeline,
    event: ev.EffectFinished | ev.EffectAttemptFailed,
    fields: dict[str, Any],
    content: bool,
) -> Description:
    effect = line.unfinished.get(event.id)
    fields["effect"] = event.id
    if effect is not None:
        fields |= {**_subject(effect), "duration": round(event.at - effect.started_at, 3)}
    fields |= {name: value for name, value in (event.usage or {}).items() if value is not None}
    if event.error is not None:
        fields |= {"error_type": event.error.get("type"), **_error(event.error, "type", content)}
        return None if isinstance(event, ev.EffectAttemptFailed) else (WARNING, "Effect failed")
    if effect is None or effect.kind not in _VERBS:
        return DEBUG, "Effect finished"
    return INFO, _VERBS[effect.kind][1]


def _subject(effect: EffectTry) -> dict[str, Any]:
    """Returns who was asked for what; the arguments of a program may quote content."""
    values = {name: effect.payload.get(name) for name in ("agent", "model")}
    if effect.kind is EffectKind.COMMAND:
        values["program"] = (effect.payload.get("argv") or [""])[0]
    return {"kind": effect.kind.value, **{k: v for k, v in values.items() if v}}


def _error(error: Mapping[str, Any], kind: str, content: bool) -> dict[str, Any]:
    quotes = error.get(kind) in _QUOTES_REPLIES
    return {} if quotes and not content else {"error": error.get("message")}


_DESCRIBE: Mapping[str, Callable[[Timeline, Any, dict[str, Any], bool], Description]] = {
    ev.RunStarted.tag: _started,
    ev.RunStopped.tag: _stopped,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectFinished.tag: _effect_finished,
    ev.EffectAttemptFailed.tag: _effect_finished,
}
