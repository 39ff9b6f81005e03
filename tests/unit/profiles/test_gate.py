from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import AgentTimeout
from signoff.core.outcome import Status
from tests.unit.profiles.session_fixture import (
    APPROVED,
    PENDING,
    ProbeProfile,
    SessionFixture,
    agent,
    register_approver,
    register_provider,
    rejected,
    review,
)


class Regenerating(ProbeProfile):
    """Puts the feedback on a rejected prompt into the next one."""

    can_regenerate_prompts = True

    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        return f"Plan it. {context.get('approval_feedback', 'No feedback yet.')}"


def prompt_gate(folder: Path, **rules: Any) -> SessionFixture:
    profile = rules.pop("profile", ProbeProfile)
    stages = {"plan.prompt": {"approver": "probe-approver", **rules}}
    return SessionFixture(folder, profile, approval={"stages": stages})


def response_gate(folder: Path, **rules: Any) -> SessionFixture:
    stages = {"plan.prompt": "skip", "plan.response": {"approver": "probe-approver", **rules}}
    return SessionFixture(folder, approval={"stages": stages}, providers={"planner": "claude"})


def test_a_pending_prompt_waits_and_is_not_judged_again(tmp_path: Path) -> None:
    """PENDING hands the decision over to a human for good."""
    calls = register_approver("probe-approver", PENDING)
    session = prompt_gate(tmp_path)

    state = session.start()

    assert (session.step, state.pending_approval, state.last_error) == ("plan.prompt", True, None)
    session.approve()
    assert (session.step, len(calls)) == ("plan.response", 1)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_suggested_prompt_replaces_the_rejected_one_only_where_that_is_allowed(
    tmp_path: Path, allowed: bool
) -> None:
    """Without allow_rewrite, no approver may change what goes to the provider."""
    calls = register_approver("probe-approver", rejected("vague", "Plan all seas.\n"))
    session = prompt_gate(tmp_path, allow_rewrite=allowed, max_retries=3)

    state = session.start()

    expected = "Plan all seas.\n" if allowed else "Plan the sea.\n"
    assert session.text("iteration-1/planning-prompt.md") == expected
    assert session.step == "plan.prompt"
    assert (state.approval_feedback, state.suggested_content) == ("vague", "Plan all seas.\n")
    state = session.approve()
    assert len(calls) == 1
    assert session.stored["prompt"] == expected
    assert (state.approval_feedback, state.suggested_content, state.retry_count) == (None, None, 0)


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_a_rejected_prompt_is_created_again_as_often_as_allowed(
    tmp_path: Path, retries: int
) -> None:
    """A profile and an approver that never agree must not loop."""
    calls = register_approver("probe-approver", rejected("vague"))
    session = prompt_gate(tmp_path, profile=Regenerating, max_retries=retries)

    state = session.start()

    assert len(calls) == 1 + retries
    assert session.step == "plan.prompt"
    assert state.last_error == f"Approval rejected after {1 + retries} attempts"
    assert state.retry_count == 1 + retries
    last = "Plan it. vague\n" if retries else "Plan it. No feedback yet.\n"
    assert session.text("iteration-1/planning-prompt.md") == last


def test_a_new_version_of_a_prompt_that_is_approved_continues(tmp_path: Path) -> None:
    """The approver's second opinion counts like its first."""
    register_approver("probe-approver", rejected("vague"), APPROVED)
    session = prompt_gate(tmp_path, profile=Regenerating, max_retries=1)

    state = session.start()

    assert session.step == "plan.response"
    assert session.stored["prompt"] == "Plan it. vague\n"
    assert (state.last_error, state.approval_feedback, state.retry_count) == (None, None, 0)


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_a_rejected_response_is_requested_again_as_often_as_allowed(
    tmp_path: Path, retries: int
) -> None:
    """max_retries R means at most 1 + R evaluations, and the message counts them."""
    calls = register_approver("probe-approver", rejected("too short", "a long plan"))
    planner = agent(*(f"plan {number}" for number in range(1, 6)))
    session = response_gate(tmp_path, max_retries=retries)

    state = session.start(claude=planner)

    assert len(calls) == len(planner.requests) == 1 + retries
    assert (session.step, session.status) == ("plan.response", Status.WAITING)
    assert state.last_error == f"Approval rejected after {1 + retries} attempts"
    assert (state.retry_count, state.approval_feedback) == (1 + retries, "too short")
    assert state.suggested_content == "a long plan"
    assert session.text("iteration-1/planning-response.md") == f"plan {1 + retries}"
    assert (state.plan_hash, state.plan_approved) == (None, False)
    assert "plan.md" not in session.files


def test_a_human_overrides_a_rejected_response_and_everything_is_cleared(tmp_path: Path) -> None:
    """Counter, feedback and suggestion belong to the stage that the session has left."""
    calls = register_approver("probe-approver", rejected("too short", "a long plan"))
    session = response_gate(tmp_path, max_retries=1)
    session.start(claude=agent("plan"))

    state = session.approve("my own plan\n")

    assert session.step == "generate.prompt"
    assert len(calls) == 2
    assert session.text("plan.md") == "my own plan\n"
    assert (state.last_error, state.approval_feedback, state.suggested_content) == (None,) * 3
    assert state.retry_count == 0


@pytest.mark.parametrize("stage", ["plan.prompt", "plan.response"])
def test_a_rejection_by_hand_keeps_the_counter_of_the_stage(tmp_path: Path, stage: str) -> None:
    """Counter and suggestion are cleared when the session leaves the stage, not before."""
    register_approver("probe-approver", rejected("too short", "a long plan"))
    stages = {"plan.prompt": "skip", stage: "probe-approver"}
    session = SessionFixture(tmp_path, approval={"stages": stages}, providers={"planner": "claude"})
    session.start(claude=agent("plan", "another plan"))

    state = session.reject("no tables")

    assert session.step == stage
    assert (state.retry_count, state.suggested_content) == (1, "a long plan")
    assert (state.approval_feedback, state.last_error) == ("no tables", None)


def test_a_rejection_by_hand_gives_an_approver_no_further_evaluations(tmp_path: Path) -> None:
    """max_retries R means at most 1 + R evaluations, also of responses that a human writes."""
    calls = register_approver("probe-approver", rejected("too short"))
    stages = {"plan.prompt": "skip", "plan.response": "probe-approver"}
    session = SessionFixture(tmp_path, approval={"stages": stages})
    session.start()
    session.approve("a plan")
    session.reject("I will write a better one")

    session.approve("a better plan")

    assert len(calls) == 1
    assert session.step == "generate.prompt"


FAULTS = [RuntimeError("no network"), AgentTimeout("no answer within 5 seconds"), None]


@pytest.mark.parametrize("fault", FAULTS, ids=["error", "timeout", "None"])
def test_a_failed_approver_is_asked_again_by_the_next_approve(tmp_path: Path, fault: Any) -> None:
    """A broken approver is no approval, and the provider must not be paid again."""
    calls = register_approver("probe-approver", fault, fault, APPROVED)
    planner = agent("a plan")
    session = response_gate(tmp_path)

    first = session.start(claude=planner)
    second = session.approve()

    for state in (first, second):
        assert (state.phase, state.stage) == ("plan", "response")
        assert state.status == "in_progress"
        assert "'probe-approver'" in (state.last_error or "")
        assert state.plan_hash is None
    if fault is None:
        assert "TypeError" in (first.last_error or "")
    assert session.approve().last_error is None
    assert (session.step, len(calls), len(planner.requests)) == ("generate.prompt", 3, 1)


def test_an_approver_that_recovers_and_rejects_has_the_provider_asked_again(
    tmp_path: Path,
) -> None:
    """The gate is the same one, however often its approver failed before."""
    calls = register_approver("probe-approver", OSError("down"), rejected("too short"), APPROVED)
    planner = agent("a plan", "a longer plan")
    session = response_gate(tmp_path, max_retries=1)
    session.start(claude=planner)

    session.approve("an edited plan\n")

    assert session.step == "generate.prompt"
    assert [next(iter(call["files"].values())) for call in calls] == [
        "a plan",
        "an edited plan\n",
        "a longer plan",
    ]
    assert "an edited plan" in planner.prompts[1]
    assert session.text("plan.md") == "a longer plan"


def test_a_rejection_by_hand_gets_past_an_approver_that_never_works(tmp_path: Path) -> None:
    """The session must stay usable: after a rejection the human decides."""
    register_approver("probe-approver", OSError("down"))
    planner = agent("a plan", "another plan")
    session = response_gate(tmp_path)
    session.start(claude=planner)

    session.reject("use another plan")
    state = session.approve()

    assert session.step == "generate.prompt"
    assert state.last_error is None
    assert session.text("plan.md") == "another plan"


def test_a_response_by_hand_is_handed_in_to_the_approver(tmp_path: Path) -> None:
    """One approve hands it in; the approver decides, and its feedback reaches the human."""
    stages = {"plan.prompt": "skip", "plan.response": {"approver": "codex", "max_retries": 1}}
    session = SessionFixture(tmp_path, approval={"stages": stages})
    judge = agent(
        "DECISION: REJECTED\nFEEDBACK: no tables", "DECISION: REJECTED\nFEEDBACK: no keys"
    )
    session.start(codex=judge)

    first = session.approve("a plan\n")
    second = session.approve("a plan with tables\n")
    session.approve()

    assert (first.approval_feedback, first.retry_count) == ("no tables", 1)
    assert (second.approval_feedback, second.retry_count) == ("no keys", 2)
    assert second.last_error == "Approval rejected after 2 attempts"
    assert len(judge.requests) == 2
    assert (session.step, session.text("plan.md")) == ("generate.prompt", "a plan with tables\n")


def test_a_gate_by_ai_provider_that_returns_none_is_a_type_error_that_names_it(
    tmp_path: Path,
) -> None:
    """A gate needs a decision; a human does not stand behind an approver."""
    register_provider("silent", lambda _prompt, _context: None)
    session = SessionFixture(tmp_path, approval={"stages": {"plan.prompt": "silent"}})

    state = session.start()

    assert session.step == "plan.prompt"
    assert "TypeError" in (state.last_error or "")
    assert "'silent'" in (state.last_error or "")


def test_the_review_is_judged_with_the_plan_and_the_code(tmp_path: Path) -> None:
    """A judge that sees only the review cannot tell whether its verdict follows."""
    calls = register_approver("probe-approver", PENDING)
    approval = {"default_approver": "skip", "stages": {"review.response": "probe-approver"}}
    session = SessionFixture(tmp_path, approval=approval, providers={"default": "claude"})

    session.start(claude=agent("a plan", "waves", review("PASS")))

    files = calls[0]["files"]
    assert list(files) == ["iteration-1/review-response.md", "plan.md", "the code"]
    assert files["plan.md"] == "a plan"
    assert "waves" in files["the code"]


@pytest.mark.parametrize("command", ["approve_complete", "reject", "nonsense"])
def test_a_command_that_the_table_does_not_allow_leaves_the_session_waiting(
    tmp_path: Path, command: str
) -> None:
    """Whatever surface sends it, the table decides."""
    session = SessionFixture(tmp_path)
    session.start()

    state = session.approve(command=command)

    assert (session.step, session.status) == ("plan.prompt", Status.WAITING)
    assert state.last_error == f"{command} is not possible at the plan prompt"
    state = session.approve()
    assert (session.step, state.last_error) == ("plan.response", None)


def test_an_unknown_fs_ability_leaves_the_session_waiting(tmp_path: Path) -> None:
    """Stored, it would break every prompt that follows."""
    session = SessionFixture(tmp_path)
    session.start()

    state = session.approve(fs_ability="telepathy")

    assert session.step == "plan.prompt"
    assert "'telepathy'" in (state.last_error or "")
    assert "local-read" in (state.last_error or "")
    assert "fs_ability" not in session.stored
