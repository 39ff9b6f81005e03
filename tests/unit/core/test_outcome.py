import pytest

from signoff.core.outcome import FINAL, End, Outcome, Status


@pytest.mark.parametrize("end", End)
def test_every_end_is_a_status(end: End) -> None:
    """An edge that ends a run has to set the run's status."""
    assert end.status.value == end.value


def test_the_outcomes_have_their_documented_names() -> None:
    """They are in definitions and journals; renaming one breaks both."""
    assert [o.value for o in Outcome] == ["ok", "fail", "skip", "iterate", "_default"]


def test_a_run_that_can_be_resumed_is_not_final() -> None:
    """A failed, limited or interrupted run is resumed once its cause is gone."""
    assert {s for s in Status if s not in FINAL} == {
        Status.QUEUED,
        Status.RUNNING,
        Status.WAITING,
        Status.PARKED,
        Status.INTERRUPTED,
        Status.FAILED,
        Status.LIMIT,
        Status.BUDGET,
    }
