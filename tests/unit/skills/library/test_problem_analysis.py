import pytest

from signoff.skills.library.problem_analysis import WORKFLOW


@pytest.mark.parametrize(
    ("reproduction", "iteration", "following"),
    [
        ("not_tried", 1, "reproduce"),
        ("not_reproduced", 2, "reproduce"),
        ("sometimes", 4, "reproduce"),
        ("not_reproduced", 5, "boundary"),
        ("always", 1, "boundary"),
    ],
)
def test_attempts_to_reproduce_end_with_success_or_after_the_last_round(
    reproduction: str, iteration: int, following: str
) -> None:
    """A problem that cannot be reproduced is analyzed from records instead."""
    output = WORKFLOW.run("reproduce", reproduction=reproduction, iteration=iteration)

    assert output.next == following


@pytest.mark.parametrize(
    ("confidence", "following"),
    [("exploring", "investigate"), ("low", "investigate"), ("high", "cause"), ("certain", "cause")],
)
def test_hypotheses_are_tested_until_one_is_well_supported(confidence: str, following: str) -> None:
    """The first idea is not the cause until the others are excluded."""
    assert WORKFLOW.run("investigate", confidence=confidence).next == following
