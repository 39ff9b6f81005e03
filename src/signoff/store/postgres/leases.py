"""Who drives a run, in the PostgreSQL store. Leases end by the server's clock."""

from __future__ import annotations

import json
from collections.abc import Sequence

from signoff.core.outcome import FINAL
from signoff.runtime.store_port import (
    FORGOTTEN_SECONDS,
    LEASE_SECONDS,
    Alive,
    DispatchToken,
    Owner,
    RunId,
    RunRow,
    Topic,
)
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import ServerAddress, ServerSession
from signoff.store.postgres.schema import refuse_newer
from signoff.store.rows import (
    RENEWED_SECONDS,
    busy,
    is_held,
    is_later_attempt,
    run_row,
)

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
    session: ServerSession,
) -> int:
    """Gives the run to an owner and returns the new fence; raises `RunBusy`."""
    while True:
        ((dispatch, attempt, *values),) = session.rows(_LAST_ATTEMPT, [run])
        row = run_row(values)
        if row.owner != owner.id:
            is_later = is_later_attempt(row, token, DispatchToken(dispatch, attempt))
            refuse_if_alive(row, alive, session, is_later=is_later)
        # Another owner may take it in between: then nothing is updated, and it is read again.
        _, taken = session.together(
            put_owner(owner, lease_seconds),
            (_TAKE, [owner.id, run, row.fence, *(token or (None, None))]),
        )
        for (fence,) in taken:
            return int(fence)


def refuse_if_alive(
    row: RunRow, alive: Alive, session: ServerSession, *, is_later: bool = False
) -> None:
    """Raises `RunBusy` if a run's owner has to be believed alive."""
    if row.owner is None:
        return
    owner = living_owner(row.owner, alive, session, is_later=is_later)
    if owner is not None:
        raise busy(row, owner)


def living_owner(
    identity: str, alive: Alive, session: ServerSession, *, is_later: bool = False
) -> Owner | None:
    """Returns an owner that has to be believed alive; None if it is dead or unknown.

    `is_later` is whether a later attempt of a dispatcher wants its run.
    """
    left = RENEWED_SECONDS if is_later else 0.0
    for *values, leased in session.rows(_OWNER, [identity, left]):
        owner = Owner(*values)
        if is_held(owner, alive, leased=leased):
            return owner
    return None


def put_owner(owner: Owner, lease_seconds: float = LEASE_SECONDS) -> tuple[str, list[object]]:
    """Returns the statement that renews all leases of an owner."""
    values = [owner.id, owner.host, owner.pid, owner.born, lease_seconds]
    return _PUT_OWNER, values


# Runs that wait for a worker, and the workers, in the PostgreSQL store.
#
# Many workers look at the queue at once. Each locks the rows it wants and skips those that another
# one has locked, so none waits for another. Whether an owner on this host is alive cannot be asked
# in SQL, so the owners are read first, and only runs of those found dead, or of none, are claimed.


SETTLED_SECONDS = 5.0
"""How long after a server came back leases that ended meanwhile are left alone.

While the server was away no owner could renew its lease, so all of them may have ended. Those
that live do so within this time; their calls under way would be made again otherwise.
"""

# Owners that are listed, and those of which only their runs are left.
_OWNERS = f"""
SELECT id, host, pid, born, until > {NOW} FROM {{s}}.owners
UNION ALL
SELECT DISTINCT owner, NULL, 0, NULL, false FROM {{s}}.runs
WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {{s}}.owners WHERE id = runs.owner)
"""
# If the answer to a claim is lost, its runs belong to a worker that does not know of them. They
# are marked until the worker takes them, so that its next claim finds them again.
# The lease is renewed only if there is something to claim. A look that wrote would be news for the
# other workers: they would look too, and idle workers would keep each other and the disk busy.
_CLAIMABLE = """
    needs::jsonb <@ $6::jsonb
    AND (owner IS NULL OR owner = ANY ($7::text[]) OR $9 AND owner = $1 AND dispatch = 'claimed')
"""
# The queue may be long: its first runs are found by an index. All others are few.
_CLAIM = f"""
WITH queued AS (
    SELECT id, updated_at FROM {{s}}.runs WHERE queued_at IS NOT NULL AND {_CLAIMABLE}
    ORDER BY queued_at, id LIMIT $8
    FOR NO KEY UPDATE SKIP LOCKED
), others AS (
    SELECT id, updated_at FROM {{s}}.runs
    WHERE id IN (
        SELECT id FROM {{s}}.runs WHERE status = 'running'
        UNION SELECT id FROM {{s}}.runs WHERE due_at <= {NOW} AND status IN ('parked', 'waiting')
        UNION SELECT run FROM {{s}}.inbox JOIN {{s}}.runs ON runs.id = run
              WHERE state = 'answered' AND status = 'waiting'
    ) AND {_CLAIMABLE}
    ORDER BY updated_at, id LIMIT $8
    FOR NO KEY UPDATE SKIP LOCKED
), found AS (
    SELECT id FROM (SELECT * FROM queued UNION ALL SELECT * FROM others) AS claimable
    ORDER BY updated_at, id LIMIT $8
), lease AS (
    INSERT INTO {{s}}.owners (id, host, pid, born, until)
    SELECT $1::text, $2::text, $3::bigint, $4::text, {NOW} + $5::float8
    WHERE EXISTS (SELECT 1 FROM found)
    {RENEW}
), claimed AS (
    UPDATE {{s}}.runs SET owner = $1, dispatch = 'claimed' WHERE id IN (SELECT id FROM found)
    RETURNING {q.RUN}
)
SELECT * FROM claimed ORDER BY updated_at, id
"""
_ENQUEUE = f"""
UPDATE {{s}}.runs SET status = 'queued', reason = '', due_at = NULL, owner = NULL, needs = $2,
                      updated_at = {NOW}
WHERE id = $1
RETURNING {q.tell(Topic.WORK)}
"""
_REGISTER = f"""
INSERT INTO {{s}}.workers (owner, slots, capabilities, started_at) VALUES ($1, $2, $3, {NOW})
ON CONFLICT (owner) DO UPDATE SET slots = excluded.slots, capabilities = excluded.capabilities
RETURNING number
"""
WORKERS = f"""
SELECT number, owners.id, host, pid, born, slots,
       (SELECT count(*) FROM {{s}}.runs WHERE runs.owner = owners.id), capabilities, started_at,
       until > {NOW}
FROM {{s}}.workers JOIN {{s}}.owners ON owners.id = workers.owner ORDER BY number
"""
_FORGET_OWNERS = f"""
DELETE FROM {{s}}.owners WHERE until < {NOW} - $1::float8
AND NOT EXISTS (SELECT 1 FROM {{s}}.runs WHERE runs.owner = owners.id)
"""
_FORGET_WORKERS = """
DELETE FROM {s}.workers WHERE NOT EXISTS (SELECT 1 FROM {s}.owners WHERE id = workers.owner)
"""


class RunQueue:
    """The queue of one store."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._doubt = False
        """Whether the answer to a claim was lost, and runs that it found may still be marked."""

    def claim(
        self, owner: Owner, able: list[str], alive: Alive, limit: int, session: ServerSession
    ) -> list[RunRow]:
        """Gives runs to a worker that can continue, the longest waiting first."""
        # The tables may have been upgraded since this worker was started.
        refuse_newer(session, self._address)
        # Only owners that are known to be dead lose a run: one that has claimed it since is none.
        settled = session.age_seconds >= SETTLED_SECONDS
        dead = [each for each in _dead(alive, session, settled) if each != owner.id]
        was_lost, self._doubt = self._doubt, True
        _, lease = put_owner(owner)
        claimed = session.rows(_CLAIM, [*lease, json.dumps(able), dead, limit, was_lost])
        # Other runs, which have waited for longer, may have used up the limit.
        self._doubt = was_lost and len(claimed) == limit
        return list(map(run_row, claimed))


def enqueue(run: RunId, needs: Sequence[str], alive: Alive, session: ServerSession) -> bool:
    """Hands a run to workers; False if it has ended or a process drives it."""
    with session.transaction():
        row = run_row(session.rows(q.LOCK_RUN, [run])[0])
        if row.status in FINAL or row.owner not in (None, *_dead(alive, session)):
            return False
        session.run(_ENQUEUE, [run, json.dumps(needs)])
    return True


def register(owner: Owner, slots: int, able: list[str], session: ServerSession) -> int:
    """Lists an owner as a worker, and removes those that are long dead; returns its number."""
    *_, ((number,),) = session.together(
        put_owner(owner),
        (_FORGET_OWNERS, [FORGOTTEN_SECONDS]),
        (_FORGET_WORKERS, []),
        (_REGISTER, [owner.id, slots, json.dumps(able)]),
    )
    return int(number)


def _dead(alive: Alive, session: ServerSession, settled: bool = True) -> list[str]:
    """Returns the owners that need not be believed alive; until settled, no lease has ended."""
    return [
        identity
        for identity, host, *others, leased in session.rows(_OWNERS)
        if host is None
        or not is_held(Owner(identity, host, *others), alive, leased=leased or not settled)
    ]
