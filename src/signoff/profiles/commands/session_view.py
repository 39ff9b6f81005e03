"""What the commands show about a session: its state, the pending request, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from signoff.app.answering import form_of
from signoff.app.history import load_state
from signoff.app.inbox import request_to_json
from signoff.app.next_commands import next_commands
from signoff.app.runs import current_row
from signoff.cli import exits
from signoff.cli.output import Output
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.stop_reason import remedies
from signoff.errors import SignoffError
from signoff.profiles.commands.project import project_dir_words, shown_path
from signoff.profiles.phases import WorkflowPhase, WorkflowStage, WorkflowStatus
from signoff.profiles.report import describe_override
from signoff.profiles.transitions import SessionCommand, TransitionTable
from signoff.profiles.view import position, session_fields
from signoff.remedies import RaiseRounds, Remedy, Resume
from signoff.store.rundir.files import file_path

if TYPE_CHECKING:
    from pathlib import Path

    from signoff.app.project import Project
    from signoff.core.stop_reason import StopReason
    from signoff.runtime.store_port import RunRow

OVERRULING = {
    SessionCommand.APPROVE_COMPLETE: "--complete",
    SessionCommand.APPROVE_REVISE: "--revise",
}
"""How a user overrules a verdict."""

_STYLES = {
    WorkflowStatus.IN_PROGRESS: "yellow",
    WorkflowStatus.SUCCESS: "green",
    WorkflowStatus.CANCELLED: "dim",
}


@dataclass(frozen=True)
class SessionView:
    """A session and its pending requests."""

    row: RunRow
    state: Mapping[str, Any]
    """The fields of `WorkflowState`."""
    phase: WorkflowPhase
    stage: WorkflowStage | None
    status: WorkflowStatus
    requests: tuple[dict[str, Any], ...]
    folder: Path
    stop_reason: StopReason | None
    answered: bool = False
    """Whether a decision is recorded that the session has not used yet."""
    changed: bool = False
    """Whether the definition has changed; looked up only where the session can be continued."""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What brings a session on that has no pending requests."""
        if self.answered:
            return (Resume(self.row.name, adopt=self.changed),)
        found = remedies(self.row.name, self.row.status, self.stop_reason, self.row.due_at)
        return tuple(
            replace(each, setting="profiles.max_iterations", file="the settings")
            if isinstance(each, RaiseRounds)
            else each
            for each in found
        )

    @property
    def position(self) -> str:
        """The phase and the stage, as users read them."""
        stage = f"[{self.stage.name}]" if self.stage is not None else ""
        return f"{self.phase.name}{stage}"

    @property
    def file(self) -> Path | None:
        """The file that a pending request is about."""
        paths = [each["path"] for each in self.requests if each["path"]]
        return file_path(self.folder, paths[0]) if paths else None

    @property
    def commands(self) -> list[str]:
        """The commands that come next."""
        if not self.requests:
            return next_commands(self.remedies)
        if not self.file:
            return [command for each in self.requests for command in each["commands"]]
        approve = f"signoff profile approve {self.row.name}{project_dir_words()}"
        if not self.file.exists():
            return [approve]
        allowed = TransitionTable.commands(self.phase, self.stage)
        overruling = [f"{approve} {OVERRULING[each]}" for each in allowed if each in OVERRULING]
        reject = [f'signoff profile reject {self.row.name} -f "..."{project_dir_words()}']
        return [approve, *overruling, *(reject if SessionCommand.REJECT in allowed else [])]

    def to_json(self) -> dict[str, Any]:
        """Returns everything as plain values."""
        request = self.requests[0] if self.requests else None
        return {
            "run": self.row.name,
            **self.state,
            "run_status": self.row.status.value,
            "step": self.row.step,
            "reason": self.row.reason,
            "file": str(self.file) if self.file else None,
            "request": request,
            "commands": self.commands,
            "directory": str(self.folder),
            "exit_code": exits.OF_STATUS.get(self.row.status),
        }


def view_session(project: Project, row: RunRow) -> SessionView:
    """Returns a session as it is now."""
    row = current_row(project, row)
    items = project.store.items(row.name)
    run = load_state(project, row)
    source = json.loads(project.store.description(row.id)).get("source") or {}
    state = session_fields(run, source, [form_of(project, item) for item in items])
    requests = tuple(request_to_json(project, item) for item in items)
    answered = not items and bool(project.store.items(row.name, state=(ItemState.ANSWERED,)))
    changed = answered and _has_changed(project, row)
    folder = project.folder(row.name)
    return SessionView(
        row,
        state,
        *position(run.status, run.step),
        requests,
        folder,
        run.stop_reason,
        answered,
        changed,
    )


def _has_changed(project: Project, row: RunRow) -> bool:
    try:
        return project.find_again(row).workflow.digest != row.definition
    except SignoffError:
        # The status of a session can be shown without its profile; resuming it reports the error.
        return False


def print_session(view: SessionView, out: Output) -> None:
    """Prints a session: where it is, why it waits there, and what to do next."""
    if out.as_json:
        out.json(view.to_json())
        return
    first = f"{view.row.name}  {view.state['profile']}  {view.position}  {view.status.value}"
    out.line(first, style=_STYLES.get(view.status, "red"))
    for label, text in _facts(view):
        out.prose(f"  {label + ':':<11} {text}", hang=" " * 14)
    for text in view.commands:
        # Commands are not wrapped, so that they can be copied.
        out.line(f"  {text}")


def _facts(view: SessionView) -> Iterator[tuple[str, str]]:
    yield "round", str(view.state["current_iteration"])
    yield from _troubles(view)
    yield from _results(view)
    if view.answered:
        yield "decided", "the decision is recorded; the session has not continued yet"
    if view.file is not None:
        yield "waits for", _what_to_do(view, view.file)
    elif view.folder.is_dir():
        yield "files", shown_path(view.folder)


def _troubles(view: SessionView) -> Iterator[tuple[str, str]]:
    state = view.state
    if view.phase is WorkflowPhase.ERROR and view.row.step is not None:
        yield "failed at", view.row.step
    if error := state["last_error"]:
        yield "error", error
    elif view.row.reason and view.row.status is not Status.WAITING:
        yield "reason", view.row.reason
    if feedback := state["approval_feedback"]:
        yield "feedback", feedback


def _results(view: SessionView) -> Iterator[tuple[str, str]]:
    state = view.state
    if verdict := state["metadata"].get("verdict"):
        yield "verdict", f"{verdict} (the last review)"
    for override in state["metadata"].get("overrides", ()):
        yield "overruled", describe_override(override)
    for artifact in state["artifacts"]:
        if artifact["iteration"] == state["current_iteration"]:
            yield "generated", shown_path(view.folder / artifact["path"])


def _what_to_do(view: SessionView, file: Path) -> str:
    path = shown_path(file)
    if not file.exists():
        prompt = file.name.replace(WorkflowStage.RESPONSE.value, WorkflowStage.PROMPT.value)
        return f"{path}: save the response to {prompt} there, then approve"
    if view.stage is WorkflowStage.PROMPT:
        return f"{path}: edit it if you like, then approve"
    if view.state["last_error"]:
        return f"{path}: correct it if the error is about it, then approve or reject"
    return f"{path}: read it, edit it if you like, then approve or reject"
