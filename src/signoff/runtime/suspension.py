"""Exceptions that leave a handler when the run cannot continue right now.

They derive from BaseException, so that an `except Exception` in a handler does not swallow
them by accident. They never leave the runner, which records each as the reason why the run
stopped.
"""

from __future__ import annotations

from collections.abc import Iterator

from signoff.core.outcome import Status
from signoff.core.stop_reason import StopReason


class Suspension(BaseException):
    """The run stops here for now."""

    status = Status.WAITING

    def __init__(self, reason: StopReason | None = None, due_at: float | None = None) -> None:
        super().__init__(str(reason or ""))
        self.reason = reason
        self.due_at = due_at


class WaitingForAnswer(Suspension):
    """A human has not answered yet."""


class ParkedUntil(Suspension):
    """The run cannot continue before a certain time."""

    status = Status.PARKED


class LimitReached(Suspension):
    """A limit on money, tokens, calls or time leaves no room."""

    status = Status.BUDGET


class Outdated(Suspension):
    """The attempt no longer makes the requests that were recorded, for an accepted reason.

    The definition was changed and adopted, or the attempt has new feedback after a timeout. The
    run does not stop: the step starts over.
    """

    status = Status.RUNNING


_WEIGHT = {Status.PARKED: 0, Status.WAITING: 1, Status.BUDGET: 2, Status.RUNNING: 3}


def heaviest(suspensions: list[Suspension]) -> Suspension:
    """Returns the suspension that decides if several branches have one: limit, human, time."""
    first = max(suspensions, key=lambda s: _WEIGHT[s.status])
    times = [s.due_at for s in suspensions if s.due_at is not None]
    return type(first)(first.reason, min(times) if times else None)


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns what a task group failed with: its errors if it has any, else the suspension."""
    leaves = list(_leaves(group))
    errors = [error for error in leaves if not isinstance(error, Suspension)]
    if errors:
        return errors[0] if len(errors) == 1 else group
    return heaviest([error for error in leaves if isinstance(error, Suspension)])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
