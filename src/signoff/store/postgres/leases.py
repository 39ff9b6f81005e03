"""Who drives a run, in the PostgreSQL store. Leases end by the server's clock."""

from __future__ import annotations

from signoff.runtime.store_port import Alive, DispatchToken, Owner, RunId, RunRow
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import Row, ServerSession
from signoff.store.rows import RENEWED_SECONDS, busy, is_held, is_later_attempt, run_row

NOW = "extract(epoch FROM clock_timestamp())::float8"

_OWNER = f"""
SELECT id, host, pid, born, until > {NOW} + $2::float8 FROM {{s}}.owners WHERE id = $1
"""
RENEW = """
ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, born = excluded.born,
                               until = excluded.until
"""
_PUT_OWNER = f"""
INSERT INTO {{s}}.owners (id, host, pid, born, until)
VALUES ($1, $2, $3, $4, {NOW} + $5::float8)
{RENEW}
"""
_TAKE_FREE = f"""
WITH owner AS ({_PUT_OWNER})
UPDATE {{s}}.runs SET owner = $1, fence = fence + 1, cancel = NULL, dispatch = $7, attempt = $8
WHERE id = $6 AND (owner IS NULL OR owner = $1)
RETURNING fence
"""
_LAST_ATTEMPT = f"SELECT dispatch, attempt, {q.RUN} FROM {{s}}.runs WHERE id = $1"
# The fence that was read: of several that take a run at once, one gets it.
_TAKE = """
UPDATE {s}.runs SET owner = $1, fence = fence + 1, cancel = NULL, dispatch = $4, attempt = $5
WHERE id = $2 AND fence = $3
RETURNING fence
"""


def take(
    run: RunId,
    owner: Owner,
    alive: Alive,
    lease_seconds: float,
    token: DispatchToken | None,
    schema: str,
    session: ServerSession,
) -> int:
    """Gives the run to an owner and returns the new fence; raises `RunBusy`."""
    renewal, dispatched = put_owner(owner, lease_seconds, schema), token or (None, None)
    # Most runs that are taken are free, which one statement finds out and makes use of.
    taken: list[Row] = session.rows(
        q.in_schema(_TAKE_FREE, schema), [*renewal[1], run, *dispatched]
    )
    while not taken:
        ((dispatch, attempt, *values),) = session.rows(q.in_schema(_LAST_ATTEMPT, schema), [run])
        row = run_row(values)
        if row.owner != owner.id:
            is_later = is_later_attempt(row, token, DispatchToken(dispatch, attempt))
            refuse_if_alive(row, alive, schema, session, is_later=is_later)
        # Another owner may take it in between: then nothing is updated, and it is read again.
        _, taken = session.together(
            renewal, (q.in_schema(_TAKE, schema), [owner.id, run, row.fence, *dispatched])
        )
    return int(taken[0][0])


def refuse_if_alive(
    row: RunRow, alive: Alive, schema: str, session: ServerSession, *, is_later: bool = False
) -> None:
    """Raises `RunBusy` if a run's owner has to be believed alive."""
    if row.owner is None:
        return
    owner = living_owner(row.owner, alive, schema, session, is_later=is_later)
    if owner is not None:
        raise busy(row, owner)


def living_owner(
    identity: str, alive: Alive, schema: str, session: ServerSession, *, is_later: bool = False
) -> Owner | None:
    """Returns an owner that has to be believed alive; None if it is dead or unknown.

    `is_later` is whether a later attempt of a dispatcher wants its run.
    """
    left = RENEWED_SECONDS if is_later else 0.0
    for *values, leased in session.rows(q.in_schema(_OWNER, schema), [identity, left]):
        owner = Owner(*values)
        if is_held(owner, alive, leased=leased):
            return owner
    return None


def put_owner(owner: Owner, lease_seconds: float, schema: str) -> tuple[str, list[object]]:
    """Returns the statement that renews all leases of an owner."""
    values = [owner.id, owner.host, owner.pid, owner.born, lease_seconds]
    return q.in_schema(_PUT_OWNER, schema), values
