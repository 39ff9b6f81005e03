from typing import Any

import pytest

from signoff.contracts.expressions import BadExpression, Expression
from signoff.errors import StepFailed
from tests.tables import table

RESULT = {
    "n": 5,
    "text": "abc",
    "done": True,
    "list": [1, 2],
    "empty": None,
    "map": {"x": 1},
    "items": [{"ok": False}],
}
VALUES = {
    "result": RESULT,
    "results": {"own": RESULT, "other": {"n": "x"}, "plain": "text"},
    "checkpoint": {"results": {"own": RESULT}, "n": 1},
    "ctx": {"result": RESULT, "params": {}},
    "params": {},
    "hint": None,
}
WORKER = {
    "result.q > 1": "result has no 'q'",
    "result['q'] == 1": "result has no 'q'",
    "results.own.q == 1": "results.own has no 'q'",
    "checkpoint.results.own.q == 1": "checkpoint.results.own has no 'q'",
    "ctx.result.q == 1": "ctx.result has no 'q'",
    "result.a > 1 && result.b > 1": "result has no 'b'",
    "result.text.x == 1": "result.text is a text, not an object",
    "result.text[0] == 1": "result.text is a text, not a list",
    "result.map.x.y.z == 1": "result.map.x is a whole number, not an object",
    "result.text.a.x > 1 && result.text.b.y > 1": "result.text is a text, not an object",
    "result.text > 1": "result.text is a text, not a whole number or a fraction",
    "result.empty > 'a'": "result.empty is empty, not a text",
    "results.own.text > 1": "results.own.text is a text, not a whole number or a fraction",
    "result.n": "result.n is a whole number, not a boolean",
    "!result.n": "result.n is a whole number, not a boolean",
    "result.n.startsWith('a')": "result.n is a whole number, not a text",
    "results.other.n > result.n": "result.n is a whole number, not a text",
    "hint.startsWith('x')": "hint is empty, not a text",
    "result.items.all(i, i.q > 0)": "there is no 'q'",
    "result.map[result.text] == 2": "there is no 'abc'",
    "result.items.filter(i, i.ok)[0].n == 1": "index out of bounds: 0",
    "result.list[5] == 1": "index out of bounds: 5",
    "result.n / 0 > 1": "division by zero",
    "int(result.text) > 1": "'int'",
    "timestamp(result.text) > timestamp('2024-01-01T00:00:00Z')": "'timestamp'",
    "result.text.__class__ == 1": "result.text is a text, not an object",
}
AUTHOR = {
    "results.later.n > 0": "step 'later' has no result yet",
    "result.done && results.later.n > 1": "step 'later' has no result yet",
    "result.q > results.later.n": "step 'later' has no result yet",
    "results.other.q > result.n": "results.other has no 'q'",
    "results.plain.n == result.n": "results.plain is a text, not an object",
    "results.other.n > 1": "types of its values do not fit",
    "checkpoint.none == result.n": "checkpoint has no 'none'",
    "params.x == result.n": "parameter 'x' is missing; start the run with -i x=...",
    "ctx.params.x == 1": "parameter 'x' is missing; start the run with -i x=...",
    "result.n > 1 + 'a'": "types of its values do not fit",
    "result.q > 1 + 'a'": "types of its values do not fit",
    "size(result.text) + 'a' > 1": "types of its values do not fit",
    "size(result.text)": "it is 3, neither true nor false",
    "1": "it is 1, neither true nor false",
    "null": "neither true nor false",
    "1 / 0 == 1": "division by zero",
    "foo(result.n) > 1": "'foo'",
    "result.n.foo() == 1": "'foo'",
    "result.text.contains(1)": "'contains'",
    "result.text.matches('(((')": "matches",
}


@table(
    ("text", "fault", "message"),
    [
        *((text, StepFailed, message) for text, message in WORKER.items()),
        *((text, BadExpression, message) for text, message in AUTHOR.items()),
    ],
)
def test_an_expression_without_a_value_is_blamed_on_who_can_change_that(
    text: str, fault: type[Exception], message: str
) -> None:
    """A retry for a mistake of the author is paid for and helps no one."""
    with pytest.raises(fault) as caught:
        Expression(text).holds(VALUES, {"own"})

    assert message in str(caught.value)


def test_an_earlier_result_of_the_step_is_not_the_workers() -> None:
    """Before the step, its own result is that of an earlier visit, if there was one."""
    with pytest.raises(BadExpression):
        Expression("results.own.q > 1").holds(VALUES)


def test_many_wrong_values_are_the_workers_without_trying_them_all() -> None:
    """Four values of nine kinds are 6,561 results; without an answer a retry is what it costs."""
    values: dict[str, Any] = {"result": {"a": "x", "b": "x", "c": "x", "d": "x"}}

    with pytest.raises(StepFailed):
        Expression("result.a + result.b + result.c + result.d > 3").holds(values)
