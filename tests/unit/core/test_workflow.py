from collections.abc import Awaitable
from dataclasses import FrozenInstanceError
from typing import Annotated, Any

import pytest

from signoff.core import errors
from signoff.core.args import UNDECLARED, Arg, Param
from signoff.core.context import StepContext
from signoff.core.outcome import End, Outcome
from signoff.core.run_state import RunState
from signoff.core.step import StepDef
from signoff.core.step_output import NextCommand, StepOutput
from signoff.core.workflow import Workflow, checked_result
from signoff.runtime.sub_agents import Dispatch

Result = tuple[Outcome, dict[str, Any]]


def plan(ctx: StepContext, mode: Annotated[str, Arg(choices=("quick", "full"))] = "full") -> Result:
    outcome = Outcome.SKIP if mode == "quick" else Outcome.OK
    return outcome, {"plan": f"{mode} {ctx.step_state.get('topic', '')}".strip()}


async def later(ctx: StepContext) -> Result:
    return Outcome.OK, {}


FLOW = Workflow(
    "flow",
    StepDef("plan", "Plan it", ["think"], plan, {Outcome.OK: "do", Outcome.SKIP: None}),
    StepDef("do", "Do it", handler=Dispatch("developer"), next={Outcome.DEFAULT: "wait"}),
    StepDef("wait", handler=later, next={Outcome.OK: "say"}),
    StepDef("say", "Say it", ["tell them"], next={Outcome.OK: End.COMPLETED}),
)


def test_a_workflow_starts_at_its_first_step_by_default() -> None:
    """The order of steps is what people read first."""
    one = StepDef("one", next={Outcome.OK: "two"})
    two = StepDef("two", next={Outcome.OK: "one", Outcome.FAIL: None})

    assert Workflow("x", one, two).entry_point == "one"
    assert Workflow("x", one, two, entry_point="two").entry_point == "two"


def test_a_workflow_is_frozen() -> None:
    """What a run was started with must not change under it."""
    with pytest.raises(FrozenInstanceError):
        FLOW.name = "other"  # type: ignore[misc]  # the point of the test
    with pytest.raises(TypeError):
        FLOW.steps["x"] = StepDef("x")  # type: ignore[index]  # the point of the test


def test_a_step_is_found_by_its_id_and_a_wrong_id_lists_the_right_ones() -> None:
    """A misspelt step is the most common mistake."""
    assert FLOW["do"].title == "Do it"
    with pytest.raises(
        errors.UnknownName, match="unknown step 'dO'; valid names: plan, do, wait, say"
    ):
        FLOW["dO"]


def test_validation_can_be_left_out() -> None:
    """A tool that shows what is wrong has to get at a broken definition."""
    broken = StepDef("a", next={Outcome.OK: "nowhere"})

    assert Workflow("x", broken, validate=False).steps["a"] is broken
    with pytest.raises(errors.InvalidWorkflow):
        Workflow("x", broken)


def test_what_only_workers_have_to_know_may_be_missing_at_the_start() -> None:
    """A run could not start otherwise: its worker finds out later."""

    def needs(ctx: StepContext, topic: str) -> Result:
        return Outcome.OK, {}

    worker = StepDef("a", "", ["Find a topic."], needs, {Outcome.OK: "b"})
    other = StepDef("b", handler=needs, next={Outcome.OK: None})
    last = StepDef("b", next={Outcome.OK: None})

    assert Workflow("x", worker, last).bind({}) == {}
    assert Workflow("x", worker, last).bind({"topic": "tea"}) == {"topic": "tea"}
    with pytest.raises(errors.InvalidParams, match=r"'tpoic': is unknown \(valid: topic"):
        Workflow("x", worker, last).bind({"tpoic": "tea"})
    # A step without a worker, and the workflow itself, need it from the start.
    for flow in (
        Workflow("x", worker, other),
        Workflow("x", worker, last, inputs=[Param("topic", str)]),
    ):
        with pytest.raises(errors.InvalidParams, match="'topic': is missing"):
            flow.bind({})


def test_a_run_keeps_parameters_that_only_earlier_versions_accepted() -> None:
    """Otherwise none of its parameters could be corrected."""

    def handler(ctx: StepContext, topic: str) -> Result:
        return Outcome.OK, {}

    flow = Workflow("x", StepDef("a", handler=handler, next={Outcome.OK: None}))
    state = RunState(params={"topic": "tea", "old": 1}, step="a")

    assert flow.correct({"topic": "lake"}, state) == {"topic": "lake"}


def test_one_step_can_be_evaluated_by_hand() -> None:
    """It returns the result and the next step, and starts no run."""
    assert FLOW.run("plan", state={"topic": "tea", "n": 1}) == StepOutput(
        step="plan",
        title="Plan it",
        actions=("think",),
        outcome=Outcome.OK,
        state={"topic": "tea", "n": 1, "plan": "full tea"},
        next="do",
        next_command=NextCommand("flow", "do", 2),
    )


def test_a_step_without_a_function_is_simply_done() -> None:
    """Its instructions are all there is to it."""
    output = FLOW.run("say")

    assert output.outcome is Outcome.OK
    assert output.actions == ("tell them",)


@pytest.mark.filterwarnings("error")
def test_an_async_step_cannot_be_evaluated_by_hand() -> None:
    """And leaves no coroutine behind that was never awaited."""
    with pytest.raises(errors.UsageError, match="'wait' is async"):
        FLOW.run("wait")


def test_an_awaitable_that_is_no_coroutine_is_refused_alike() -> None:
    """A future has nothing to close."""

    class Promise:
        def __await__(self) -> Any:
            return iter(())

    def promise(ctx: StepContext) -> Awaitable[Result]:
        return Promise()

    flow = Workflow("x", StepDef("a", handler=promise, next={Outcome.OK: None}))

    with pytest.raises(errors.UsageError, match="is async"):
        flow.run("a")


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (None, "NoneType None"),
        (Outcome.OK, "Outcome <Outcome.OK: 'ok'>"),
        ({}, "dict {}"),
        ("ok", "str 'ok'"),
        ((Outcome.OK,), "tuple"),
        ((Outcome.OK, {}, 1), "tuple"),
        ((Outcome.OK, None), "tuple"),
        ((Outcome.OK, [1]), "tuple"),
        (("ok", {}), "tuple ('ok', {})"),
        ((True, {}), "tuple"),
        (({}, Outcome.OK), "tuple"),
        ((Outcome.DEFAULT, {}), "Outcome.DEFAULT, which is only for `next`"),
        (["x" * 1000], "list"),
    ],
    ids=range(13),
)
def test_a_wrong_result_of_a_handler_is_an_error_that_names_the_right_one(
    returned: Any, what: str
) -> None:
    """A wrong return must stop the run, never pass for success."""
    with pytest.raises(errors.BadHandlerResult) as caught:
        checked_result("draft", returned)

    message = str(caught.value)
    assert message.startswith(
        "the handler of step 'draft' must return (Outcome, dict), not " + what
    )
    assert len(message) < 200


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.DEFAULT])
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_right_result_is_taken_as_it_is(outcome: Outcome, kind: type) -> None:
    """This includes a list, which a decorator may return."""
    assert checked_result("draft", kind([outcome, {"a": 1}])) == (outcome, {"a": 1})


def missing(path: str) -> str:
    return "" if path.startswith("here/") else f"{path!r} does not exist"


INPUTS = (
    Param("table", str, Arg("the table", choices=("users", "orders"))),
    Param("ddl", str, check=missing),
    Param("depth", int, default=3),
    Param("dry", bool, default=False),
)


def declared(inputs: Any, handler: Any = None) -> Workflow:
    return Workflow("x", StepDef("only", handler=handler, next={Outcome.OK: None}), inputs=inputs)


@pytest.mark.parametrize("inputs", [INPUTS, {param.name: param for param in INPUTS}])
def test_parameters_declared_as_data_are_converted_and_defaulted(inputs: Any) -> None:
    """A notation reads them from a file and has no handler whose signature could declare them."""
    values = declared(inputs).bind({"table": "users", "ddl": "here/a.sql", "dry": "yes"})

    assert values == {"table": "users", "ddl": "here/a.sql", "depth": 3, "dry": True}


def test_every_problem_of_such_parameters_is_reported_at_once() -> None:
    """One at a time, a user would need five attempts."""
    with pytest.raises(errors.InvalidParams) as refused:
        declared(INPUTS).bind({"table": "cats", "ddl": "gone.sql", "depth": "deep", "deep": 1})

    assert [str(problem) for problem in refused.value.problems] == [
        f"parameter 'deep': is unknown (valid: table, ddl, depth, dry; {UNDECLARED})",
        "parameter 'table': 'cats' is not one of the choices (choose one of: users, orders)",
        "parameter 'ddl': 'gone.sql' does not exist (give it as ddl=VALUE)",
        "parameter 'depth': 'deep' is not a whole number (give it as depth=VALUE)",
    ]


def test_names_and_parameters_can_be_mixed_and_defaults_are_checked() -> None:
    """A default that names a file which is missing here has to be replaced."""
    mixed = declared(["topic", Param("ddl", str, default="gone.sql", check=missing)])

    assert mixed.bind({"topic": 1, "ddl": "here/a.sql"}) == {"topic": 1, "ddl": "here/a.sql"}
    with pytest.raises(errors.InvalidParams, match=r"gone\.sql"):
        mixed.bind({})


def test_a_parameter_of_the_workflow_wins_over_one_of_a_handler() -> None:
    """The handler gets the value as the workflow declares it."""

    def handler(ctx: StepContext, depth: int = 1, name: str = "x") -> Result:
        return Outcome.OK, {"depth": depth}

    flow = declared([Param("depth", int, default=3)], handler)

    assert flow.bind({}) == {"depth": 3, "name": "x"}
    assert list(flow.declared_params) == ["depth", "name"]
    assert flow.run("only").state == {"depth": 3}


def test_parameters_declared_as_data_are_part_of_the_digest() -> None:
    """A run must not continue with other defaults; without such parameters, nothing changes."""
    plain = declared([])
    one, two = (declared([Param("depth", int, default=depth)]) for depth in (1, 2))
    reworded = declared([Param("depth", int, Arg("how deep"), default=1, check=missing)])

    assert len({plain.digest, one.digest, two.digest}) == 3
    assert one.digest == reworded.digest
    assert plain.digest == declared(["topic"]).digest


def test_a_correction_does_not_check_again_what_the_run_was_started_with() -> None:
    """The file may be gone by now, and the run has read it long ago."""
    flow = declared(INPUTS)
    started = {"table": "users", "ddl": "since/gone.sql", "depth": 3, "dry": False}
    state = RunState(params=started, step="only", visits={"only": 1})

    assert flow.correct({"table": "orders"}, state) == {"table": "orders"}
    with pytest.raises(errors.InvalidParams, match=r"'gone\.sql' does not exist"):
        flow.correct({"ddl": "gone.sql"}, state)
