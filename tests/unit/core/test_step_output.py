from typing import Annotated, Any

import pytest

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.errors import InvalidParams, UnmappedOutcome
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import Dispatch

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
Result = tuple[Outcome, dict[str, Any]]
Confidence = Annotated[str, Arg(choices=("low", "high"))]
Round = Annotated[int, Arg(min=1, max=3)]
ROUNDS: list[dict[str, Any]] = [{}, {"iteration": "2"}, {"iteration": 3}]


def start(ctx: StepContext, mode: str = "full") -> Result:
    return OK, {}


def look(ctx: StepContext, confidence: Confidence = "low", depth: int = 1) -> Result:
    return (OK if confidence == "high" else ITERATE), {"depth": depth}


def write(ctx: StepContext, title: str) -> Result:
    return OK, {}


REVIEW = Dispatch("quality-reviewer")
FLOW = Workflow(
    "flow",
    StepDef("start", "Start", ["Begin."], start, {OK: "look"}),
    StepDef("look", "Look", ["Search."], look, {OK: "review", ITERATE: "look"}),
    StepDef("review", "Review", ["Judge."], REVIEW, {OK: "write", FAIL: "look"}),
    StepDef("write", "Write", ["Write."], write, {OK: None}),
    inputs=["topic"],
)


def test_what_a_sub_agent_decides_is_left_open() -> None:
    """A review that no one made must not count as passed."""
    output = FLOW.run("review", state={"draft": "x"})

    assert (output.outcome, output.next, output.next_command) == (None, None, None)
    assert output.dispatch is REVIEW
    assert output.state == {"draft": "x"}
    assert {outcome: each and each.step for outcome, each in output.next_commands.items()} == {
        OK: "write",
        FAIL: "look",
    }


@pytest.mark.parametrize(
    ("edges", "free_form", "steps"),
    [
        ({OK: None, FAIL: "b"}, False, {OK: None, FAIL: "b"}),
        ({OK: "b", Outcome.DEFAULT: None}, False, {OK: "b", FAIL: None}),
        ({OK: "b"}, True, {OK: "b"}),
    ],
)
def test_every_verdict_has_its_own_way_on(
    edges: dict[Outcome, Any], free_form: bool, steps: dict[Outcome, Any]
) -> None:
    """A verdict after which nothing follows is listed too; a text is no verdict."""
    flow = Workflow(
        "x",
        StepDef("a", handler=Dispatch("developer", free_form=free_form), next=edges),
        StepDef("b", next={OK: None}),
    )

    commands = flow.run("a").next_commands

    assert {outcome: each and each.step for outcome, each in commands.items()} == steps


def test_parameters_are_carried_on_as_long_as_a_later_step_takes_them() -> None:
    """The next step is called with what it needs, converted, and with nothing else."""
    output = FLOW.run("start", mode="quick", depth="3", topic="cats")

    assert output.next_command == NextCommand("flow", "look", 2, {"depth": 3, "topic": "cats"})


def test_a_step_that_is_repeated_asks_for_its_own_parameters_again() -> None:
    """Its work is what changes them."""
    command = FLOW.run("look", confidence="low", topic="cats").next_command

    assert command is not None
    assert (command.step, command.number, command.params) == ("look", 2, {"topic": "cats"})
    assert list(command.open) == ["confidence", "depth"]


def test_a_step_that_takes_its_round_is_repeated_with_the_next_one() -> None:
    """An agent that follows the command need not count; past the bound there is no round."""

    def repeat(ctx: StepContext, sure: bool, iteration: Round = 1) -> Result:
        return ITERATE, {}

    flow = Workflow("flow", StepDef("a", handler=repeat, next={OK: None, ITERATE: "a"}))

    commands = [flow.run("a", sure=False, **each).next_command for each in ROUNDS]

    assert [dict(each.params) for each in commands if each] == [
        {"iteration": 2}, {"iteration": 3}, {}
    ]  # fmt: skip
    assert [[*each.open] for each in commands if each] == [
        ["sure"], ["sure"], ["sure", "iteration"]
    ]  # fmt: skip


def test_a_parameter_that_the_next_step_requires_is_open_until_it_is_given() -> None:
    """Earlier steps run without it."""
    without = FLOW.run("review").next_commands[OK]
    given = FLOW.run("review", title="Cats").next_commands[OK]

    assert without is not None
    assert given is not None
    assert (list(without.open), dict(without.params)) == (["title"], {})
    assert (list(given.open), dict(given.params)) == ([], {"title": "Cats"})


def test_a_step_still_requires_its_own_parameters() -> None:
    """Its handler could not be called."""
    with pytest.raises(InvalidParams, match="'title': is missing"):
        FLOW.run("write")


def test_a_value_outside_its_domain_is_refused_at_any_step() -> None:
    """It would only fail later, after more work."""
    with pytest.raises(InvalidParams, match="'none' is not one of the choices"):
        FLOW.run("start", confidence="none")


def test_an_outcome_without_an_edge_is_no_end() -> None:
    """A run fails there, so an agent must not be told that it is done."""
    flow = Workflow("x", StepDef("a", handler=look, next={OK: None}))

    with pytest.raises(UnmappedOutcome, match="'iterate', which has no edge"):
        flow.run("a")
