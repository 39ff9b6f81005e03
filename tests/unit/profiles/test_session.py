"""The six system invariants of profiles, one test each."""

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from signoff.profiles import (
    ApprovalProvider,
    ApprovalProviderFactory,
    ApprovalResult,
    ProcessingResult,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
    WorkflowState,
)
from signoff.profiles.session import (
    ProfileError,
    create_prompt,
    process_response,
    standards_config,
)
from tests.unit.profiles.session_fixture import (
    APPROVED,
    ProbeProfile,
    SessionFixture,
    agent,
    review,
    writes,
)

AUTOMATIC: dict[str, Any] = {
    "providers": {"default": "claude"},
    "approval": {"default_approver": "skip"},
}


def test_1_profiles_get_and_return_values(tmp_path: Path) -> None:
    """Nothing that a profile gets leads to a file, a provider or the state of the session."""
    seen: list[Any] = []

    class Curious(ProbeProfile):
        def __getattribute__(self, name: str) -> Any:
            method = super().__getattribute__(name)
            if not name.startswith(("generate_", "process_", "get_standards")):
                return method

            def watched(value: Any) -> Any:
                seen.append(value)
                return method(value)

            return watched

    SessionFixture(tmp_path, Curious, **AUTOMATIC).start(
        claude=agent("a plan", "waves", review("PASS"))
    )

    assert {type(value) for value in seen} == {str, dict}
    assert json.loads(json.dumps(seen)) == seen


def test_2_the_engine_writes_all_files(tmp_path: Path) -> None:
    """Whatever a profile calls its files, they are at the engine's paths."""

    class Nested(ProbeProfile):
        def process_generation_response(self, content: str) -> ProcessingResult:
            return writes(("src\\main.txt", content))

    session = SessionFixture(tmp_path, Nested, **AUTOMATIC)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}

    session.start(claude=agent("a plan", "waves", review("PASS")))

    assert session.files == {
        "standards-bundle.md",
        "plan.md",
        "iteration-1/planning-prompt.md",
        "iteration-1/planning-response.md",
        "iteration-1/generation-prompt.md",
        "iteration-1/generation-response.md",
        "iteration-1/code/src/main.txt",
        "iteration-1/review-prompt.md",
        "iteration-1/review-response.md",
    }
    home = session.fixture.home.path
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(path.is_relative_to(home) for path in new)


def test_3_state_transitions_are_explicit(tmp_path: Path) -> None:
    """Every move of a session is a row of the table."""
    session = SessionFixture(tmp_path)
    session.start()
    positions = [session.step]

    for response in ["a plan", "waves", review("FAIL", 1), "foam", review("PASS")]:
        session.approve()
        positions.append(session.step)
        state = session.approve(response)
        positions.append(session.step if state.stage else state.phase.value)

    for before, after in pairwise(positions):
        phase, stage = before.split(".")
        reachable = {
            f"{row.phase.value}.{row.stage.value}" if row.stage else row.phase.value
            for command in TransitionTable.commands(WorkflowPhase(phase), WorkflowStage(stage))
            if (row := TransitionTable.get(WorkflowPhase(phase), WorkflowStage(stage), command))
        }
        assert after in reachable
    assert positions[-1] == "complete"


def test_4_gates_run_after_creation(tmp_path: Path) -> None:
    """The file exists when its approver is asked."""
    seen: list[str] = []
    session = SessionFixture(
        tmp_path, providers={"default": "claude"}, approval={"default_approver": "looking"}
    )

    class Looking(ApprovalProvider):
        def evaluate(self, *, files: Mapping[str, str | None], **_stage: Any) -> ApprovalResult:
            path, text = next(iter(files.items()))
            assert session.text(path) == text
            seen.append(path)
            return APPROVED

    ApprovalProviderFactory.register("looking", Looking)
    session.start(claude=agent("a plan", "waves", review("PASS")))

    assert seen == [
        f"iteration-1/{name}-{stage}.md"
        for name in ("planning", "generation", "review")
        for stage in ("prompt", "response")
    ]


def test_5_the_context_isolates_the_data_of_a_profile(tmp_path: Path) -> None:
    """A field of a profile never becomes a field of the state, even under the same name."""

    class Greedy(ProbeProfile):
        schema: ClassVar = {
            name: {"type": "string", "default": f"own {name}"}
            for name in ("phase", "status", "plan_hash", "subject")
        }

    session = SessionFixture(tmp_path, Greedy)

    state = session.start()

    assert state.context == {name: f"own {name}" for name in Greedy.schema}
    assert (state.phase, state.status, state.plan_hash) == ("plan", "in_progress", None)
    assert set(state.model_dump()) <= set(WorkflowState.model_fields)


def test_6_iterations_are_1_based(tmp_path: Path) -> None:
    """The first folder is `iteration-1`, and a failed review starts the next one."""
    session = SessionFixture(tmp_path, max_iterations=2, **AUTOMATIC)

    state = session.start(
        claude=agent("a plan", "waves", review("FAIL", 1), "foam", review("FAIL", 1))
    )

    assert state.current_iteration == 2
    assert sorted({path.split("/")[0] for path in session.files if "/" in path}) == [
        "iteration-1",
        "iteration-2",
    ]
    assert {path for path in session.files if path.startswith("iteration-2")} == {
        "iteration-2/revision-prompt.md",
        "iteration-2/revision-response.md",
        "iteration-2/code/poem.txt",
        "iteration-2/review-prompt.md",
        "iteration-2/review-response.md",
    }


def misbehaving(behavior: Callable[..., Any]) -> ProbeProfile:
    """Returns a profile whose methods all do the same."""
    methods = [name for name in dir(ProbeProfile) if name.startswith(("generate_", "process_"))]
    body = dict.fromkeys([*methods, "get_standards_config"], lambda _self, arg: behavior(arg))
    return type("Misbehaving", (ProbeProfile,), body)()  # type: ignore[no-any-return]


def test_a_profile_cannot_change_the_context() -> None:
    """The next stage gets the context that the session was started with."""
    context = {"a": 1}

    create_prompt(misbehaving(lambda own: own.clear() or "x"), WorkflowPhase.PLAN, context)
    standards_config(misbehaving(lambda own: own.clear() or {}), context)

    assert context == {"a": 1}


@pytest.mark.parametrize("value", [None, 7, b"bytes", "", " \n"])
def test_a_prompt_must_be_a_text(value: Any) -> None:
    """A provider would be paid for an empty prompt."""
    profile = misbehaving(lambda _context: value)

    with pytest.raises(ProfileError, match=r"Misbehaving\.generate_review_prompt must return"):
        create_prompt(profile, WorkflowPhase.REVIEW, {})


@pytest.mark.parametrize("value", [None, "text", {"status": "success"}])
def test_a_response_is_processed_to_a_result(value: Any) -> None:
    """What is no result says nothing about the files."""
    profile = misbehaving(lambda _content: value)

    with pytest.raises(ProfileError, match=r"Misbehaving\.process_planning_response must return"):
        process_response(profile, WorkflowPhase.PLAN, "text")


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    "error", [ValueError("no table"), RecursionError("too deep"), SystemExit(3)], ids=repr
)
def test_whatever_a_profile_raises_names_the_profile_and_the_method(error: BaseException) -> None:
    """The author has to find the place; the program must not exit."""
    profile = misbehaving(lambda _arg: _raise(error))

    with pytest.raises(ProfileError, match=r"Misbehaving\.generate_planning_prompt failed: ") as e:
        create_prompt(profile, WorkflowPhase.PLAN, {})

    assert type(error).__name__ in str(e.value)


def test_an_interrupt_is_not_an_error_of_the_profile() -> None:
    """Ctrl-C ends the program, whatever it is doing."""
    with pytest.raises(KeyboardInterrupt):
        create_prompt(misbehaving(lambda _arg: _raise(KeyboardInterrupt())), WorkflowPhase.PLAN, {})
