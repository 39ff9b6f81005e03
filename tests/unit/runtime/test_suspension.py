import pytest

from signoff.core.outcome import Status
from signoff.core.stop_reason import AnswerPending, BudgetReached, Sleeping
from signoff.runtime.suspension import (
    LimitReached,
    ParkedUntil,
    Suspension,
    WaitingForAnswer,
    cause_of,
    heaviest,
)


def test_a_suspension_is_not_caught_by_accident() -> None:
    """`except Exception` in a handler would swallow a wait."""
    assert not issubclass(Suspension, Exception)


def test_of_several_suspensions_the_heaviest_decides() -> None:
    """No human should answer questions of a run that has no money left to continue."""
    waiting, parked = WaitingForAnswer(AnswerPending()), ParkedUntil(Sleeping(5.0))
    spent = LimitReached(BudgetReached("run", "usd", 1.0))

    assert heaviest([parked, waiting]).status is Status.WAITING
    assert heaviest([parked, spent, waiting]).status is Status.BUDGET
    assert heaviest([parked]).status is Status.PARKED
    assert heaviest([parked, waiting]).reason == AnswerPending()


@pytest.mark.parametrize(("times", "due"), [([None, None], None), ([5.0, None, 3.0], 3.0)])
def test_a_run_is_due_when_the_first_of_its_branches_is(
    times: list[float | None], due: float | None
) -> None:
    """Woken later, a deadline would be missed."""
    assert heaviest([WaitingForAnswer(due_at=time) for time in times]).due_at == due


def test_suspensions_of_nested_task_groups_are_found() -> None:
    """Groups inside groups are how structured code looks."""
    inner = BaseExceptionGroup("inner", [WaitingForAnswer(due_at=7.0)])
    outer = BaseExceptionGroup("outer", [inner, ParkedUntil(due_at=3.0)])

    found = cause_of(outer)

    assert isinstance(found, WaitingForAnswer)
    assert found.due_at == 3.0
