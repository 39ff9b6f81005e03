"""Runs that leave a PostgreSQL store or arrive in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from signoff.core.digest import text_digest
from signoff.errors import NameTaken, UnknownName
from signoff.runtime.run_transfer import RunCopy, parse_copy
from signoff.runtime.store_port import RunId
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import ServerConnection, ServerSession
from signoff.store.postgres.leases import NOW
from signoff.store.postgres.queries import stored_text

_STAGE = """
INSERT INTO {s}.arrivals (name, document) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET document = excluded.document
"""
_STAGED = "SELECT document FROM {s}.arrivals WHERE name = $1"
_ADMIT_RUN = """
INSERT INTO {s}.runs (name, workflow, target, definition, description, status, step, iteration,
                      reason, due_at, created_at, updated_at, head, fence, needs)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (name) DO NOTHING RETURNING id
"""
_ADMIT_BLOB = """
WITH text AS (INSERT INTO {s}.blobs (digest, text) VALUES ($2, $3) ON CONFLICT DO NOTHING)
INSERT INTO {s}.blob_uses (run, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING
"""
_ADMIT_COMMIT = "INSERT INTO {s}.journal (run, seq, fence, events) VALUES ($1, $2, 1, $3)"
_ADMIT_ITEM = f"""
INSERT INTO {{s}}.inbox (run, {q.ITEM_COLUMNS.removeprefix("id, ")})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
"""
_ADMIT_LEDGER = """
INSERT INTO {s}.ledger (run, step, agent, model, calls, tokens_in, tokens_out, usd,
                        unknown_tokens, unknown_usd, tokens_cached, unknown_cached)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
_UNSTAGE = "DELETE FROM {s}.arrivals WHERE name = $1"
_FORGET = "DELETE FROM {s}.moved WHERE name = $1"
_LOCK_AT_FENCE = "SELECT name FROM {s}.runs WHERE id = $1 AND fence = $2 FOR UPDATE"
_REQUESTS = "SELECT id, state FROM {s}.inbox WHERE run = $1 ORDER BY id"
_REMEMBER = f"""
INSERT INTO {{s}}.moved (name, target, moved_at) VALUES ($1, $2, {NOW})
ON CONFLICT (name) DO UPDATE SET target = excluded.target, moved_at = excluded.moved_at
"""
MOVED = "SELECT target FROM {s}.moved WHERE name = $1"


class PostgresTransfer:
    """The transfers of one schema."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server

    def stage(self, name: str, document: str) -> None:
        """Stores the document of a run that arrives."""
        self._server.perform(lambda session: session.run(_STAGE, [name, document]))

    def staged(self, name: str) -> str | None:
        """Returns the document of a run that was staged and not admitted yet."""
        rows = self._server.perform(lambda session: session.rows(_STAGED, [name]))
        return str(rows[0][0]) if rows else None

    def admit(self, name: str) -> None:
        """Makes the staged document a run."""
        self._server.perform(partial(self._admit, name))

    def _admit(self, name: str, session: ServerSession) -> None:
        with session.transaction():
            found = session.rows(_STAGED + " FOR UPDATE", [name])
            if not found:
                raise UnknownName("staged run", name)
            self._insert(parse_copy(found[0][0]), session)
            for statement in (_UNSTAGE, _FORGET):
                session.run(statement, [name])

    def _insert(self, copy: RunCopy, session: ServerSession) -> None:
        row, description = copy.row, text_digest(copy.description)
        needs = None if row.needs is None else json.dumps(row.needs)
        values = [*row[1:5], bytes.fromhex(description), *row[5:14], needs]
        values[8] = stored_text(row.reason)
        created = session.rows(_ADMIT_RUN, values)
        if not created:
            raise NameTaken(f"run {row.name!r} already exists in this store; delete it first")
        ((run,),) = created
        texts = {description: copy.description, **copy.blobs}
        rows: dict[str, Sequence[Sequence[object]]] = {
            _ADMIT_BLOB: [(bytes.fromhex(key), stored_text(text)) for key, text in texts.items()],
            _ADMIT_COMMIT: copy.journal,
            _ADMIT_ITEM: [[_cell(each) for each in item[1:]] for item in copy.items],
            _ADMIT_LEDGER: [[_cell(each) for each in entry] for entry in copy.ledger],
            q.KEEP_LATE: [(*key, stored_text(outcome)) for key, outcome in copy.late.items()],
        }
        for statement, each in rows.items():
            session.run_many(statement, [(run, *values) for values in each])

    def retire(
        self, run: RunId, fence: int, requests: Sequence[tuple[int, str]], target: str
    ) -> bool:
        """Deletes a run that is staged elsewhere, and remembers where it went."""
        return self._server.perform(partial(self._retire, run, fence, list(requests), target))

    def _retire(
        self,
        run: RunId,
        fence: int,
        requests: list[tuple[int, str]],
        target: str,
        session: ServerSession,
    ) -> bool:
        with session.transaction():
            # An answer locks the run's row too, so none can arrive after the requests were read.
            found = session.rows(_LOCK_AT_FENCE, [run, fence])
            if not found or session.rows(_REQUESTS, [run]) != requests:
                return False
            for statement in (q.LOCK_BLOBS, q.DELETE_BLOBS, *q.DELETE_RUN):
                session.run(statement, [] if statement is q.LOCK_BLOBS else [run])
            session.run(_REMEMBER, [found[0][0], target])
        return True

    def moved(self, name: str) -> str | None:
        """Returns where a run of this name went."""
        rows = self._server.perform(lambda session: session.rows(MOVED, [name]))
        return str(rows[0][0]) if rows else None


def _cell(value: object) -> object:
    return stored_text(value) if isinstance(value, str) else value
