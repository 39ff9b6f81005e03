"""The events of sessions, for programs that watch them: phases, files, gates and ends.

The engine's own events are about steps and effects. `SessionEvents` is an observer that turns
them into eight types that a user of profiles knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED, Outcome, Status
from signoff.profiles.phases import WorkflowPhase, WorkflowStage
from signoff.profiles.session import position_of
from signoff.profiles.session_files import stage_path
from signoff.runtime.observers import EventsFile
from signoff.runtime.ports import Notice, Recorded

"""A session that stops with one of these has not ended."""


class SessionEventType(StrEnum):
    """What can happen to a session."""

    ROUND_STARTED = "round_started"
    PHASE_ENTERED = "phase_entered"
    ARTIFACT_CREATED = "artifact_created"
    """The engine wrote a file of the session."""
    APPROVAL_REQUIRED = "approval_required"
    """A gate waits for a human."""
    APPROVAL_GRANTED = "approval_granted"
    """A human or an approver approved the stage."""
    ARTIFACT_APPROVED = "artifact_approved"
    """The prompt or the response of the stage is final."""
    WORKFLOW_COMPLETED = "workflow_completed"
    WORKFLOW_FAILED = "workflow_failed"
    """The session ended without an approved result."""


@dataclass(frozen=True)
class SessionEvent:
    """One thing that happened to a session."""

    type: SessionEventType
    run: str
    at: float
    """When, in seconds since 1970."""
    round: int
    phase: WorkflowPhase
    stage: WorkflowStage | None = None
    path: str | None = None
    """The file that it is about, inside the run directory."""
    by: str | None = None
    """Who approved, if a human did."""
    status: Status | None = None
    """How the session ended."""
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns what is set."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class SessionPosition:
    """Where a session is."""

    step: str
    iteration: int = 1


class SessionEvents:
    """An observer that calls a function for every event of the sessions it watches.

    `positions` holds where resumed sessions are: their first events were seen by another process.
    """

    def __init__(
        self,
        callback: Callable[[SessionEvent], None],
        positions: Mapping[str, SessionPosition] | None = None,
    ) -> None:
        self._callback = callback
        self._positions = dict(positions or {})
        self._paths: dict[tuple[str, str], str] = {}
        """The file of each write under way, by run and effect."""
        self._approved_by: dict[str, str] = {}
        """Who approved in the current stage of each run."""

    def notice(self, notice: Notice) -> None:
        """Reports what a notice says about a session."""
        if not isinstance(notice, Recorded):
            return
        for event in notice.events:
            self._take(notice.run, event)

    def _take(self, run: str, event: ev.Event) -> None:
        match event:
            case ev.RunStarted(entry=entry):
                self._enter(run, event.at, SessionPosition(entry), None)
            case ev.EffectStarted(kind=EffectKind.WRITE):
                self._paths[run, event.id] = event.payload["path"]
            case ev.EffectStarted(kind=EffectKind.WAIT):
                path = (event.payload or {}).get("path")
                self._report(SessionEventType.APPROVAL_REQUIRED, run, event.at, path=path)
            case ev.EffectFinished():
                self._finish_effect(run, event)
            case ev.StepFinished():
                self._leave(run, event)
            case ev.RunStopped(status=status) if status not in NOT_ENDED:
                self._end(run, event)

    def _finish_effect(self, run: str, event: ev.EffectFinished) -> None:
        path = self._paths.pop((run, event.id), None)
        if path is not None and event.error is None:
            self._report(SessionEventType.ARTIFACT_CREATED, run, event.at, path=path)
        if event.item is not None and event.reply and event.reply.get("value") is True:
            self._approved_by[run] = event.reply.get("by", "")

    def _leave(self, run: str, event: ev.StepFinished) -> None:
        position = self._positions.get(run)
        if position is None:
            return
        by = self._approved_by.pop(run, None)
        if event.outcome is not Outcome.ITERATE:
            phase, stage = position_of(position.step)
            path = stage_path(phase, stage, position.iteration)
            self._report(SessionEventType.APPROVAL_GRANTED, run, event.at, path=path, by=by)
            self._report(SessionEventType.ARTIFACT_APPROVED, run, event.at, path=path)
        if event.to is not None:
            self._enter(run, event.at, SessionPosition(event.to, event.round), position)

    def _enter(
        self, run: str, at: float, to: SessionPosition, previous: SessionPosition | None
    ) -> None:
        self._positions[run] = to
        if previous is None or previous.iteration != to.iteration:
            self._report(SessionEventType.ROUND_STARTED, run, at, staged=False)
        if previous is None or position_of(previous.step)[0] is not position_of(to.step)[0]:
            self._report(SessionEventType.PHASE_ENTERED, run, at, staged=False)

    def _end(self, run: str, event: ev.RunStopped) -> None:
        completed = event.status is Status.COMPLETED
        kind = (
            SessionEventType.WORKFLOW_COMPLETED if completed else SessionEventType.WORKFLOW_FAILED
        )
        reason = None if completed else event.reason
        self._report(kind, run, event.at, status=event.status, reason=reason)
        # A process that drives thousands of sessions must not remember them all.
        self._positions.pop(run, None)
        self._approved_by.pop(run, None)

    def _report(
        self, kind: SessionEventType, run: str, at: float, *, staged: bool = True, **more: Any
    ) -> None:
        position = self._positions.get(run)
        if position is None:
            return
        phase, stage = position_of(position.step)
        event = SessionEvent(
            kind, run, at, position.iteration, phase, stage if staged else None, **more
        )
        self._callback(event)


class SessionEventsFile(EventsFile):
    """Appends the events of sessions to a file, one JSON object per line."""

    def __init__(self, path: Path, positions: Mapping[str, SessionPosition]) -> None:
        super().__init__(path)
        self._events = SessionEvents(lambda event: self.write([event.to_json()]), positions)

    def notice(self, notice: Notice) -> None:
        """Writes the events in a notice."""
        self._events.notice(notice)
