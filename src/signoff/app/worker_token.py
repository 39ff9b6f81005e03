"""Keeps external workers from decisions that belong to humans.

A run whose work is handed out has a token. A worker that has it in its environment can take and
submit the work of that run, and nothing that a human decides: no answers, no approvals, no changed
definition. It is a guard rail: a process of the same user can remove the variable, or open the
database without signoff.
"""

from __future__ import annotations

import hashlib

from signoff.app.history import load_state
from signoff.app.project import WORKER_VARIABLE, Project
from signoff.errors import UsageError
from signoff.runtime.store_port import RunRow

_PREFIX = "signoff-worker-"


def token_of(project: Project, row: RunRow) -> str:
    """Returns the token of a run for its workers."""
    seed = load_state(project, row).seed
    return _PREFIX + hashlib.sha256(f"worker of {seed}".encode()).hexdigest()[:32]


def check_token(project: Project, row: RunRow) -> None:
    """Raises if this is a worker of another run."""
    token = project.worker_token
    if token and token != token_of(project, row):
        raise UsageError(
            f"the token in {WORKER_VARIABLE} does not belong to run {row.name!r}; a worker does "
            "the work of its own run only"
        )


def refuse_worker(project: Project, what: str) -> None:
    """Raises if this is a worker; `what` is what only a human may do."""
    refuse_token(project.worker_token, what)


def refuse_token(token: str, what: str) -> None:
    """Raises if there is the token of a worker, for what needs no open project."""
    if token:
        raise UsageError(
            f"a worker cannot {what}: {WORKER_VARIABLE} is set; a human does this without it"
        )
