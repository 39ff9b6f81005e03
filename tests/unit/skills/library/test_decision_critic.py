import pytest

from signoff.skills.library.decision_critic import WORKFLOW


@pytest.mark.parametrize(
    ("confidence", "iteration", "following"),
    [
        ("exploring", 1, "answer"),
        ("low", 4, "answer"),
        ("low", 5, "alternatives"),
        ("high", 1, "alternatives"),
        ("certain", 2, "alternatives"),
    ],
)
def test_answers_are_searched_until_they_are_well_supported(
    confidence: str, iteration: int, following: str
) -> None:
    """A verdict must not rest on the first answer that was found."""
    output = WORKFLOW.run("answer", confidence=confidence, iteration=iteration)

    assert output.next == following


def test_the_decision_is_carried_to_every_step() -> None:
    """Every step of a run is about the same decision."""
    command = WORKFLOW.run("structure", task="Move to Postgres").next_command

    assert command is not None
    assert dict(command.params) == {"task": "Move to Postgres"}
