"""The names of inputs; running them is tested with the real command."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.testing import case_id
from tests.tables import table


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


def test_different_inputs_have_different_names() -> None:
    """Pytest would rename them, and a failure could not be told from another."""
    values: list[Any] = [
        *(None, True, False, 0, 1, 1.0, "", "None", "null", "true", "1", "1.0", "NaN", "a", "a b"),
        *([], ["a"], '["a"]', "a-b=c", 'a"', "'a'", "-", Path("a"), {"a": 1}, "a,b", ["a", "b"]),
    ]
    inputs: list[tuple[str, dict[str, Any]]] = [
        *(("w", {"step": 1, "a": value}) for value in values),
        *(("w", {"step": 1, "a": "x", "b": value}) for value in values),
        ("w", {"step": 1, "a": 'x-b="y"'}),
        ("w", {"step": 1, "a": "x-b", "y": 1}),
        *(("w", {"step": 1}), ("w-1", {"step": 1}), ("w", {"step": 11}), ("w-1", {"step": 2})),
    ]

    names = [case_id(skill(name), params) for name, params in inputs]

    assert len(set(names)) == len(names)


def test_the_order_of_parameters_does_not_matter() -> None:
    """It is the same input."""
    one, other = {"step": 1, "a": 1, "b": 2}, {"b": 2, "a": 1, "step": 1}

    assert case_id(skill("w"), one) == case_id(skill("w"), other)
