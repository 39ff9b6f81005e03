"""How a handler is left when the run cannot go on right now.

These derive from BaseException, so `except Exception` in a handler does not swallow
them by accident. They never leave the runner: it turns each into how the run rests.
"""

from __future__ import annotations

from collections.abc import Iterator

from signoff.core.outcome import Status
from signoff.core.stop_reason import StopReason


class Suspension(BaseException):
    """The run rests here."""

    status = Status.WAITING

    def __init__(self, reason: StopReason | None = None, due_at: float | None = None) -> None:
        super().__init__(str(reason or ""))
        self.reason = reason
        self.due_at = due_at


class WaitingForAnswer(Suspension):
    """A person has not answered yet."""


class ParkedUntil(Suspension):
    """Nothing can be done before a certain time."""

    status = Status.PARKED


class LimitReached(Suspension):
    """A limit on money, tokens, calls or time leaves no room."""

    status = Status.BUDGET


class Outdated(Suspension):
    """The definition was changed, and what this attempt has asked for is not what it asks now.

    The run does not rest: the step is worked anew.
    """

    status = Status.RUNNING


_WEIGHT = {Status.PARKED: 0, Status.WAITING: 1, Status.BUDGET: 2, Status.RUNNING: 3}


def heaviest(found: list[Suspension]) -> Suspension:
    """Returns how a run rests when several of its branches do: budget, else people, else time."""
    first = max(found, key=lambda s: _WEIGHT[s.status])
    times = [s.due_at for s in found if s.due_at is not None]
    return type(first)(first.reason, min(times) if times else None)


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns what a task group failed with: an error if there is one, else how the run rests."""
    found = list(_leaves(group))
    errors = [error for error in found if not isinstance(error, Suspension)]
    if errors:
        return errors[0] if len(errors) == 1 else group
    return heaviest([error for error in found if isinstance(error, Suspension)])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
