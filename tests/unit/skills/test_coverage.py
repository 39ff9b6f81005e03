import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.skills.coverage import COVERAGE_SCALE, Coverage, repeat_until_covered
from signoff.skills.parts import MAX_ROUNDS


@pytest.mark.parametrize("iteration", range(1, MAX_ROUNDS + 1))
@pytest.mark.parametrize("coverage", Coverage)
def test_a_list_is_worked_through_unless_the_rounds_are_used_up(
    coverage: Coverage, iteration: int
) -> None:
    """Work that is half done leads on only when there is no other way."""
    outcome, _ = repeat_until_covered(StepContext("read"), coverage, iteration)

    over = coverage is Coverage.COMPLETE or iteration == MAX_ROUNDS
    assert outcome is (Outcome.OK if over else Outcome.ITERATE)


def test_the_scale_explains_every_level_in_order() -> None:
    """Agents would use a word that nothing explains as they like."""
    places = [COVERAGE_SCALE.index(f"- `{each}`") for each in Coverage]

    assert places == sorted(places)
