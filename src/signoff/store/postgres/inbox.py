"""Requests to humans in the PostgreSQL store, and how its parts send their statements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from signoff.core.requests import ItemState
from signoff.errors import StoreDamaged, UnknownName
from signoff.runtime.store_port import InboxItem, InboxLine
from signoff.store.commits import replace_surrogates
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import (
    PATIENCE_SECONDS,
    Row,
    ServerAddress,
    ServerConnection,
    ServerSession,
)
from signoff.store.postgres.queries import is_marked, restored_text, stored_text
from signoff.store.rows import inbox_item, inbox_lines, refuse_answer, request_id


class ServerTables:
    """Statements about the tables of one schema."""

    def __init__(self, address: ServerAddress, server: ServerConnection) -> None:
        self._address = address
        self._server = server

    def _sql(self, statement: str) -> str:
        return q.in_schema(statement, self._address.schema)

    def _rows(self, statement: str, *values: object) -> list[Row]:
        return self._server.perform(lambda session: session.rows(self._sql(statement), values))

    def _run(self, statement: str, *values: object, patience: float = PATIENCE_SECONDS) -> None:
        self._server.perform(lambda session: session.run(self._sql(statement), values), patience)

    def _one(self, statement: str, *values: object) -> Row:
        found = self._rows(statement, *values)
        if not found:
            raise self._damaged("it lacks data that a run refers to")
        return found[0]

    def _damaged(self, problem: str) -> StoreDamaged:
        return StoreDamaged(f"{self._address.label} is damaged: {problem}; restore a backup")


class PostgresInbox(ServerTables):
    """The inbox of a store."""

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        states = [each.value for each in state]
        return list(map(_item, self._rows(q.ITEMS, states, run)))

    def waiting(self) -> list[InboxLine]:
        """Returns what a list shows of every open request, oldest first."""
        lines = inbox_lines(self._rows(q.WAITING))
        for n, line in enumerate(lines):
            if is_marked(line.prompt):
                lines[n] = line._replace(prompt=restored_text(line.prompt))
        return lines

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        return self._server.perform(partial(self._item, number))

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores the answer to an open request; raises `InvalidAnswer` or `StaleApproval`."""
        values = (answer, replace_surrogates(by), at)
        return self._server.perform(partial(self._answer, number, values, digest))

    def _answer(
        self, number: int, values: tuple[str, str, float], digest: str, session: ServerSession
    ) -> InboxItem:
        answer, by, at = values
        stored = [request_id(number), stored_text(answer), stored_text(by), at, digest]
        while True:
            for *changed, _told in session.rows(self._sql(q.ANSWER), stored):
                return _item(changed)
            item = self._item(number, session)
            # When the connection was lost after the answer was stored, it is our own that is found.
            if (item.answer, item.answered_by, item.answered_at) == values:
                return item
            # A request that was opened only now is not refused, and is found by the next try.
            refuse_answer(item, digest)

    def _item(self, number: int, session: ServerSession) -> InboxItem:
        for values in session.rows(self._sql(q.ITEM), [request_id(number)]):
            return _item(values)
        open_items = session.rows(self._sql(q.OPEN_NUMBERS))
        raise UnknownName("request", f"#{number}", [f"#{each}" for (each,) in open_items])


def _item(values: Sequence[object]) -> InboxItem:
    item = inbox_item(values)
    return item._replace(
        prompt=restored_text(item.prompt),
        form=restored_text(item.form),
        answer=restored_text(item.answer),
        answered_by=restored_text(item.answered_by),
    )
