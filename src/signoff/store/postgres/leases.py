"""Runs that wait for a worker, in the PostgreSQL store.

Many workers look at the queue at once. Each locks the rows it wants and skips those that another
one has locked, so none waits for another. Whether an owner on this host is alive cannot be asked
in SQL, so the owners are read first, and only runs of those found dead, or of none, are claimed.
"""

from __future__ import annotations

import json

from signoff.runtime.store_port import LEASE_SECONDS, Alive, Owner, RunRow
from signoff.store.base import RUN, is_held, run_row
from signoff.store.postgres.connection import ServerAddress, ServerSession
from signoff.store.postgres.schema import refuse_newer

SETTLED_SECONDS = 5.0
"""How long after a server came back leases that ended meanwhile are left alone.

While the server was away no owner could renew its lease, so all of them may have ended. Those
that live do so within this time; their calls under way would be made again otherwise.
"""

# Owners that are listed, and those of which only their runs are left.
_OWNERS = """
SELECT id, host, pid, born, until > {now} FROM {s}.owners
UNION ALL
SELECT DISTINCT owner, NULL, 0, NULL, false FROM {s}.runs
WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {s}.owners WHERE id = runs.owner)
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
        UNION SELECT id FROM {{s}}.runs WHERE due_at <= {{now}} AND status IN ('parked', 'waiting')
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
    SELECT $1::text, $2::text, $3::bigint, $4::text, {{now}} + $5::float8
    WHERE EXISTS (SELECT 1 FROM found)
    ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
                                   born = excluded.born, until = excluded.until
), claimed AS (
    UPDATE {{s}}.runs SET owner = $1, dispatch = 'claimed' WHERE id IN (SELECT id FROM found)
    RETURNING {RUN}
)
SELECT * FROM claimed ORDER BY updated_at, id
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
        lease = [owner.id, owner.host, owner.pid, owner.born, LEASE_SECONDS]
        claimed = session.rows(_CLAIM, [*lease, json.dumps(able), dead, limit, was_lost])
        # Other runs, which have waited for longer, may have used up the limit.
        self._doubt = was_lost and len(claimed) == limit
        return list(map(run_row, claimed))


def _dead(alive: Alive, session: ServerSession, settled: bool) -> list[str]:
    """Returns the owners that need not be believed alive; until settled, no lease has ended."""
    return [
        identity
        for identity, host, *others, leased in session.rows(_OWNERS)
        if host is None
        or not is_held(Owner(identity, host, *others), alive, leased=leased or not settled)
    ]
