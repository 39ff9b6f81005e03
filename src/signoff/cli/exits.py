"""Exit codes: a promise to scripts. Only 0 means that what was asked for is there."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core.outcome import Status
from signoff.errors import (
    ConfigError,
    InvalidParams,
    InvalidWorkflow,
    SignoffError,
    UsageError,
)

OK = 0
ERROR = 1
USAGE = 2
WAITING = 10
NOT_ACCEPTED = 16
"""Work that was handed in does not count."""
INTERRUPTED = 130

OF_STATUS = {
    Status.COMPLETED: OK,
    Status.FAILED: ERROR,
    Status.WAITING: WAITING,
    Status.LIMIT: 11,
    Status.BUDGET: 12,
    Status.NOT_CONVERGING: 13,
    Status.REJECTED: 14,
    Status.CANCELLED: 15,
    Status.PARKED: 75,
    Status.INTERRUPTED: INTERRUPTED,
}

_USAGE = (UsageError, InvalidWorkflow, InvalidParams, ConfigError)


def exit_code(status: Status) -> int | None:
    """Returns the code of a run that came to rest; None while it is running."""
    return OF_STATUS.get(status)


def code_of_error(error: SignoffError) -> int:
    """Returns the code for something that could not be done."""
    return USAGE if isinstance(error, _USAGE) else ERROR


def code_of_several(codes: Iterable[int]) -> int:
    """Returns one code for several runs: 0 only if all are there, an error before a wait."""
    found = set(codes) - {OK}
    if not found:
        return OK
    return ERROR if ERROR in found else min(found)
