from itertools import product

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    MAX_ROUNDS,
    TASK,
    repeat_until,
    repeat_until_confident,
)
from signoff.skills.types import Confidence
from tests.tables import table

OK, ITERATE = Outcome.OK, Outcome.ITERATE


@table(("confidence", "iteration"), product(Confidence, range(1, MAX_ROUNDS + 1)))
def test_an_investigation_ends_when_it_is_confident_or_out_of_rounds(
    confidence: Confidence, iteration: int
) -> None:
    """An agent that stays unsure must not investigate forever."""
    outcome, _ = repeat_until_confident(StepContext("look"), confidence, iteration)

    sure = confidence in (Confidence.HIGH, Confidence.CERTAIN)
    assert outcome is (OK if sure or iteration == MAX_ROUNDS else ITERATE)


def test_a_run_counts_its_rounds_by_itself() -> None:
    """Its worker need not report in which round it is."""
    outcomes = [repeat_until(False, StepContext("look", visit=n), 1, bound=3)[0] for n in (1, 2, 3)]

    assert outcomes == [ITERATE, ITERATE, OK]


def test_the_scale_explains_every_level_in_order() -> None:
    """Agents would use a word that nothing explains as they like."""
    places = [CONFIDENCE_SCALE.index(f"- `{each}`") for each in Confidence]

    assert places == sorted(places)


def test_the_task_may_be_left_out() -> None:
    """In a conversation, the agent knows it already."""
    assert not TASK.required
