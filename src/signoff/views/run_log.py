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
from dataclasses import fields as dataclass_fields
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.amounts import timestamp
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED, Outcome, Status
from signoff.documents.control_characters import json_text
from signoff.documents.regular_files import create_private
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.runtime.store_port import Store, events_in
from signoff.views.metrics import PAIR_REASONS
from signoff.views.queued import ObserverSetup
from signoff.views.timeline import Timeline

LOGGER = "signoff.run"

DEBUG, INFO, WARNING = logging.DEBUG, logging.INFO, logging.WARNING

History = Callable[[str, int], Iterable[ev.Event]]
"""Returns the events of a run before the commit of a number."""

_PLAIN = frozenset(
    {"status", "due_at", "limits", "agent", "to", "definition", "outcome", "late", "attempt"}
    | {"scope", "kind"}
)
"""What is logged of events whatever they are about."""
_CONTENT = frozenset(
    {"params", "reason", "problem", "feedback", "payload", "reply", "result", "text"}
)
"""What may have prompts, replies and inputs. A field that is in neither set is not logged, so what
a later version adds to an event does not get into logs by itself."""

_DETAILS = (ev.StepBegun, ev.StepWorked, ev.EffectStarted, ev.EffectRunning, ev.ItemFinished)
_TROUBLE = (ev.AttemptFailed, ev.Escalated, ev.EffectAttemptFailed, ev.ItemFailed)
_AS_PLANNED = frozenset({Status.COMPLETED, Status.WAITING, Status.PARKED, Status.QUEUED})
_NEWS = frozenset({EffectKind.ASK, EffectKind.COMMAND, EffectKind.WAIT})
"""Effects whose ends are news; the others are details."""

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
        visit = line.current
        names = _PLAIN | _CONTENT if self._content else _PLAIN
        own = {each.name: getattr(event, each.name) for each in dataclass_fields(event)}
        fields: dict[str, Any] = {
            "run": run,
            "event": event.tag,
            "workflow": line.state.workflow,
            "step": visit.step if visit is not None else "",
            "times": visit.visit if visit is not None else 1,
            "round": line.state.iteration,
            **{k: v for k, v in own.items() if k in names and v not in ("", None, {})},
        }
        if (add := _ADD.get(event.tag)) is not None:
            add(line, event, fields, self._content)
        return _level(event, fields), _message(event, fields), fields


def _level(event: ev.Event, fields: Mapping[str, Any]) -> int:
    unplanned = isinstance(event, ev.RunStopped) and event.status not in _AS_PLANNED
    if unplanned or isinstance(event, _TROUBLE) or "error_type" in fields:
        return WARNING
    minor = isinstance(event, ev.EffectFinished) and fields.get("kind") not in _NEWS
    return DEBUG if minor or isinstance(event, _DETAILS) else INFO


def _message(event: ev.Event, fields: Mapping[str, Any]) -> str:
    """Returns a text that is the same for all events of a kind, with the run and the step."""
    # The two messages that mark a run's start and end are fixed: people search for them.
    match event:
        case ev.RunStarted():
            return "Starting workflow"
        case ev.RunStopped() if event.status not in NOT_ENDED:
            return "Workflow completed"
        case ev.RunStopped():
            words = f"Workflow {event.status.value}"
        case _:
            words = event.tag.replace("_", " ").capitalize()
    place = "" if isinstance(event, _ABOUT_RUN) else fields["step"]
    return ": ".join(filter(None, (fields["run"], place, words)))


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


_ABOUT_RUN = (ev.RunResumed, ev.RunStopped, ev.LimitsChanged, ev.AgentSwitched, ev.ParamsCorrected)


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


def _stopped(line: Timeline, event: ev.RunStopped, fields: dict[str, Any], content: bool) -> None:
    reason = event.stop_reason or {}
    is_pair = bool(_pair_settings(line))
    pair_reason = PAIR_REASONS.get(event.status) if is_pair else None
    fields["completion_reason"] = pair_reason or event.status.value
    fields["turn_count" if is_pair else "rounds"] = line.state.iteration
    fields["duration"] = round(event.at - line.state.started_at, 3)
    fields["stop_reason"] = reason.get("kind")
    error = reason.get("error") or {}
    if error:
        fields |= _error(error, "kind", content)


def _step_finished(
    line: Timeline, event: ev.StepFinished, fields: dict[str, Any], _content: bool
) -> None:
    if line.current is not None:
        fields["duration"] = round(event.at - line.current.started_at, 3)
        if line.current.step == _DECIDING and _pair_settings(line):
            fields["approved"] = event.outcome is Outcome.OK


def _effect_started(
    _: Timeline, event: ev.EffectStarted, fields: dict[str, Any], _content: bool
) -> None:
    payload = event.payload if isinstance(event.payload, dict) else {}
    fields |= {"effect": event.id, **_subject(event.kind, payload)}


def _effect_finished(
    line: Timeline,
    event: ev.EffectFinished | ev.EffectAttemptFailed,
    fields: dict[str, Any],
    content: bool,
) -> None:
    effect = line.unfinished.get(event.id)
    fields["effect"] = event.id
    if effect is not None:
        fields |= {
            **_subject(effect.kind, effect.payload),
            "duration": round(event.at - effect.started_at, 3),
        }
    fields |= {name: value for name, value in (event.usage or {}).items() if value is not None}
    if event.error is not None:
        fields |= _error(event.error, "type", content)


def _subject(kind: EffectKind, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns who was asked for what; the arguments of a program may quote content."""
    values = {name: payload.get(name) for name in ("agent", "model")}
    if kind is EffectKind.COMMAND:
        values["program"] = (payload.get("argv") or [""])[0]
    return {"kind": kind.value, **{k: v for k, v in values.items() if v}}


def _error(error: Mapping[str, Any], kind: str, content: bool) -> dict[str, Any]:
    quotes = error.get(kind) in _QUOTES_REPLIES
    message = {} if quotes and not content else {"error": error.get("message")}
    return {"error_type": error.get(kind), **message}


_ADD: Mapping[str, Callable[[Timeline, Any, dict[str, Any], bool], None]] = {
    ev.RunStarted.tag: _started,
    ev.RunStopped.tag: _stopped,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectFinished.tag: _effect_finished,
    ev.EffectAttemptFailed.tag: _effect_finished,
}
"""What is added to the fields of an event."""
