from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from signoff.core.args import Arg, BoundedInt, ChoiceSet, Constant, Param, bind, read_params
from signoff.core.code import EMPTY
from tests.tables import table


def only(handler: Callable[..., Any]) -> Param:
    """The one parameter of a handler."""
    (param,) = read_params(handler).values()
    return param


def bind_one(handler: Callable[..., Any], **values: Any) -> Any:
    """What the handler's one parameter becomes, or the problem with it."""
    bound, problems = bind(read_params(handler), values)
    (name,) = read_params(handler)
    return problems[0].what if problems else bound[name]


def whole(ctx: Any, n: int) -> None: ...
def real(ctx: Any, n: float) -> None: ...
def flag(ctx: Any, n: bool) -> None: ...
def text(ctx: Any, n: str) -> None: ...
def words(ctx: Any, n: list[str]) -> None: ...
def numbers(ctx: Any, n: tuple[int, ...]) -> None: ...
def maybe(ctx: Any, n: Annotated[int, Arg(min=1)] | None) -> None: ...
def either(ctx: Any, n: int | str) -> None: ...
def mapping(ctx: Any, n: dict[str, int]) -> None: ...
def anything(ctx: Any, n: Any) -> None: ...
def bare(ctx, n): ...  # type: ignore[no-untyped-def]  # what people write on the first day
def mode(ctx: Any, n: Literal["quick", "full"]) -> None: ...


def test_the_context_is_no_parameter() -> None:
    """Only what comes after it has to be passed when a run starts."""

    def handler(ctx: Any, topic: str, *rest: Any, **more: Any) -> None: ...

    assert list(read_params(handler)) == ["topic"]


def test_a_parameter_has_the_values_of_its_arg() -> None:
    """Description, range and default reach the command line's help and the checks."""
    times_arg = Arg(description="how often", min=1, max=9)

    def handler(ctx: Any, times: Annotated[int, times_arg] = 3) -> None: ...

    param = only(handler)

    assert param == Param("times", int, times_arg, 3)
    assert not param.required


def test_required_overrules_a_default() -> None:
    """`required=True` means the run must be started with it."""

    def handler(ctx: Any, times: Annotated[int, Arg(required=True)] = 3) -> None: ...

    assert only(handler).required
    assert only(handler).default is EMPTY


@table(
    ("handler", "value", "becomes"),
    [
        (whole, "3", 3),
        (whole, 3.0, 3),
        (whole, 10**30, 10**30),
        (real, "2.5", 2.5),
        (real, 2, 2.0),
        (flag, "Yes", True),
        (flag, "off", False),
        (flag, 1, True),
        (flag, False, False),
        (text, "x", "x"),
        (text, 5, "5"),
        (words, "a, b,,c", ["a", "b", "c"]),
        (words, ("a", "b"), ["a", "b"]),
        (words, [1], ["1"]),
        (numbers, "1,2", [1, 2]),
        (maybe, None, None),
        (maybe, "2", 2),
        (either, "2", "2"),
        (mapping, {"a": 1}, {"a": 1}),
        (anything, None, None),
        (anything, [1], [1]),
        (bare, [1], [1]),
        (mode, "full", "full"),
    ],
)
def test_a_value_is_converted_to_what_the_handler_declares(
    handler: Callable[..., Any], value: Any, becomes: Any
) -> None:
    """`-i n=3` gives text, and a handler that says `int` must get a number."""
    result = bind_one(handler, n=value)

    assert result == becomes
    assert type(result) is type(becomes)


@table(
    ("handler", "value", "problem"),
    [
        (whole, "three", "'three' is not a whole number"),
        (whole, "", "'' is not a whole number"),
        (whole, 3.7, "3.7 is not a whole number"),
        (whole, True, "True is not a whole number"),
        (whole, None, "None is not a whole number"),
        (whole, float("inf"), "inf is not a whole number"),
        (whole, Decimal(1), "Decimal('1') is not a whole number"),
        (real, "nan", "'nan' is not a number"),
        (real, "1e999", "'1e999' is not a number"),
        (real, 10**400, "is not a number"),
        (real, False, "False is not a number"),
        (flag, "maybe", "'maybe' is not true or false"),
        (flag, 2, "2 is not true or false"),
        (flag, None, "None is not true or false"),
        (text, True, "True is not text"),
        (text, ["a"], "['a'] is not text"),
        (text, None, "None is not text"),
        (words, 5, "5 is not a list"),
        (words, b"a,b", "is not a list"),
        (numbers, "1,x", "'1,x' is not a tuple"),
        (maybe, 0, "0 is below 1"),
        (mapping, "a=1", "'a=1' is not a dict"),
        (mode, "slow", "'slow' is not one of the choices"),
    ],
)
def test_a_value_that_does_not_fit_is_a_problem(
    handler: Callable[..., Any], value: Any, problem: str
) -> None:
    """A run that would fail at its tenth step has to be refused before its first."""
    assert problem in bind_one(handler, n=value)


def test_a_huge_value_makes_no_huge_message() -> None:
    """The message is one line on a terminal."""
    assert len(bind_one(whole, n="x" * 10_000)) < 200


def test_ranges_and_choices_are_checked_after_conversion() -> None:
    """`-i n=12` is the number 12, which may be too many."""

    def ranged(ctx: Any, n: Annotated[int, Arg(min=1, max=10)]) -> None: ...
    def chosen(ctx: Any, n: Annotated[str, Arg(choices=("quick", "full"))]) -> None: ...

    assert bind_one(ranged, n="12") == "12 is above 10"
    assert bind_one(ranged, n="0") == "0 is below 1"
    assert bind_one(ranged, n="10") == 10
    assert bind_one(ranged, n="1") == 1
    assert bind_one(chosen, n="slow") == "'slow' is not one of the choices"
    assert bind_one(chosen, n="quick") == "quick"


def test_a_range_on_something_that_has_no_order_is_a_problem_not_a_crash() -> None:
    """A mistake of the author must not look like a bug of signoff."""

    def handler(ctx: Any, n: Annotated[list[str], Arg(min=1)]) -> None: ...

    assert bind_one(handler, n="a,b") == "['a', 'b'] is not a list"


def test_every_problem_is_reported_with_what_would_fit() -> None:
    """Finding five mistakes must not take five attempts."""

    def handler(
        ctx: Any,
        times: Annotated[int, Arg(min=1, max=3)],
        most: Annotated[int, Arg(max=3)],
        mode: Annotated[str, Arg(choices=("quick", "full"))],
        topic: Annotated[str, Arg(description="what it is about")],
        tone: str,
    ) -> None: ...

    _, problems = bind(read_params(handler), {"times": 9, "most": 9, "mode": "x", "tpoic": "a"})

    assert [str(p) for p in problems] == [
        "parameter 'tpoic': is unknown (valid: times, most, mode, topic, tone)",
        "parameter 'times': 9 is above 3 (from 1 to 3)",
        "parameter 'most': 9 is above 3 (from any to 3)",
        "parameter 'mode': 'x' is not one of the choices (choose one of: quick, full)",
        "parameter 'topic': is missing (what it is about)",
        "parameter 'tone': is missing (give it as tone=VALUE)",
    ]


def test_a_missing_value_is_filled_from_the_default() -> None:
    """The default is what the author wrote, also when it is None."""

    def handler(ctx: Any, n: int = 3, note: str | None = None) -> None: ...

    values, problems = bind(read_params(handler), {})

    assert (values, problems) == ({"n": 3, "note": None}, [])


@pytest.mark.parametrize(
    ("default", "value", "becomes"),
    [(3, "4", 4), (True, "no", False), (0.5, "1", 1.0), ("a", 5, "5"), (["a"], "b", ["b"])],
)
def test_without_an_annotation_the_default_says_the_type(
    default: Any, value: Any, becomes: Any
) -> None:
    """`def step(ctx, times=3)` plainly wants a number."""

    def handler(ctx, n=default): ...  # type: ignore[no-untyped-def]  # the point of the test

    assert bind_one(handler, n=value) == becomes


def test_without_any_declaration_every_parameter_is_unknown() -> None:
    """A misspelled name, or one of another workflow, must not be ignored silently."""
    values, problems = bind({}, {"topic": "tea"})

    assert values == {}
    assert [(problem.where, problem.remedy) for problem in problems] == [
        ("parameter 'topic'", "it takes none")
    ]


def test_a_workflow_may_accept_any_parameter() -> None:
    """Functions and programs of a contract get all of them."""
    assert bind({}, {"topic": "tea", "n": 1}, None) == ({"topic": "tea", "n": 1}, [])


def test_domains_list_every_value_a_parameter_can_take() -> None:
    """Tests of a workflow run through them all."""

    def handler(
        ctx: Any,
        few: Annotated[int, Arg(min=1, max=3)],
        halves: Annotated[int, Arg(min=0.5, max=2.5)],
        mode: Annotated[str, Arg(choices=("quick", "full"))],
        fast: bool,
        open_end: Annotated[int, Arg(min=1)],
        topic: str,
    ) -> None: ...

    domains = {name: param.domain() for name, param in read_params(handler).items()}

    assert domains["few"] == BoundedInt(1, 3)
    assert list(domains["few"]) == [1, 2, 3]
    assert domains["halves"] == BoundedInt(1, 2)
    assert domains["mode"] == ChoiceSet(("quick", "full"))
    assert list(domains["mode"]) == ["quick", "full"]
    assert domains["fast"] == ChoiceSet((False, True))
    assert domains["open_end"] is None
    assert domains["topic"] is None
    assert list(Constant("x")) == ["x"]


def test_an_empty_range_is_refused() -> None:
    """A test over no values at all would pass without testing anything."""
    with pytest.raises(ValueError, match="lo must not exceed hi"):
        BoundedInt(2, 1)
