import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import pytest

from signoff.core.args import Arg
from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.outcome import Outcome
from signoff.core.spend import Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from tests.tables import table

if TYPE_CHECKING:
    from decimal import Decimal as ForCheckersOnly

Result = tuple[Outcome, dict[str, Any]]


class Pair(NamedTuple):
    outcome: Outcome
    update: dict[str, Any]


def work(ctx: Any) -> Result:
    return Outcome.OK, {}


def problems(*steps: Any, name: Any = "flow", **settings: Any) -> list[Problem]:
    """Returns the problems of building this workflow."""
    try:
        Workflow(name, *steps, **settings)
    except InvalidWorkflow as error:
        return list(error.problems)
    return []


def messages(*steps: Any, **settings: Any) -> list[str]:
    return [str(problem) for problem in problems(*steps, **settings)]


def last(**fields: Any) -> StepDef:
    """Returns a valid step, changed by `fields`."""
    return StepDef("a", **{"next": {Outcome.OK: None}, **fields})


def test_all_mistakes_of_a_definition_are_reported_each_with_place_and_remedy() -> None:
    """Finding ten mistakes must not take ten attempts."""

    def no_context() -> Result:
        return Outcome.OK, {}

    fields = problems(
        StepDef("review", retries=-1, next={Outcome.OK: "gate"}, on_error="draft"),
        StepDef("gate", gate=Gate("Ship?", []), timeout="30s"),  # type: ignore[arg-type]  # a mistake
        StepDef("judge", next={Outcome.ITERATE: Edge("draft", bound=0)}),
        StepDef("end", preconditions=[len], next={Outcome.OK: "judge"}),  # type: ignore[list-item]  # a mistake
        max_iterations=0,
    )
    graph = problems(
        StepDef("draft", handler=no_context, next={Outcome.OK: "reviw"}),
        StepDef("gate", gate=Gate("Ship?", [])),
        StepDef("judge", next={"ok": None}),  # type: ignore[dict-item]  # a mistake
        StepDef("judge", next={Outcome.ITERATE: "draft"}),
        entry_point="draft",
    )

    assert [f"{each.where}: {each.what}" for each in fields] == [
        "workflow: max_iterations is 0",
        "step 'review': retries is -1",
        "step 'gate': timeout is '30s'",
        "step 'judge': the bound of next['iterate'] is 0",
        "step 'end': an entry of preconditions is <built-in function len>",
    ]
    assert {f"{each.where}: {each.what}" for each in graph if "reached" not in each.what} == {
        "step 'draft': handler takes no context",
        "step 'draft': ok leads to the unknown step 'reviw'",
        "step 'gate': gate has no options",
        "step 'judge': next has the key 'ok'",
        "step 'judge': is defined 2 times",
    }
    assert all(each.where and each.what and each.remedy for each in [*fields, *graph])


def built(*steps: Any, **settings: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns what a workflow is built from."""
    return steps, settings


MISTAKES: dict[str, tuple[tuple[tuple[Any, ...], dict[str, Any]], str]] = {
    "no name": (built(last(), name=" "), "workflow: name is ' ' (a short name)"),
    "a step for a name": (built(last(), name=StepDef("x")), "workflow: name is StepDef(id='x'"),
    "no steps": (built(), "workflow: has no steps (give it at least one StepDef)"),
    "something else for a step": (built("draft", last()), "step 1: is 'draft' (a StepDef(...))"),
    "rounds": (
        built(last(), max_iterations=True),
        "workflow: max_iterations is True (a whole number from 1)",
    ),
    "limits": (built(last(), limits={"usd": 5}), "workflow: limits is {'usd': 5} (Limits(...))"),
    "id": (built(StepDef("", next={Outcome.OK: None})), "step 1: id is '' (a short name)"),
    "id that is no text": (
        built(StepDef(["a"], next={Outcome.OK: None})),  # type: ignore[arg-type]  # a mistake
        "step 1: id is ['a'] (a short name)",
    ),
    "id with a line break": (
        built(StepDef("a\nb", next={Outcome.OK: None})),
        "step 1: id is 'a\\nb' (a short name)",
    ),
    "title": (built(last(title=5)), "step 'a': title is 5 (a text)"),
    "phase": (built(last(phase=None)), "step 'a': phase is None (a text)"),
    "actions": (
        built(last(actions="write it")),
        "step 'a': actions is 'write it' (a list of instructions)",
    ),
    "next": (
        built(last(next=["b"])),
        "step 'a': next is ['b'] (a dict such as {Outcome.OK: 'publish'})",
    ),
    "target": (
        built(last(next={Outcome.OK: StepDef("b")})),
        "step 'a': next['ok'] is StepDef(id='b'",
    ),
    "target of an edge": (
        built(last(next={Outcome.OK: Edge(["b"])})),  # type: ignore[arg-type]  # a mistake
        "step 'a': next['ok'] is ['b'] (a step's id, an End, an Edge, or None)",
    ),
    "unknown target": (
        built(last(next={Outcome.OK: "b", Outcome.FAIL: None})),
        "step 'a': ok leads to the unknown step 'b' (steps: a)",
    ),
    "unknown target of on_error": (
        built(last(on_error="b")),
        "step 'a': error leads to the unknown step 'b' (steps: a)",
    ),
    "unknown target of a gate": (
        built(StepDef("a", gate=Gate("?", [GateOption("x", "b"), GateOption("y", None)]))),
        "step 'a': gate:x leads to the unknown step 'b' (steps: a)",
    ),
    "an end's name for an End": (
        built(last(next={Outcome.OK: "rejected", Outcome.FAIL: None})),
        "step 'a': ok leads to the unknown step 'rejected'",
    ),
    "outcome": (
        built(last(next={"done": None})),
        "step 'a': next has the key 'done' (use one of: Outcome.OK, Outcome.FAIL,",
    ),
    "bound": (
        built(last(next={Outcome.OK: Edge(None, bound=True)})),
        "step 'a': the bound of next['ok'] is True (a whole number from 1)",
    ),
    "on_limit": (
        built(last(next={Outcome.OK: Edge(None, on_limit="stop")})),  # type: ignore[arg-type]  # a mistake
        "step 'a': on_limit of next['ok'] is 'stop' ('end' or 'ask')",
    ),
    "on_error": (built(last(on_error=work)), "step 'a': on_error is <function work"),
    "retries": (built(last(retries=True)), "step 'a': retries is True"),
    "timeout": (built(last(timeout=float("nan"))), "step 'a': timeout is nan"),
    "edits": (built(last(edits="yes")), "step 'a': edits is 'yes'"),
    "negative limits": (
        built(last(), limits=Limits(usd=-1)),
        "workflow: limits.usd is -1 (a number of at least 0)",
    ),
    "negative step limits": (
        built(last(limits=Limits(calls=-1))),
        "step 'a': limits.calls is -1 (a number of at least 0)",
    ),
    "step limits": (built(last(limits=5)), "step 'a': limits is 5 (Limits(...))"),
    "conditions": (
        built(last(preconditions=Condition("x", lambda ctx: True, ""))),
        "step 'a': preconditions is Condition(name='x'",
    ),
    "condition": (
        built(last(postconditions=["x"])),
        "step 'a': an entry of postconditions is 'x' (a list of Condition(name, check, error))",
    ),
    "check": (
        built(last(postconditions=[Condition("x", True, "")])),  # type: ignore[arg-type]  # a mistake
        "step 'a': the check of 'x' is True (a function)",
    ),
    "gate": (built(last(gate="Ship?")), "step 'a': gate is 'Ship?' (a Gate(prompt, options))"),
    "gate's prompt": (
        built(StepDef("a", gate=Gate(" "))),
        "step 'a': the gate's prompt is ' ' (what the human is asked)",
    ),
    "gate's options": (
        built(StepDef("a", gate=Gate("?", ["yes"]))),  # type: ignore[list-item]  # a mistake
        "step 'a': an entry of the gate's options is 'yes' (a list of options)",
    ),
    "gate's context": (
        built(StepDef("a", gate=Gate("?", context="draft"))),
        "step 'a': the gate's context is 'draft' (a list of names)",
    ),
    "gate's label": (
        built(StepDef("a", gate=Gate("?", [GateOption("", None)]))),
        "step 'a': the label of a gate's option is '' (a short name)",
    ),
    "gate's labels": (
        built(StepDef("a", gate=Gate("?", [GateOption("x", None)] * 2))),
        "step 'a': gate has two options of one label (give each its own label)",
    ),
    "gate and ok": (
        built(last(gate=Gate("?"))),
        "step 'a': has a gate, so next[Outcome.OK] is never taken",
    ),
    "dead end": (
        built(last(next={Outcome.OK: "b", Outcome.FAIL: None}), StepDef("b")),
        "step 'b': leads nowhere (give it next={Outcome.OK: None} to end there)",
    ),
    "no end": (
        built(last(next={Outcome.OK: "a"})),
        "workflow: never ends (let at least one outcome lead to None)",
    ),
    "not reached": (
        built(last(), StepDef("b", next={Outcome.OK: "a"})),
        "step 'b': cannot be reached from 'a' (lead an outcome to it)",
    ),
    "entry": (built(last(), entry_point="b"), "entry_point: 'b' is not a step (one of: a)"),
    "unhashable entry": (
        built(last(), entry_point=["a"]),
        "entry_point: ['a'] is not a step (one of: a)",
    ),
    "twice": (built(last(), last()), "step 'a': is defined 2 times (give each its own id)"),
}


@table(("parts", "problem"), MISTAKES)
def test_one_mistake_is_one_problem(
    parts: tuple[tuple[Any, ...], dict[str, Any]], problem: str
) -> None:
    """A second report of the same mistake would make its author look for another one."""
    steps, settings = parts
    (found,) = messages(*steps, **settings)
    assert found.endswith(")"), "it does not say what would be right"

    assert found.startswith(problem)


class TestHandlers:
    """What can be found out about a handler without calling it."""

    def one(self, handler: Any) -> str:
        found = messages(last(handler=handler))
        return found[0].removeprefix("step 'a': ") if found else ""

    def test_something_that_cannot_be_called_is_refused(self) -> None:
        """A function's name in quotes is an easy slip."""
        assert self.one("work").startswith("handler is 'work' (a function (ctx)")

    @pytest.mark.parametrize(
        "handler", [lambda: None, lambda *, ctx: None, lambda **ctx: None], ids=["", "*", "**"]
    )
    def test_a_handler_has_to_take_the_context(self, handler: Callable[..., Any]) -> None:
        """It is called with one argument by position."""
        assert self.one(handler) == "handler takes no context (its first parameter must be ctx)"

    def test_a_handler_may_take_the_context_among_the_rest(self) -> None:
        """Decorators that pass everything through look like this."""
        assert not self.one(lambda *args: None)
        assert not self.one(lambda ctx, /, **more: None)

    def test_a_handler_whose_signature_is_unknown_is_refused(self) -> None:
        """Its parameters could not be checked."""

        class Odd:
            __signature__ = "not a signature"

            def __call__(self, ctx: Any) -> Result:
                return Outcome.OK, {}

        assert self.one(Odd()).startswith("handler has no readable signature")

    def test_parameters_must_be_takable_by_name(self) -> None:
        """They are passed by name, so the run would stop at this step."""

        def handler(ctx: Any, times: int, /) -> Result:
            return Outcome.OK, {}

        assert self.one(handler).startswith("parameter 'times' cannot be given by name")

    def test_a_generator_is_no_handler(self) -> None:
        """`yield` instead of `return` gives something that never runs."""

        def plain(ctx: Any) -> Iterator[Result]:
            yield Outcome.OK, {}

        async def asynchronous(ctx: Any) -> AsyncIterator[Result]:
            yield Outcome.OK, {}

        for handler in (plain, asynchronous, functools.partial(plain)):
            assert self.one(handler).startswith("handler yields")

    def test_an_annotation_that_cannot_be_read_is_refused(self) -> None:
        """Its range and choices would silently not be checked."""

        def handler(ctx: Any, price: "ForCheckersOnly") -> Result:
            return Outcome.OK, {}

        assert self.one(handler).startswith("parameter 'price' has the annotation")
        assert "TYPE_CHECKING" in self.one(handler)

    @pytest.mark.parametrize(
        ("hint", "default", "problem"),
        [
            (Annotated[int, Arg(min=3, max=1)], 2, "parameter 'n' has min 3 above max 1"),
            (Annotated[str, Arg(min=3)], "a", "parameter 'n' has a range"),
            (Annotated[int, Arg(max=3)], 5, "the default of parameter 'n': 5 is above 3"),
            (Annotated[str, Arg(choices=("a", "b"))], "c", "the default of parameter 'n': 'c'"),
            (int, "many", "the default of parameter 'n': 'many' is not a whole number"),
        ],
    )
    def test_a_declaration_that_contradicts_itself_is_refused(
        self, hint: Any, default: Any, problem: str
    ) -> None:
        """No run could ever be started with it, or one would start with what it forbids."""

        def handler(ctx: Any, n: Any = default) -> Any: ...

        handler.__annotations__["n"] = hint

        assert self.one(handler).startswith(problem)

    def test_a_default_of_none_means_not_given(self) -> None:
        """`limit: int = None` is how many people write an optional number."""

        def handler(ctx: Any, n: Any = None) -> Any: ...

        handler.__annotations__["n"] = Annotated[int, Arg(min=1)]

        assert not self.one(handler)


class TestSharedParameters:
    """A run has one value for a name, whichever steps take it."""

    def both(self, one: Any, other: Any, defaults: tuple[Any, Any] = (1, 1)) -> list[str]:
        empty = inspect.Parameter.empty

        def make(hint: Any, default: Any) -> Callable[..., Any]:
            def handler(ctx: Any, n: Any) -> Any: ...

            handler.__annotations__["n"] = hint
            handler.__defaults__ = None if default is empty else (default,)
            return handler

        return messages(
            StepDef("a", handler=make(one, defaults[0]), next={Outcome.OK: "b"}),
            StepDef("b", handler=make(other, defaults[1]), next={Outcome.OK: None}),
        )

    def test_steps_may_share_a_parameter_they_declare_alike(self) -> None:
        """Descriptions may differ, and one step may require what another has a default for."""
        short, long = Arg(description="a", min=1), Arg(description="b", min=1)

        assert not self.both(Annotated[int, short], Annotated[int, long])
        assert not self.both(int, int, (inspect.Parameter.empty, 3))

    @pytest.mark.parametrize(
        ("one", "other", "defaults"),
        [
            (int, float, (1, 1)),
            (list[int], list[str], ([], [])),
            (Annotated[int, Arg(min=0)], Annotated[int, Arg(min=1)], (1, 1)),
            (Annotated[int, Arg(max=8)], Annotated[int, Arg(max=9)], (1, 1)),
            (int, int, (1, 2)),
        ],
        ids=["type", "items", "min", "max", "default"],
    )
    def test_steps_that_declare_it_differently_are_refused(
        self, one: Any, other: Any, defaults: tuple[Any, Any]
    ) -> None:
        """One of them would get a value it does not allow, or the other's default."""
        (found,) = self.both(one, other, defaults)

        assert found.startswith("step 'b': parameter 'n' is declared differently by step 'a'")


def test_a_problem_of_a_step_names_the_step_as_data() -> None:
    """Editors and surfaces find its line by it; the sentence is for humans."""
    with pytest.raises(InvalidWorkflow) as refused:
        Workflow("flow", StepDef("a", next={Outcome.OK: "nowhere"}))

    assert {problem.step for problem in refused.value.problems} == {"a", ""}
