import pytest

from signoff.contracts import define_workflow
from signoff.contracts.checkpoint import OWN_NAMES
from signoff.contracts.expressions import CTX_NAMES, BadExpression, Expression
from signoff.errors import InvalidWorkflow
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ctx.book !== null", "unknown name ctx.book"),
        ("ctx.analysisPath !== null", "params.analysisPath"),
        ("ctx.run == 'x'", "valid: attempt, checkpoint"),
        ("checkpoint.gateDecision.label == 'x'", "unknown name checkpoint.gateDecision.label"),
        ("ctx.checkpoint.gate.text == 'x'", "valid: gate, input, option"),
        ("checkpoint.pendingRetry.why == 'x'", "valid: attempt, error, step"),
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
