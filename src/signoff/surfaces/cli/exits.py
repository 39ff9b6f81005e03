"""Exit codes, which scripts rely on. Only 0 means success."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core import errors as er
from signoff.core.errors import SignoffError
from signoff.core.outcome import Status

OK = 0
ERROR = 1
USAGE = 2
WAITING = 10
NOT_ACCEPTED = 16
"""Submitted work was not accepted."""
FINDINGS = 17
"""A review is finished, and findings that block are open."""
INCOMPLETE = 18
"""A review has not read everything it should have."""
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
    Status.FINDINGS: FINDINGS,
    Status.INCOMPLETE: INCOMPLETE,
    Status.PARKED: 75,
    Status.INTERRUPTED: INTERRUPTED,
}

_USAGE = (er.UsageError, er.InvalidWorkflow, er.InvalidParams, er.ConfigError)


def exit_code(status: Status) -> int:
    """Returns the exit code of a run's status."""
    # A run that this command drove and whose row still says "running" was stopped before it
    # could record that.
    return OF_STATUS.get(status, INTERRUPTED)


def code_of_error(error: SignoffError) -> int:
    """Returns the exit code of an error: 2 if the command has to change, else 1."""
    return USAGE if isinstance(error, _USAGE) else ERROR


def code_of_several(codes: Iterable[int]) -> int:
    """Returns one code for several runs: 0 only if all are 0; an error wins over a wait."""
    errors = set(codes) - {OK}
    if not errors:
        return OK
    return ERROR if ERROR in errors else min(errors)
