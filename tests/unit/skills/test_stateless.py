from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest

from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.errors import HandlerFailed, InvalidParams, UsageError
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import Dispatch
from signoff.skills.stateless import evaluate_step

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
Result = tuple[Outcome, dict[str, Any]]


Sure = Annotated[str, Arg(choices=("no", "yes"))]


def look(ctx: StepContext, sure: Sure = "no") -> Result:
    return (OK if sure == "yes" else ITERATE), {}


def count(
    ctx: StepContext, sure: Sure = "no", iteration: Annotated[int, Arg(min=1, max=3)] = 1
) -> Result:
    return (OK if sure == "yes" else ITERATE), {"seen": iteration}


LOOK = Workflow(
    "look",
    StepDef("look", "Look", ["Search."], look, {OK: "count", ITERATE: Edge("look", bound=2)}),
    StepDef("count", "Count", ["Count."], count, {OK: "end", ITERATE: "count"}),
    StepDef("end", "End", ["Stop."], next={OK: None}),
)


def following(workflow: Workflow, number: int, **params: Any) -> tuple[int, Mapping[str, Any]]:
    command = evaluate_step(workflow, number, params).following
    assert command is not None
    return command.number, command.params


@pytest.mark.parametrize("number", [1, 2])
def test_repeating_a_step_increments_the_iteration_up_to_its_bound(number: int) -> None:
    """A loop that no one counts would never end."""
    assert following(LOOK, number) == (number, {"iteration": 2})
    assert following(LOOK, number, iteration="2") == (number, {"iteration": 3})

    last = evaluate_step(LOOK, number, {"iteration": "3"})

    assert (last.following, last.limit, last.is_last) == (None, 3, False)


def test_the_iteration_ends_with_its_loop() -> None:
    """The next loop starts at 1, whatever the one before needed."""
    assert following(LOOK, 1, sure="yes", iteration=3) == (2, {"sure": "yes"})
    assert following(LOOK, 2, sure="yes", iteration=3) == (3, {})


def test_the_handler_gets_the_iteration_as_parameter_and_in_the_state() -> None:
    """Both forms exist in skills that were written for other programs."""
    seen = []

    def step(ctx: StepContext) -> Result:
        seen.append(ctx.step_state["iteration"])
        return ITERATE, {}

    workflow = Workflow("x", StepDef("a", handler=step, next={ITERATE: "a", OK: None}))

    evaluate_step(workflow, 1, {})
    evaluate_step(workflow, 1, {"iteration": "7"})

    assert seen == [1, 7]
    assert evaluate_step(LOOK, 2, {"iteration": "2"}).output.state["seen"] == 2


def test_a_loop_of_several_steps_passes_the_iteration_on() -> None:
    """It is counted where the loop is closed."""
    workflow = Workflow(
        "x",
        StepDef("draft", next={OK: "check"}),
        StepDef("check", handler=count, next={OK: "end", ITERATE: "draft"}),
        StepDef("end", next={OK: None}),
    )

    assert following(workflow, 2) == (1, {"iteration": 2})
    assert following(workflow, 1, iteration=2) == (2, {"iteration": 2})
    assert following(workflow, 2, iteration=2, sure="yes") == (3, {})


@pytest.mark.parametrize("iteration", ["0", "4", "-1", "many", "1.5", ""])
def test_an_iteration_outside_its_bounds_is_refused(iteration: str) -> None:
    """An agent that miscounts has to notice."""
    with pytest.raises(UsageError, match="iteration"):
        evaluate_step(LOOK, 1, {"iteration": iteration})


@pytest.mark.parametrize("number", [0, -1, 4, 10**20])
def test_a_step_that_does_not_exist_is_refused(number: int) -> None:
    """The error says which steps there are."""
    with pytest.raises(UsageError, match=r"'look' has no step .*; its steps are 1 to 3"):
        evaluate_step(LOOK, number, {})


def test_a_verdict_and_a_decision_are_left_to_others() -> None:
    """A gate that a program passes by itself is no gate."""
    gate = Gate("Ship it?", [GateOption("ship", "end"), GateOption("stop", None)])
    workflow = Workflow(
        "x",
        StepDef("qr", handler=Dispatch("reviewer"), next={OK: "ask", FAIL: "qr"}),
        StepDef("ask", gate=gate),
        StepDef("end", next={OK: None}),
    )

    review, ask = evaluate_step(workflow, 1, {}), evaluate_step(workflow, 2, {})

    assert {label: each and each.number for label, each in review.choices.items()} == {
        "ok": 2,
        "fail": 1,
    }
    assert {label: each and each.number for label, each in ask.choices.items()} == {
        "ship": 3,
        "stop": None,
    }
    assert not review.is_last
    assert not ask.is_last
    assert evaluate_step(workflow, 3, {}).is_last


def test_a_handler_that_raises_is_reported_with_its_line() -> None:
    """The author of the skill has to find it."""

    def broken(ctx: StepContext) -> Result:
        raise KeyError("gone\nfor good")

    workflow = Workflow("x", StepDef("a", handler=broken, next={OK: None}))

    with pytest.raises(HandlerFailed, match=rf"step 'a' failed: {__file__}:\d+: KeyError: ") as it:
        evaluate_step(workflow, 1, {})
    assert "\n" not in str(it.value)


def state_of(created: list[Path]) -> Workflow:
    """A skill that keeps state; it notes the directories that it creates."""

    def prepare(params: Mapping[str, Any]) -> Mapping[str, Any]:
        if params.get("state_dir") is not None:
            return {}
        created.append(Path("made"))
        return {"state_dir": "made"}

    def missing(path: str) -> str:
        return f"{path!r} does not exist" if path != "made" else ""

    def pick(ctx: StepContext, mode: Annotated[str, Arg(choices=("a", "b"))] = "a") -> Result:
        return OK, {}

    return Workflow(
        "kept",
        StepDef("one", handler=pick, next={OK: "two"}),
        StepDef("two", next={OK: None}),
        inputs=[Param("state_dir", str, default=None, check=missing)],
        prepare=prepare,
    )


def test_the_first_step_creates_the_state_directory_and_passes_it_on() -> None:
    """Later steps and sub-agents find the files there."""
    created: list[Path] = []

    assert following(state_of(created), 1) == (2, {"state_dir": "made"})
    assert following(state_of(created), 1, state_dir="made") == (2, {"state_dir": "made"})
    assert len(created) == 1


def test_nothing_is_created_if_the_parameters_do_not_fit() -> None:
    """A mistake must not leave directories behind."""
    created: list[Path] = []

    for params in ({"mode": "c"}, {"unknown": "x"}, {"state_dir": "gone"}):
        with pytest.raises(InvalidParams):
            evaluate_step(state_of(created), 1, params)

    assert created == []


def test_later_steps_need_the_state_directory() -> None:
    """A second directory would be empty, and the work of the first lost."""
    with pytest.raises(UsageError) as caught:
        evaluate_step(state_of([]), 2, {})

    assert [(each.option, each.value) for each in caught.value.remedies] == [("state_dir", "DIR")]  # type: ignore[attr-defined]  # checked by equality
    assert evaluate_step(state_of([]), 2, {"state_dir": "made"}).is_last
