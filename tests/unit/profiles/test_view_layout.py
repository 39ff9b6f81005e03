import json
from pathlib import Path
from typing import Any

from signoff.profiles import WorkflowState
from signoff.profiles.view import ProfileLayout
from signoff.store.rundir.layout import Layout
from tests.unit.profiles.session_fixture import (
    SessionFixture,
    agent,
    review,
)


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
