import pytest

from signoff.core.context import StepContext
from signoff.profiles import WorkflowPhase, WorkflowStage
from signoff.profiles.session import (
    ROLES,
    Note,
    Session,
    SessionState,
    StageRules,
    position_of,
    step_id,
)
from tests.unit.profiles.session_fixture import ProbeProfile


@pytest.mark.parametrize("phase", list(ROLES))
@pytest.mark.parametrize("stage", list(WorkflowStage))
def test_the_id_of_a_step_is_its_position(phase: WorkflowPhase, stage: WorkflowStage) -> None:
    """Stored runs name their steps so."""
    assert step_id(phase, stage) == f"{phase.value}.{stage.value}"
    assert position_of(step_id(phase, stage)) == (phase, stage)


def test_a_note_holds_only_what_is_set() -> None:
    """It is stored with every wait."""
    note = Note(last_error="bad", retry_count=2)

    assert note.to_json() == {"last_error": "bad", "retry_count": 2}
    assert Note.from_json({**note.to_json(), "title": "plan prompt"}) == note
    assert Note.from_json({}) == Note()


def test_a_role_by_hand_has_no_provider() -> None:
    """A file is waited for instead."""
    providers = dict.fromkeys(ROLES.values(), "manual") | {"reviewer": "claude"}
    session = Session("p", ProbeProfile(), providers, {}, frozenset({"manual"}), {})

    assert session.provider(WorkflowPhase.PLAN) is None
    assert session.provider(WorkflowPhase.REVIEW) == "claude"


def test_the_state_of_a_new_session_is_empty() -> None:
    """Nothing is there before the first stage has ended."""
    state = SessionState(StepContext("plan.prompt"))

    texts = (state.standards, state.prompt, state.plan, state.review, state.response)
    assert texts == ("",) * 5
    assert (state.code, state.artifacts, state.provided_files) == ({}, [], {})
    assert (state.note, state.feedback, state.fs_ability) == (None, "", None)


def test_the_context_has_no_standards() -> None:
    """They are the engine's, and may be long."""
    params = {"subject": "the sea", "standards_bundle": "rules"}
    state = SessionState(StepContext("plan.prompt", workflow_params=params))

    assert state.context == {"subject": "the sea"}
    assert state.standards == "rules"


def test_stages_wait_for_a_human_by_default() -> None:
    """Nothing is approved that no one saw."""
    assert StageRules() == StageRules("manual", 0, False, None, "")
