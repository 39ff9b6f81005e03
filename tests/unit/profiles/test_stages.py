import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import InvalidAnswer
from signoff.core.outcome import Status
from signoff.profiles import AIProviderResult, FsAbility, WorkflowPhase
from signoff.profiles.session import SessionState
from signoff.profiles.stages import complete_prompt, retry_prompt
from tests.unit.profiles.session_fixture import (
    PENDING,
    ProbeProfile,
    SessionFixture,
    agent,
    register_approver,
    register_provider,
    review,
)

SKIP = {"default_approver": "skip"}


class AllVariables(ProbeProfile):
    """Uses every variable of the engine."""

    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        return "S: {{STANDARDS}}\nP: {{PLAN}}\nC: {{CODE}}\nR: {{REVIEW}}\nF: {{FEEDBACK}}"


def test_half_a_character_in_a_response_stops_nothing(tmp_path: Path) -> None:
    """A model may cut a surrogate pair in two."""
    session = SessionFixture(tmp_path, approval=SKIP, providers={"default": "claude"})

    state = session.start(claude=agent("a \ud800 plan", "waves", review("PASS")))

    assert state.status == "success"
    data = (session.folder / "plan.md").read_bytes()
    assert state.plan_hash == hashlib.sha256(data).hexdigest()


def test_a_provider_that_returns_none_leaves_the_response_to_a_human(tmp_path: Path) -> None:
    """It is how a manual provider of a project's own works."""
    calls: list[Mapping[str, Any]] = []

    def generate(_prompt: str, context: Mapping[str, Any]) -> None:
        calls.append(context)

    register_provider("desk", generate)
    session = SessionFixture(tmp_path, approval=SKIP, providers={"planner": "desk"})

    session.start()

    assert session.step == "plan.response"
    assert "iteration-1/planning-response.md" not in session.files
    with pytest.raises(InvalidAnswer, match=r"planning-response\.md is missing"):
        session.approve()
    session.approve("a plan\n")
    assert session.step == "generate.response"
    assert [(call["role"], call["phase"], call["subject"]) for call in calls] == [
        ("planner", "plan", "the sea")
    ]


def test_a_response_of_such_a_human_is_judged_by_the_approver(tmp_path: Path) -> None:
    """Whatever its author, the stage's approver decides about it, also after a rejection."""
    calls = register_approver("probe-approver", PENDING)
    register_provider("desk", lambda _prompt, _context: None)
    approval = {**SKIP, "stages": {"plan.response": "probe-approver"}}
    session = SessionFixture(tmp_path, approval=approval, providers={"planner": "desk"})
    session.start()

    session.approve("a plan\n")
    session.reject("longer")
    session.approve("a longer plan\n")

    judged = [next(iter(call["files"].values())) for call in calls]
    assert judged == ["a plan\n", "a longer plan\n"]
    assert session.step == "plan.response"
    session.approve()
    assert session.text("plan.md") == "a longer plan\n"


@pytest.mark.parametrize("result", ["a text", {"response": "x"}], ids=["str", "dict"])
def test_a_provider_that_returns_something_else_is_a_type_error_that_names_it(
    tmp_path: Path, result: Any
) -> None:
    """Version 1 of providers returned strings."""
    register_provider("odd", lambda _prompt, _context: result)
    session = SessionFixture(tmp_path, approval=SKIP, providers={"planner": "odd"})

    state = session.start()

    assert (session.status, state.status, state.phase) == (Status.FAILED, "error", "error")
    assert "TypeError" in (state.last_error or "")
    assert "'odd'" in (state.last_error or "")


def test_a_provider_that_raises_stops_the_session_which_can_be_resumed(tmp_path: Path) -> None:
    """The error is stored, and the stage is tried again once its cause is gone."""
    working: list[bool] = []

    def generate(_prompt: str, _context: Mapping[str, Any]) -> AIProviderResult:
        if not working:
            raise OSError("connection refused")
        return AIProviderResult(response="a plan")

    register_provider("flaky", generate)
    session = SessionFixture(tmp_path, approval=SKIP, providers={"planner": "flaky"})
    state = session.start()
    assert (session.status, state.status) == (Status.FAILED, "error")
    assert "connection refused" in (state.last_error or "")
    assert (state.pending_approval, state.plan_hash) == (False, None)

    working.append(True)
    state = session.resume()

    assert (session.step, state.last_error, state.status) == (
        "generate.response",
        None,
        "in_progress",
    )
    assert session.text("plan.md") == "a plan"


@pytest.mark.parametrize("ability", ["local-read", "local-write", "write-only", "none"])
def test_fs_ability_decides_about_texts_or_paths_and_the_last_lines(
    tmp_path: Path, ability: str
) -> None:
    """A model that reads files should not be sent them, one that cannot must be."""
    approval = {**SKIP, "stages": {"review.response": "manual", "revise.prompt": "manual"}}
    session = SessionFixture(
        tmp_path, AllVariables, approval=approval, providers={"default": "claude"}
    )
    session.start(claude=agent("a plan", "waves", review("FAIL", 1)))

    session.approve(fs_ability=ability)

    text = session.text("iteration-2/revision-prompt.md")
    reads = ability.startswith("local-")
    assert ("`plan.md`" in text) == ("`standards-bundle.md`" in text) == reads
    assert ("`iteration-1/code/`" in text) == reads
    assert ("`iteration-1/review-response.md`" in text) == reads
    assert ("waves" in text) != reads
    last = text.strip().rsplit("\n\n", 1)[-1]
    assert ("iteration-2/revision-response.md" in last) == (ability == "local-write")
    assert ("`revision-response.md`" in last) == (ability == "write-only")
    # It holds for the rest of the session.
    assert session.stored["fs_ability"] == ability


def test_prompts_are_hashed_if_the_settings_or_the_user_want_it(tmp_path: Path) -> None:
    """The hash is that of the approved prompt, with its edits."""
    session = SessionFixture(tmp_path, hash_prompts=True)
    session.start()
    state = session.approve("Plan it.\n")
    expected = {"iteration-1/planning-prompt.md": hashlib.sha256(b"Plan it.\n").hexdigest()}
    assert state.prompt_hashes == expected
    session.approve("a plan\n")

    state = session.approve(hash_prompts=False)

    assert state.prompt_hashes == expected
    assert session.stored["hash_prompts"] is False


def test_two_terminals_cannot_approve_one_gate_twice(tmp_path: Path) -> None:
    """The second approval must not count for the next gate, which no one has seen."""
    session = SessionFixture(tmp_path)
    session.start()
    session.record(True)

    with pytest.raises(InvalidAnswer, match="no longer open"):
        session.fixture.answer(True, number=1)

    session.resume()
    assert session.step == "plan.response"
    with pytest.raises(InvalidAnswer, match="no longer open"):
        session.fixture.answer(True, number=1)


def test_the_last_response_of_an_agent_is_shown_to_it_after_every_rejection(
    tmp_path: Path,
) -> None:
    """Not the first one, which it has replaced."""
    planner = agent("plan 1", "plan 2", "plan 3")
    approval = {"stages": {"plan.prompt": "skip"}}
    session = SessionFixture(tmp_path, approval=approval, providers={"planner": "claude"})
    session.start(claude=planner)

    session.reject("first")
    session.reject("second")

    assert "plan 2" in planner.prompts[2]
    assert "plan 1" not in planner.prompts[2]
    assert "second" in planner.prompts[2]
    assert "first" not in planner.prompts[2]


def test_a_registered_provider_declares_what_it_can_do_with_files(tmp_path: Path) -> None:
    """Other phases have other providers; what the user says holds for all."""
    result = AIProviderResult(response="waves")
    register_provider("reader", lambda _prompt, _context: result, FsAbility.LOCAL_READ)
    session = SessionFixture(tmp_path, providers={"generator": "reader"})
    session.start()
    session.approve()
    session.approve("a plan\n")
    assert "`plan.md`" in session.text("iteration-1/generation-prompt.md")
    session.approve()
    session.approve(fs_ability="write-only")

    prompt = session.text("iteration-1/review-prompt.md")

    assert "waves" in prompt
    assert "`review-response.md`" in prompt


def test_a_provider_that_writes_the_response_itself_is_not_overwritten(tmp_path: Path) -> None:
    """Its reply only says that it is done."""
    session = SessionFixture(tmp_path, providers={"planner": "writer"})

    def write(prompt: str, _context: Mapping[str, Any]) -> AIProviderResult:
        text = "a better plan\n" if "more" in prompt else "a plan\n"
        if "silence" not in prompt:
            session.write("iteration-1/planning-response.md", text)
        return AIProviderResult(response="I have written it.")

    register_provider("writer", write, FsAbility.LOCAL_WRITE)
    session.start()

    session.approve()
    assert session.text("iteration-1/planning-response.md") == "a plan\n"
    session.reject("more")
    assert session.text("iteration-1/planning-response.md") == "a better plan\n"
    session.reject("silence")
    assert session.text("iteration-1/planning-response.md") == "I have written it."


def test_a_resume_without_a_decision_keeps_what_the_user_edited(tmp_path: Path) -> None:
    """The file is written once; a replay must not write it again."""
    session = SessionFixture(tmp_path)
    session.start()
    session.write("iteration-1/planning-prompt.md", "Plan it, briefly.\n")

    session.resume()

    assert session.text("iteration-1/planning-prompt.md") == "Plan it, briefly.\n"
    session.approve()
    assert session.stored["prompt"] == "Plan it, briefly.\n"


ALL = "S={{STANDARDS}} P={{PLAN}} C={{CODE}} R={{REVIEW}} F={{FEEDBACK}}"


def session_state(iteration: int = 1, **state: Any) -> SessionState:
    context = StepContext(
        "revise.prompt",
        workflow_params={"standards_bundle": "the rules\n"},
        step_state={
            "plan": "the plan\n",
            "code": {"b.py": "b = 2\n", "a.py": "a = 1\n"},
            "review": "the review\n",
            **state,
        },
        iteration=iteration,
    )
    return SessionState(context)


@pytest.mark.parametrize("ability", [FsAbility.LOCAL_READ, FsAbility.LOCAL_WRITE])
@pytest.mark.parametrize(
    ("phase", "folder"), [(WorkflowPhase.REVISE, 2), (WorkflowPhase.REVIEW, 3)]
)
def test_the_variables_hold_paths_for_a_provider_with_files(
    ability: FsAbility, phase: WorkflowPhase, folder: int
) -> None:
    """A revision is about the code and the review of the iteration before."""
    prompt = complete_prompt(ALL, session_state(3), phase, "be brief", ability)

    assert "`standards-bundle.md`" in prompt
    assert "`plan.md`" in prompt
    assert f"`iteration-{folder}/code/`" in prompt
    assert f"`iteration-{folder}/review-response.md`" in prompt
    assert "F=be brief" in prompt
    assert "the plan" not in prompt


def test_values_are_never_rendered_again() -> None:
    """A plan that mentions a variable is not a template."""
    state = session_state(plan="use {{CODE}} and {{REVIEW}}")

    assert complete_prompt("{{PLAN}}", state, WorkflowPhase.GENERATE) == (
        "use {{CODE}} and {{REVIEW}}\n"
    )


def test_a_retry_has_the_prompt_the_answer_and_the_reason() -> None:
    """In this order: the end of a long prompt is read best."""
    prompt = retry_prompt("Plan it.\n", "a ``` plan", "too short\n")

    assert prompt.startswith("Plan it.\n\n---\n\n")
    assert prompt.index("a ``` plan") < prompt.index("too short")
    assert prompt.endswith("too short\n")


def test_the_next_reviewer_gets_the_previous_review_and_the_revisers_decisions() -> None:
    """A finding that the reviser rejected with a reason must not be raised for ever."""
    state = session_state(2, revision_notes="| 1 | rejected | see ``` the plan |")

    prompt = complete_prompt("Review {{CODE}}", state, WorkflowPhase.REVIEW)

    assert "the review" in prompt
    assert "| 1 | rejected | see ``` the plan |" in prompt
    assert prompt.index("a = 1") < prompt.index("the review") < prompt.index("| 1 |")


@pytest.mark.parametrize(
    ("phase", "iteration"), [(WorkflowPhase.REVIEW, 1), (WorkflowPhase.REVISE, 2)]
)
def test_other_prompts_have_no_previous_review(phase: WorkflowPhase, iteration: int) -> None:
    """There is none before the first review, and a revision has its own variable for it."""
    assert complete_prompt("Do it.", session_state(iteration), phase) == "Do it.\n"
