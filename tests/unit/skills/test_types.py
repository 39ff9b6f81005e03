"""The types that skills share."""

import pytest

from signoff import skills
from signoff.skills import Confidence, ReviewMode, ReviewPhase


def test_confidence_is_ordered_from_least_to_most() -> None:
    assert [*map(str, Confidence)] == ["exploring", "low", "medium", "high", "certain"]


@pytest.mark.parametrize("phase", ReviewPhase)
def test_each_phase_of_a_review_reads_either_a_design_or_code(phase: ReviewPhase) -> None:
    assert (phase.mode is ReviewMode.DESIGN) == ("design" in phase.value)


def test_every_exported_name_can_be_loaded() -> None:
    assert all(getattr(skills, name) for name in skills.__all__)
