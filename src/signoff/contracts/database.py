"""A step's work on the user's database: read at once, changed all together when it is proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signoff.contracts.connections import Connections
from signoff.contracts.db.confirmations import DeleteConfirmation
from signoff.contracts.db.ports import Row
from signoff.contracts.db.postconditions import Postcondition
from signoff.contracts.db.staging import Marker, RolledBack
from signoff.contracts.db.verdict import Params
from signoff.contracts.db.view import ReadOnlyView
from signoff.errors import NotAllowed, StepFailed, UsageError


@dataclass(frozen=True)
class Proof:
    """A postcondition that is to hold inside the transaction."""

    name: str
    holds: Callable[[ReadOnlyView], bool]
    error: str
    """What to say when it does not."""

    def condition(self) -> Postcondition:
        """Returns it as the database checks it."""
        return Postcondition(self.name, self.holds, self.error)


class Tables(Protocol):
    """The database as commands and conditions are given it; conditions are refused to `stage`."""

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows a SELECT gives, each by column name."""
        ...

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None when there is none."""
        ...

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None when there is no row."""
        ...

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Tells whether there is any row."""
        ...

    def stage(self, sql: str, params: Params = (), *, confirm: object = None) -> None:
        """Adds a statement to the step's work."""
        ...


class StepDatabase:
    """The database as one attempt at a step sees it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._client = connections.reader()
        self._staged = self._client.staged()

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows a SELECT gives, each by column name."""
        return self._client.query(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None when there is none."""
        return self.view().one(sql, params)

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None when there is no row."""
        return self.view().value(sql, params)

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Tells whether there is any row."""
        return self.view().exists(sql, params)

    def stage(self, sql: str, params: Params = (), *, confirm: object = None) -> None:
        """Adds a statement to the step's work; one that is not allowed is refused here."""
        self._staged.stage(sql, params, confirm=confirm)

    def get_delete_confirmation(
        self, table: str, where: str, params: Params = ()
    ) -> DeleteConfirmation:
        """Returns a token for deleting these rows, good once."""
        return self._client.get_delete_confirmation(table, where, params)

    def view(self) -> ReadOnlyView:
        """Returns a view through which nothing can be changed."""
        return self._client.read_only()

    def take(self, statements: Sequence[Sequence[Any]]) -> None:
        """Adds what a worker outside handed in: `[sql]` or `[sql, params]` each.

        One that is refused is the worker's fault, who may do better: `StepFailed`.
        """
        if not isinstance(statements, list | tuple):
            raise StepFailed(f"{statements!r:.200} is no list of statements; give [[sql, params]]")
        for each in statements:
            try:
                self.stage(*_statement(each))
            except (NotAllowed, UsageError) as error:
                raise StepFailed(str(error)) from error

    def kept(self, marker: Marker) -> str | None:
        """Returns what was kept of a step whose work was committed before, if it was."""
        return self._client.noted(marker)

    def commit(self, proofs: Sequence[Proof], marker: Marker, keep: str = "") -> str:
        """Applies everything in one transaction; raises `StepFailed` when a proof fails.

        Returns what is kept beside the work: of an earlier attempt, where one came first.
        """
        conditions = [proof.condition() for proof in proofs]
        with self._connections.writer() as writer:
            done = self._staged.apply(conditions, marker=marker, note=keep, by=writer)
        if isinstance(done, RolledBack):
            raise StepFailed(str(done))
        return self.kept(marker) or keep if done.already else keep


def _statement(given: Any) -> tuple[str, Params]:
    match given:
        case str():
            return given, ()
        case [str() as sql]:
            return sql, ()
        case [str() as sql, (list() | tuple() | dict()) as params]:
            return sql, params
        case _:
            raise StepFailed(f"{given!r:.200} is no statement; give [sql, params]")
