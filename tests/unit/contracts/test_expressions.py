import pytest

from signoff.contracts import define_workflow
from signoff.contracts.checkpoint import OWN_NAMES
from signoff.contracts.expressions import CTX_NAMES, LONGEST, BadExpression, Expression, plain_cel
from signoff.core.errors import InvalidWorkflow, StepFailed
from tests.tables import table


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ctx.book !== null", "unknown name ctx.book"),
        ("ctx.analysisPath !== null", "params.analysisPath"),
        ("ctx.run == 'x'", "valid: attempt, checkpoint"),
        ("results.sign-off.n == 1", 'results["step-name"]'),
        ("ctx.db.versionExists(1)", "cannot use the database"),
    ],
)
def test_an_unknown_name_is_found_before_anything_runs(text: str, problem: str) -> None:
    """In a rarely taken branch it would only be found at run time."""
    with pytest.raises(BadExpression) as raised:
        Expression(text)

    assert problem in str(raised.value)


@table(
    "text",
    [
        *(f"ctx.{name} != null" for names in CTX_NAMES.items() for name in sorted(set(names))),
        *(
            f"checkpoint.{name} != null"
            for names in OWN_NAMES.items()
            for name in sorted(set(names))
        ),
        "ctx.checkpoint.completedSteps.exists(step, step == 'a')",
        "result.text == 'ctx.book and checkpoint.gate.nothing'",
        "checkpoint.anything == 1",
    ],
)
def test_known_names_are_accepted_in_snake_and_camel_case(text: str) -> None:
    """The design documents of a team may use either."""
    Expression(text)


def test_the_names_that_an_expression_reads_are_found_in_every_form() -> None:
    """An ambiguous one must not slip through."""
    text = "checkpoint.a == checkpoint[\"b\"] && ctx.checkpoint.c == checkpoint['d']"

    assert Expression(text).checkpoint_names == {"a", "b", "c", "d"}
    results = Expression('results.a.x == checkpoint.results["b-c"].y')
    assert results.result_steps == {"a", "b-c"}


@pytest.mark.parametrize(
    "step",
    [
        {"command": ["true"], "preconditions": ["results.wriet.n == 1"]},
        {"command": ["true"], "preconditions": ['checkpoint.results["wriet"].n == 1']},
        {"prompt": "Use {{results.wriet.n}}."},
        {"prompt": "Use {{item}}.", "parallel": True, "parallel_key": "results.wriet.n"},
        {
            "human_gate": {
                "prompt": "?",
                "context": ["results.wriet.n"],
                "options": [{"label": "a"}],
            }
        },
    ],
)
def test_a_result_of_an_unknown_step_is_a_problem_of_the_definition(
    step: dict[str, object],
) -> None:
    """The valid names are listed."""
    with pytest.raises(InvalidWorkflow, match=r"results\.wriet.*unknown step") as raised:
        define_workflow({"type": "t", "steps": [{"name": "write", **step}]})

    assert "one of: write" in str(raised.value)


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
UNFIT = "types of its values do not fit together"
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
    "result.text > 1": f"{UNFIT}; result.text is a text",
    "result.empty > 'a'": f"{UNFIT}; result.empty is empty",
    "result.n": "it is 5, neither true nor false; result.n is a whole number",
    "!result.n": "result.n is a whole number",
    "results.other.n > result.n": f"{UNFIT}; result.n is a whole number",
    "hint.startsWith('x')": "hint is empty",
    "result.items.all(i, i.q > 0)": "there is no 'q'",
    "result.map[result.text] == 2": "there is no 'abc'",
    "result.list[5] == 1": "index out of bounds: 5",
    "result.n / 0 > 1": "division by zero",
    "int(result.text) > 1": "'int'",
    "result.text.__class__ == 1": "result.text is a text, not an object",
    "foo(result.n) > 1": "'foo'",
}
AUTHOR = {
    "results.later.n > 0": "step 'later' has no result yet",
    "result.done && results.later.n > 1": "step 'later' has no result yet",
    "results.other.q > result.n": "results.other has no 'q'",
    "results.plain.n == result.n": "results.plain is a text, not an object",
    "results.other.n > 1": UNFIT,
    "checkpoint.none == result.n": "checkpoint has no 'none'",
    "params.x == result.n": "parameter 'x' is missing; start the run with -i x=...",
    "ctx.params.x == 1": "parameter 'x' is missing; start the run with -i x=...",
    "1": "it is 1, neither true nor false",
    "null": "neither true nor false",
    "1 / 0 == 1": "division by zero",
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
