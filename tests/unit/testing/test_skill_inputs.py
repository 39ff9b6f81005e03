"""Which inputs of a skill are tested: every combination once, and no step that a mode skips."""

import time
from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest

from signoff.core.args import Arg, BoundedInt, ChoiceSet, Param
from signoff.core.context import StepContext
from signoff.core.errors import UnknownName, UsageError
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import AgentRole, Dispatch
from signoff.skills import discover_workflows
from signoff.testing import case_id, extract_schema, generate_inputs
from tests.tables import table

Result = tuple[Outcome, dict[str, Any]]
Mode = Annotated[str, Arg("How thorough to be", choices=("full", "quick"))]
Sure = Annotated[str, Arg("How sure you are", choices=("low", "high"))]
Round = Annotated[int, Arg("The round", min=1, max=3)]

OK, ITERATE, SKIP, FAIL = Outcome.OK, Outcome.ITERATE, Outcome.SKIP, Outcome.FAIL


def plan(ctx: StepContext, mode: Mode = "full") -> Result:
    return (SKIP if mode == "quick" else OK), {}


def research(ctx: StepContext, mode: Mode = "full", topic: str = "") -> Result:
    return OK, {}


def look(ctx: StepContext, sure: Sure = "low", iteration: Round = 1) -> Result:
    return (OK if sure == "high" or iteration == 3 else ITERATE), {}


def write(ctx: StepContext, mode: Mode = "full") -> Result:
    return OK, {}


SKILL = Workflow(
    "critic",
    StepDef("plan", "Plan", ["Plan it."], plan, {OK: "research", SKIP: "look"}),
    StepDef("research", "Research", ["Look it up."], research, {OK: "look"}),
    StepDef("look", "Look", ["Check it."], look, {OK: "write", ITERATE: "look"}),
    StepDef("write", "Write", ["Write it."], write, {OK: None}),
)


def inputs(workflow: Workflow, step: str, **options: Any) -> list[dict[str, Any]]:
    """The parameters of one step, without its number."""
    number = workflow._step_order.index(step) + 1
    return [
        {name: value for name, value in each.items() if name not in ("step", "total_steps")}
        for each in generate_inputs(workflow, **options)
        if each["step"] == number
    ]


def one_step(handler: Any, **options: Any) -> Workflow:
    return Workflow("one", StepDef("only", "Only", ["Do it."], handler, {OK: None}), **options)


def test_the_schema_has_the_domains_of_each_step() -> None:
    """Authors see what will be combined."""
    modes = ChoiceSet(("full", "quick"))

    assert extract_schema(SKILL) == {
        "plan": {"mode": modes},
        "research": {"mode": modes},
        "look": {"sure": ChoiceSet(("low", "high")), "iteration": BoundedInt(1, 3)},
        "write": {"mode": modes},
    }
    assert extract_schema(SKILL, {"topic": ["x"]})["research"]["topic"] == ChoiceSet(("x",))


def test_every_combination_appears_once_with_the_number_of_its_step() -> None:
    """A combination that is left out is one that no test runs."""
    every = list(generate_inputs(SKILL))

    assert every[0] == {"step": 1, "total_steps": 4, "mode": "full"}
    assert {each["total_steps"] for each in every} == {4}
    assert max(Counter(map(repr, every)).values()) == 1
    assert inputs(SKILL, "look") == [
        {"sure": sure, "iteration": iteration}
        for sure in ("low", "high")
        for iteration in (1, 2, 3)
    ]


def test_a_step_that_a_mode_skips_is_left_out_with_that_mode() -> None:
    """It is found by walking the graph; a list of such steps would be outdated soon."""
    assert inputs(SKILL, "plan") == inputs(SKILL, "write") == [{"mode": "full"}, {"mode": "quick"}]
    assert inputs(SKILL, "research") == [{"mode": "full"}]


def test_an_input_of_the_workflow_is_a_mode_of_every_step() -> None:
    """Handlers may read it from their context."""

    def branch(ctx: StepContext) -> Result:
        return (SKIP if ctx.workflow_params["mode"] == "quick" else OK), {}

    steps = [
        StepDef("plan", "Plan", ["Plan it."], branch, {OK: "research", SKIP: "write"}),
        StepDef("research", "Research", ["Look it up."], next={OK: "more"}),
        StepDef("more", "More", ["Look further."], next={OK: "write"}),
        StepDef("write", "Write", ["Write it."], next={OK: None}),
    ]
    mode = Param("mode", str, Arg(choices=("full", "quick")), default="full")

    for inputs_of_workflow, samples in (([mode], {}), (["mode"], {"mode": ["full", "quick"]})):
        workflow = Workflow("w", *steps, inputs=inputs_of_workflow)
        found = [(each["step"], each["mode"]) for each in generate_inputs(workflow, samples)]
        assert found == [(1, "full"), (1, "quick"), (2, "full"), (3, "full"),
                         (4, "full"), (4, "quick")]  # fmt: skip


def test_a_value_that_only_repeats_a_step_skips_nothing() -> None:
    """The agent reports another value in the next round, so later steps are reached."""

    def first(ctx: StepContext, sure: Sure = "low") -> Result:
        return (OK if sure == "high" else ITERATE), {}

    def second(ctx: StepContext, sure: Sure = "low") -> Result:
        return OK, {}

    workflow = Workflow(
        "w",
        StepDef("first", "First", ["Do it."], first, {OK: "second", ITERATE: Edge("first", 2)}),
        StepDef("second", "Second", ["Do it."], second, {OK: None}),
    )

    assert inputs(workflow, "second") == [{"sure": "low"}, {"sure": "high"}]
    assert {each["iteration"] for each in inputs(workflow, "first")} == {1, 2, 3}


def test_what_a_sub_agent_or_a_human_decides_leads_everywhere() -> None:
    """Their verdict is not known, so no step behind it is skipped."""

    def failing(ctx: StepContext, mode: Mode = "full") -> Result:
        raise RuntimeError(mode)

    workflow = Workflow(
        "w",
        StepDef("a", "A", ["a"], Dispatch(AgentRole.EXPLORE), {OK: "b", FAIL: "c"}),
        StepDef("b", "B", ["b"], plan, {SKIP: "c"},
                gate=Gate("Which?", [GateOption("c", "c"), GateOption("d", "d")])),
        StepDef("c", "C", ["c"], failing, {OK: "d", FAIL: "e"}),
        StepDef("d", "D", ["d"], write, {OK: None}),
        StepDef("e", "E", ["e"], write, {OK: None}),
    )  # fmt: skip

    for step in "bcde":
        assert inputs(workflow, step) == [{"mode": "full"}, {"mode": "quick"}]


def test_iteration_appears_only_where_a_step_repeats() -> None:
    """Other steps take it from a printed command, but it changes nothing for them."""

    def once(ctx: StepContext, iteration: Round = 1) -> Result:
        return OK, {}

    def counted(ctx: StepContext, iteration: Round) -> Result:
        return OK, {}

    assert inputs(one_step(once), "only") == [{}]
    assert inputs(one_step(counted), "only") == [{"iteration": n} for n in (1, 2, 3)]


def test_open_parameters_take_samples() -> None:
    """A text has no domain, but its author knows which ones are interesting."""
    topics = ["", "two words", "$(touch x)"]

    assert inputs(SKILL, "research") == [{"mode": "full"}]
    assert [
        each["topic"] for each in inputs(SKILL, "research", samples={"topic": topics})
    ] == topics
    assert inputs(SKILL, "write", samples={"topic": topics}) == inputs(SKILL, "write")


@pytest.mark.parametrize("kind", [str, float, list[str]])
def test_a_required_open_parameter_without_samples_is_refused(kind: Any) -> None:
    """Every run would fail; all such parameters are reported at once."""

    def need(ctx: StepContext, topic: kind, other: kind) -> Result:
        return OK, {}

    with pytest.raises(UsageError, match=r"samples for 'topic'.*samples for 'other'"):
        generate_inputs(one_step(need))


def test_samples_of_an_unknown_parameter_are_refused() -> None:
    """A misspelled name would test nothing."""
    with pytest.raises(UnknownName, match="topci"):
        generate_inputs(SKILL, {"topci": ["x"]})
    assert inputs(one_step(None, inputs=None), "only", samples={"x": [1]}) == [{"x": 1}]


Percent = Annotated[int, Arg(min=1, max=100)]
Hundred = Literal["a", "b"]


def grid(ctx: StepContext, x: Percent = 1, y: Percent = 1) -> Result:
    return OK, {}


def test_a_larger_product_is_reported_before_anything_runs() -> None:
    """The author decides whether to wait, instead of wondering why the tests do not end."""
    calls: list[int] = []

    def cube(ctx: StepContext, x: Percent = 1, y: Percent = 1, z: Hundred = "a") -> Result:
        calls.append(x)
        return OK, {}

    def endless(ctx: StepContext, x: Annotated[int, Arg(min=0, max=10**15)] = 0) -> Result:
        return OK, {}

    with pytest.raises(UsageError, match=r"'only' has 20,000 combinations .*100 of 'x'"):
        generate_inputs(one_step(cube))
    assert calls == []
    assert len(inputs(one_step(cube), "only", limit=20_000)) == 20_000
    with pytest.raises(UsageError, match="1,000,000,000,000,001"):
        generate_inputs(one_step(endless))
    assert inputs(one_step(endless), "only", samples={"x": [0, 5]}) == [{"x": 0}, {"x": 5}]


def test_the_inputs_of_the_library_are_generated_within_a_second() -> None:
    """Pytest generates them before it runs the first test."""
    skills = discover_workflows()
    before = time.process_time()

    every = [(skill, each) for skill in skills.values() for each in generate_inputs(skill)]

    assert time.process_time() - before < 1
    assert len(every) > 250
    assert len({case_id(skill, each) for skill, each in every}) == len(every)
    for skill in skills.values():
        numbers = {each["step"] for owner, each in every if owner is skill}
        assert numbers == set(range(1, skill.total_steps + 1))


def skill(name: str) -> Workflow:
    return Workflow(name, StepDef("only", "Only", ["Do it."], next={Outcome.OK: None}))


class Level(StrEnum):
    LOW = "low"


@table(
    ("params", "name"),
    [
        ({}, "critic-2"),
        ({"mode": "quick", "iteration": 3}, "critic-2-iteration=3-mode=quick"),
        ({"level": Level.LOW}, "critic-2-level=low"),
        ({"topic": "two words"}, 'critic-2-topic="two words"'),
        ({"topic": "a\nb"}, 'critic-2-topic="a\\nb"'),
    ],
)
def test_an_input_is_named_after_its_skill_step_and_values(
    params: dict[str, Any], name: str
) -> None:
    """Developers see in a list of failures what failed."""
    assert case_id(skill("critic"), {"step": 2, "total_steps": 4, **params}) == name
