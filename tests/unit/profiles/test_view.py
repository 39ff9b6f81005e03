import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.profiles import WorkflowPhase, WorkflowStage, WorkflowState, WorkflowStatus
from signoff.profiles.view import ProfileLayout, position, report, session_fields
from signoff.store.run_layout import Layout
from tests.unit.profiles.session_fixture import (
    SessionFixture,
    agent,
    review,
)

GATE = {"about": {"title": "plan response", "phase": "plan", "stage": "response"}}


def run_state(**fields: Any) -> RunState:
    return RunState(workflow="poem", seed="abc", status=Status.WAITING, **fields)


def workflow_state(
    run: RunState, source: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]
) -> WorkflowState:
    """Returns the fields as the model that they belong to, which they have to match exactly."""
    fields = session_fields(run, source, requests)
    state = WorkflowState.model_validate(fields)
    assert state.model_dump(mode="json", exclude={"run"}) == fields
    return state


@pytest.mark.parametrize("status", list(Status))
def test_every_status_of_a_run_has_a_position(status: Status) -> None:
    """A new status must not break `state.json`."""
    phase, stage, shown = position(status, "review.response")

    ended = stage is None
    assert ended == (
        phase in (WorkflowPhase.COMPLETE, WorkflowPhase.ERROR, WorkflowPhase.CANCELLED)
    )
    assert (shown is WorkflowStatus.IN_PROGRESS) == (
        status in (Status.QUEUED, Status.RUNNING, Status.WAITING, Status.PARKED, Status.INTERRUPTED)
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.COMPLETED, (WorkflowPhase.COMPLETE, None, WorkflowStatus.SUCCESS)),
        (Status.CANCELLED, (WorkflowPhase.CANCELLED, None, WorkflowStatus.CANCELLED)),
        (Status.FAILED, (WorkflowPhase.ERROR, None, WorkflowStatus.ERROR)),
        (
            Status.LIMIT,
            (WorkflowPhase.REVIEW, WorkflowStage.RESPONSE, WorkflowStatus.FAILED),
        ),
    ],
)
def test_the_ends_of_a_session(
    status: Status, expected: tuple[WorkflowPhase, WorkflowStage | None, WorkflowStatus]
) -> None:
    """At the round limit a session stays where it was."""
    assert position(status, "review.response") == expected


def test_a_run_without_a_step_has_not_begun() -> None:
    """Between the start of a run and its first step."""
    assert position(Status.RUNNING, None) == (WorkflowPhase.INIT, None, WorkflowStatus.IN_PROGRESS)


def test_a_pending_request_says_why_the_session_waits() -> None:
    """The state of the run is that of the last stage that ended."""
    run = run_state(step="plan.response", state={"note": {"last_error": "old"}})
    form = {"about": {**GATE["about"], "approval_feedback": "new", "retry_count": 2}}

    state = workflow_state(run, {}, [form])

    assert (state.approval_feedback, state.retry_count, state.last_error) == ("new", 2, None)
    assert state.pending_approval


def test_a_request_of_the_engine_hides_no_note() -> None:
    """For example a question about a call that a crash interrupted."""
    run = run_state(step="plan.response", state={"note": {"last_error": "bad path"}})

    state = workflow_state(run, {}, [{"kind": "choice"}])

    assert (state.last_error, state.pending_approval) == ("bad path", True)


@pytest.mark.parametrize(
    ("step", "action"),
    [
        ("plan.prompt", "call_ai"),
        ("plan.response", "create_prompt"),
        ("review.response", "check_verdict"),
    ],
)
def test_the_pending_action_is_what_an_approval_leads_to(step: str, action: str) -> None:
    """As the transition table says."""
    assert workflow_state(run_state(step=step), {}, [GATE]).pending_action == action
    assert workflow_state(run_state(step=step), {}, []).pending_action is None


def test_the_parameters_are_the_context_except_for_the_standards() -> None:
    """The bundle has a file of its own; the state holds its hash."""
    run = run_state(step="plan.prompt", params={"subject": "sea", "standards_bundle": "rules"})

    state = workflow_state(run, {"profile": "poem", "providers": {"planner": "manual"}}, [])

    assert state.context == {"subject": "sea"}
    assert len(set(state.standards_hash)) > 1
    assert (state.profile, state.ai_providers) == ("poem", {"planner": "manual"})
    assert workflow_state(run_state(step="plan.prompt"), {}, []).standards_hash == "0" * 64


@pytest.mark.parametrize("seconds", [1767323045.0, 1767323045.25])
def test_times_are_written_as_the_model_writes_them(seconds: float) -> None:
    """With and without fractions of a second."""
    run = run_state(step="plan.prompt", started_at=seconds, updated_at=seconds)

    state = workflow_state(run, {}, [])

    assert state.created_at == datetime.fromtimestamp(seconds, UTC)


def test_no_field_is_missing() -> None:
    """Every field of the model but `messages`, which is not stored."""
    fields = session_fields(run_state(step="plan.prompt"), {}, [])

    assert [*fields, "run", "messages"] == list(WorkflowState.model_fields)


@pytest.mark.parametrize("step", ["generate.prompt", "generate.response"])
def test_the_history_ends_with_the_current_phase(step: str) -> None:
    """Also while its prompt waits to be approved."""
    entered = ["plan"] if step.endswith("prompt") else ["plan", "generate"]
    history = [
        {"phase": phase, "status": "in_progress", "timestamp": "2026-01-02T03:04:05+00:00"}
        for phase in entered
    ]

    state = workflow_state(run_state(step=step, state={"phase_history": history}), {}, [])

    assert [each.phase for each in state.phase_history] == ["plan", "generate"]


def test_a_failed_session_shows_the_reason(tmp_path: Path) -> None:
    """What the run reports is what its user looks for."""
    run = RunState(status=Status.FAILED, step="plan.response", reason="no network")

    state = workflow_state(run, {}, [])

    assert (state.status, state.last_error) == (WorkflowStatus.ERROR, "no network")
    assert state.phase_history[-1].phase is WorkflowPhase.ERROR


def artifact(path: str, iteration: int) -> dict[str, object]:
    return {"path": path, "iteration": iteration, "phase": "generate", "sha256": "0" * 64}


def test_the_files_of_the_last_iteration_are_listed() -> None:
    """Earlier versions are in their own folders."""
    files = [artifact("iteration-1/code/a", 1), artifact("iteration-2/code/a", 2)]

    shown = report({"artifacts": files, "verdict": "PASS"}, {})

    assert shown.summary == "last review: PASS\ngenerated files: 1 in iteration-2/code/"
    assert shown.details == "iteration-2/code/a"
    assert shown.facts == {"verdict": "PASS", "artifacts": files}


def test_an_override_is_shown_with_its_author_and_the_verdict() -> None:
    """A session that a human completed must not look like one that passed."""
    overrides = [
        {"round": 1, "verdict": None, "decided": "FAIL", "by": "ann", "reason": ""},
        {"round": 2, "verdict": "FAIL", "decided": "PASS", "by": "", "reason": "late"},
    ]

    shown = report({"verdict": "FAIL", "overrides": overrides}, {})

    assert shown.summary.splitlines() == [
        "last review: FAIL",
        "round 1: ann decided FAIL (the review says neither PASS nor FAIL)",
        "round 2: a human decided PASS (the review says FAIL)",
    ]
    assert shown.facts["overrides"] == overrides


def state_json(session: SessionFixture) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(session.text("state.json"))
    return data


def test_state_json_is_the_state_with_the_record_of_the_run(tmp_path: Path) -> None:
    """Its own fields come first, under the names of the model; what every run has is in one."""
    session = SessionFixture(tmp_path)
    state = session.start()

    shown = state_json(session)

    assert list(shown) == [*[*WorkflowState.model_fields][:-2], "run"]
    assert WorkflowState.model_validate(shown).model_dump(exclude={"run"}) == state.model_dump(
        exclude={"run"}
    )
    run = shown["run"]
    assert (run["run"], run["status"], run["step"]) == ("test", "waiting", "plan.prompt")
    assert {"iteration", "updated_at", "spend", "limits", "projection"} <= set(run)


def test_calls_of_judges_and_providers_are_not_among_the_files(tmp_path: Path) -> None:
    """The session's own files have names that their users know."""
    assert not ProfileLayout.shows_calls
    assert Layout.shows_calls
    approval = {"default_approver": "codex"}
    session = SessionFixture(tmp_path, providers={"default": "claude"}, approval=approval)

    session.start(
        claude=agent("a plan", "waves", review("PASS")), codex=agent("DECISION: APPROVED")
    )

    assert state_json(session)["phase"] == "complete"
    texts = [path.read_text("utf-8") for path in session.folder.rglob("*.md")]
    assert not any("DECISION: APPROVED" in text for text in texts)
