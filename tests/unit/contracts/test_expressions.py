import pytest

from signoff.contracts.expressions import LONGEST, BadExpression, Expression, plain_cel
from signoff.errors import StepFailed


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a === b", "a == b"),
        ("a !== b", "a != b"),
        ("a == b", "a == b"),
        ("a != b", "a != b"),
        ('a === "==="', 'a == "==="'),
        ("a === '!=='", "a == '!=='"),
        (r'"\" === " === a', r'"\" === " == a'),
        ('"""x === "y" """ === a', '"""x === "y" """ == a'),
        ("r'\\' === '==='", "r'\\' == '==='"),
        (r"'\\' === '==='", r"'\\' == '==='"),
        ("a===b&&c!==d", "a==b&&c!=d"),
    ],
)
def test_strict_comparisons_are_read_by_token(written: str, read: str) -> None:
    """Three equals signs inside a string stay as they are."""
    assert plain_cel(written) == read


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('result.decision === "approved"', True),
        ('result.note === "a === b"', True),
        ("result.metrics.delta >= checkpoint.threshold", True),
        ("result.metrics.delta >= 3", True),
        ("size(result.areas) > 0 && params.book != null", True),
        ("result.nothing === null", True),
        ("has(result.missing)", False),
        ("result.areas.exists(a, a == 'y')", True),
        ("'writer' in checkpoint.completed", True),
        ("ctx.attempt == 1", True),
    ],
)
def test_conditions_are_evaluated_over_what_a_step_knows(text: str, holds: bool) -> None:
    """Integers and fractions can be compared, as in other expression languages."""
    values = {
        "ctx": {"attempt": 1},
        "result": {
            "decision": "approved",
            "note": "a === b",
            "metrics": {"delta": 3.5},
            "areas": ["x", "y"],
            "nothing": None,
        },
        "checkpoint": {"threshold": 3, "completed": ["writer"]},
        "params": {"book": "Emma"},
    }

    assert Expression(text).holds(values) is holds


@pytest.mark.parametrize(
    "text",
    ["", "  ", "a ==", "a ==== b", "(((", "result..x", "import os", "a; b", "x" * (LONGEST + 1)],
)
def test_an_invalid_expression_is_refused_when_it_is_parsed(text: str) -> None:
    """A typo in a branch that is rarely taken must be found before that."""
    with pytest.raises(BadExpression):
        Expression(text)


def test_deep_nesting_is_refused_or_evaluated_but_never_ends_the_program() -> None:
    """A recursive parser must not crash the process."""
    text = "(" * 900 + "true" + ")" * 900

    try:
        held = Expression(text).holds({})
    except BadExpression:
        held = True

    assert held is True


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("size(result.areas) > 0", {"result"}),
        ("ctx.attempt > 1 || hint == 'gate'", {"ctx", "hint"}),
        ("params.book in checkpoint.books", {"params", "checkpoint"}),
        ("true", set()),
    ],
)
def test_an_expression_gets_only_the_values_it_uses(text: str, names: set[str]) -> None:
    """A whole checkpoint for every condition of a thousand items would take seconds."""
    assert Expression(text).names == names


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        ("result.words > 0", True),
        ("result.note == '.all('", True),
        ("result.areas.all(a, a > 0)", False),
        ("result.areas.all // of them\n(a, a > 0)", False),
        ("result.a" + " + result.a" * 30, False),
    ],
)
def test_loops_and_long_sums_are_not_quick(text: str, quick: bool) -> None:
    """On the event loop they could block every other run."""
    assert Expression(text).is_quick is quick


@pytest.mark.parametrize(
    "text",
    [
        "result.all(a, result.all(b, result.all(c, a + b + c >= 0)))",
        "[1, 2].all(x, " * 47 + "true" + ")" * 47,
        "result" + ".map(a, [a, a])" * 40 + ".size() > 0",
        "['aaaaaaaaaa']" + ".map(x, x + x)" * 60 + " == []",
    ],
    ids=["loops over much", "loops over literals", "a growing value", "a growing text"],
)
def test_an_endless_expression_is_aborted_and_named(text: str) -> None:
    """Nothing can interrupt the evaluator, so all runs of the process would hang."""
    with pytest.raises((BadExpression, StepFailed), match="; use a function") as caught:
        Expression(text).holds({"result": list(range(1000))})

    assert text[:20] in str(caught.value)


@pytest.mark.parametrize(
    "text", ["result.all(x, x > 0)", "type(result) == list", "params.map(p, p).exists(q, q == 1)"]
)
def test_the_names_of_loops_and_types_are_known(text: str) -> None:
    """CEL's own names are valid."""
    assert Expression(text).text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("result = 3", "did you mean ==?"),
        ("result == 'a = b' +", "Syntax error"),
        ("ctx.db.value == 1", "expressions cannot use the database; use a function"),
        ("db.value('SELECT 1') == 1", "expressions cannot use the database"),
    ],
)
def test_a_common_mistake_is_reported_with_advice(text: str, message: str) -> None:
    """The parser's own messages do not help with these two."""
    with pytest.raises(BadExpression) as caught:
        Expression(text)

    assert message in str(caught.value)
    assert ("did you mean" in str(caught.value)) == (text == "result = 3")
