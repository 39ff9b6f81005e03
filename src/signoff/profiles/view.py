"""A session as its user sees it: the fields of `WorkflowState`, computed from the run.

They are plain JSON values, as `state.json`, `show` and the commands of profiles show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from signoff.core.digest import text_digest
from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.run_state import RunState
from signoff.notation import RunReport
from signoff.profiles.session import (
    STANDARDS_PARAM,
    STANDARDS_PROVIDER_PARAM,
    Note,
    code_folder,
    position_of,
)
from signoff.profiles.transitions import (
    SessionCommand,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
    WorkflowStatus,
)
from signoff.store.run_layout import Layout, ShownRun

_FAILED = (WorkflowPhase.ERROR, WorkflowStatus.ERROR)
_ENDS: Mapping[Status, tuple[WorkflowPhase, WorkflowStatus]] = {
    # Whatever else ends a run ends its session with an error; only the limit of rounds does not.
    **dict.fromkeys(set(Status) - NOT_ENDED - {Status.LIMIT}, _FAILED),
    Status.COMPLETED: (WorkflowPhase.COMPLETE, WorkflowStatus.SUCCESS),
    Status.CANCELLED: (WorkflowPhase.CANCELLED, WorkflowStatus.CANCELLED),
}
"""The phase of a session that has ended; at the round limit it stays where it was."""

NO_HASH = "0" * 64
"""The hash of the standards before there are any."""


class ProfileLayout(Layout):
    """Shows a session: its state is that of `WorkflowState`, its files are those it wrote."""

    shows_calls = False
    nests_run = True

    def fields(self, run: ShownRun) -> Mapping[str, Any]:
        """Returns the fields of `WorkflowState`."""
        return session_fields(run.state, run.description.get("source") or {}, run.requests)


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> RunReport:
    """Returns the report on a session from its state."""
    artifacts = list(state.get("artifacts", ()))
    lines = []
    if verdict := state.get("verdict"):
        lines.append(f"last review: {verdict}")
    lines += map(describe_override, state.get("overrides", ()))
    # Each round has a folder with the whole code, so only the last one is what the session
    # delivers.
    latest = max((each["iteration"] for each in artifacts), default=0)
    files = [each["path"] for each in artifacts if each["iteration"] == latest]
    if files:
        lines.append(f"generated files: {len(files)} in {code_folder(latest)}/")
    facts = {
        "verdict": state.get("verdict"),
        "overrides": state.get("overrides"),
        "artifacts": artifacts,
    }
    return RunReport(
        "\n".join(lines),
        "\n".join(files),
        lambda: {name: value for name, value in facts.items() if value},
    )


def describe_override(override: Mapping[str, Any]) -> str:
    """Returns who overruled which verdict, on one line."""
    stated = override.get("verdict") or "neither PASS nor FAIL"
    return (
        f"round {override['round']}: {override.get('by') or 'a human'} decided "
        f"{override['decided']} (the review says {stated})"
    )


def session_fields(
    run: RunState, source: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the fields of `WorkflowState`; `requests` are the forms of the open requests."""
    phase, stage, status = position(run.status, run.step)
    note = _note(run, requests)
    state, params = run.state, dict(run.params)
    bundle = params.pop(STANDARDS_PARAM, None)
    standards = params.pop(STANDARDS_PROVIDER_PARAM, None) or source.get("standards_provider")
    # The reason that the engine has recorded belongs to a run that failed; while a session waits,
    # the note of the stage is what its user has to act on.
    failed = status is WorkflowStatus.ERROR
    return {
        "session_id": run.seed,
        "profile": str(source.get("profile", run.workflow)),
        "phase": phase.value,
        "stage": stage.value if stage is not None else None,
        "status": status.value,
        "current_iteration": run.iteration,
        "context": params,
        "ai_providers": dict(source.get("providers", {})),
        "standards_provider": standards,
        "standards_hash": text_digest(bundle) if isinstance(bundle, str) else NO_HASH,
        "plan_approved": bool(state.get("plan_approved")),
        "plan_hash": state.get("plan_hash"),
        "prompt_hashes": dict(state.get("prompt_hashes") or {}),
        "review_approved": bool(state.get("review_approved")),
        "review_hash": state.get("review_hash"),
        "artifacts": list(state.get("artifacts") or ()),
        "metadata": _metadata(state, source),
        "pending_action": _pending_action(phase, stage) if requests else None,
        "pending_approval": bool(requests),
        "last_error": run.reason if failed else note.last_error or None,
        "approval_feedback": note.approval_feedback or None,
        "suggested_content": note.suggested_content,
        "retry_count": note.retry_count,
        "created_at": _time(run.started_at),
        "updated_at": _time(run.updated_at),
        "phase_history": _history(run, phase, stage, status),
    }


def position(
    status: Status, step: str | None
) -> tuple[WorkflowPhase, WorkflowStage | None, WorkflowStatus]:
    """Returns where a session is, from the status of its run and the current step."""
    if status in _ENDS:
        phase, ended = _ENDS[status]
        return phase, None, ended
    if step is None:
        return WorkflowPhase.INIT, None, WorkflowStatus.IN_PROGRESS
    phase, stage = position_of(step)
    limit = status is Status.LIMIT
    return phase, stage, WorkflowStatus.FAILED if limit else WorkflowStatus.IN_PROGRESS


def _note(run: RunState, requests: Sequence[Mapping[str, Any]]) -> Note:
    """Returns why the session waits: an open request knows it better than the state."""
    # The state is stored when a step ends, so while a session waits only its open request knows
    # why.
    for form in requests:
        if "stage" in (form.get("about") or {}):
            return Note.from_json(form["about"])
    stored = run.state.get("note")
    return Note.from_json(stored) if stored else Note()


def _pending_action(phase: WorkflowPhase, stage: WorkflowStage | None) -> str | None:
    """Returns what an approval leads to."""
    row = TransitionTable.get(phase, stage, SessionCommand.APPROVE)
    return row.action.value if row is not None else None


def _metadata(state: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: state[name] for name in ("verdict", "overrides") if state.get(name)}
    return {**source.get("metadata", {}), **own}


def _history(
    run: RunState, phase: WorkflowPhase, stage: WorkflowStage | None, status: WorkflowStatus
) -> list[dict[str, Any]]:
    entries = [
        {**entry, "timestamp": _json_time(datetime.fromisoformat(entry["timestamp"]))}
        for entry in run.state.get("phase_history", ())
    ]
    # A phase is stored when its prompt is approved; before that, and at the end, the run tells.
    if status is not WorkflowStatus.IN_PROGRESS or stage is WorkflowStage.PROMPT:
        changed = _json_time(datetime.fromtimestamp(run.updated_at, UTC))
        entries.append({"phase": phase.value, "status": status.value, "timestamp": changed})
    return entries


def _time(seconds: float) -> str | None:
    return _json_time(datetime.fromtimestamp(seconds, UTC)) if seconds else None


def _json_time(time: datetime) -> str:
    """Returns a time as pydantic writes it."""
    return time.isoformat().replace("+00:00", "Z")
