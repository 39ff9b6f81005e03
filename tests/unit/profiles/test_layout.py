import json
from pathlib import Path
from typing import Any

import pytest

from signoff.profiles import WorkflowState
from signoff.profiles.layout import ProfileLayout
from signoff.store.rundir.layout import Layout
from tests.unit.profiles.session_fixture import (
    SessionFixture,
    agent,
    register_approver,
    rejected,
    review,
)


def state_json(session: SessionFixture) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(session.text("state.json"))
    return data


def test_state_json_has_the_header_and_the_fields_of_the_state(tmp_path: Path) -> None:
    """The seed's status is `workflow_status`, because every run has a status of its own."""
    session = SessionFixture(tmp_path)
    state = session.start()

    shown = state_json(session)

    assert (shown["run"], shown["status"], shown["step"]) == ("test", "waiting", "plan.prompt")
    assert shown["workflow_status"] == "in_progress"
    own = set(WorkflowState.model_fields) - {"status", "messages"}
    assert own <= set(shown)
    for name in ("session_id", "phase", "stage", "context", "current_iteration"):
        assert shown[name] == json.loads(state.model_dump_json())[name]


def test_the_fields_collide_with_no_common_one(tmp_path: Path) -> None:
    """A profile's field would hide what every tool expects there."""
    session = SessionFixture(tmp_path)
    session.start()

    common = set(state_json(session)) - set(_own_fields(session))

    assert {"run", "status", "step", "iteration", "updated_at"} <= common


def _own_fields(session: SessionFixture) -> dict[str, Any]:
    from signoff.app.history import load_state
    from signoff.store.rundir.layout import ShownRun

    with session.fixture.project() as project:
        run = load_state(project, project.run("test"))
    return dict(ProfileLayout().fields(ShownRun(run, {"source": None})))


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (review("PASS"), ("complete", "success")),
        (review("FAIL", 1), ("review", "failed")),
        (RuntimeError("no network"), ("error", "error")),
    ],
)
def test_the_end_of_a_session_is_shown(
    tmp_path: Path, last: Any, expected: tuple[str, str]
) -> None:
    """COMPLETE, FAILED and ERROR come from the run, not from the last stage."""
    session = SessionFixture(
        tmp_path,
        providers={"default": "claude"},
        approval={"default_approver": "skip"},
        max_iterations=1,
    )

    session.start(claude=agent("a plan", "waves", last))

    shown = state_json(session)
    assert (shown["phase"], shown["workflow_status"]) == expected


def test_why_a_session_waits_is_shown(tmp_path: Path) -> None:
    """A suggestion at a response is kept there for the user."""
    register_approver("probe-approver", rejected("too short", "a long plan"))
    stages = {"plan.prompt": "skip", "plan.response": "probe-approver"}
    session = SessionFixture(tmp_path, approval={"stages": stages}, providers={"planner": "claude"})

    session.start(claude=agent("a plan"))

    shown = state_json(session)
    assert shown["last_error"] == "Approval rejected after 1 attempts"
    assert (shown["approval_feedback"], shown["retry_count"]) == ("too short", 1)
    assert (shown["suggested_content"], shown["pending_approval"]) == ("a long plan", True)


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
