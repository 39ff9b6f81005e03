"""The database of a workflow and its steps: reads happen now, changes together at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signoff.errors import NotAllowed, StepFailed, UsageError
from signoff.guarded_db.connections import Connections
from signoff.guarded_db.impact import Impact
from signoff.guarded_db.postconditions import Postcondition
from signoff.guarded_db.sources import Source
from signoff.guarded_db.staging import Marker, RolledBack, Unconfirmed
from signoff.guarded_db.verdict import Params
from signoff.guarded_db.view import Queries, ReadOnlyView


class GuardedDatabase:
    """The database of one workflow; its steps share the connections."""

    def __init__(
        self,
        source: Source,
        *,
        address: str,
        backups: str | None,
        keep: int,
    ) -> None:
        """`address` is for backups, which need one even if a function returns connections."""
        self._address = address
        self._backups = Path(backups) if backups else None
        self._keep = keep
        self._connections = Connections(source)

    def begin(self) -> StepSession:
        """Returns the database for one attempt at a step."""
        return StepSession(self._connections)

    def back_up(self, reason: str, *, reuse: bool) -> str:
        """Returns the id of a new backup; `reuse` takes an existing one with the same reason."""
        from signoff.guarded_db.backups import Origin
        from signoff.guarded_db.upkeep import Upkeep

        upkeep = Upkeep(self._address, backups=self._backups, keep=self._keep)
        existing = upkeep.backups() if reuse else ()
        found = next((backup.id for backup in existing if backup.reason == reason), None)
        return found or upkeep.backup(reason, origin=Origin.RUN).id


class StepSession(Queries):
    """The database during one attempt at a step."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._client = connections.lease()
        super().__init__(self._client.query)
        self._staged = self._client.staged()
        self._required: Marker | None = None

    def close(self) -> None:
        """Ends the use of the shared connection."""
        self._connections.release()

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement to the step's work; raises `NotAllowed` if it may not run."""
        self._staged.stage(sql, params)

    def view(self) -> ReadOnlyView:
        """Returns a read-only view."""
        return self._client.read_only()

    def take(self, statements: Sequence[Sequence[Any]]) -> None:
        """Stages the statements of a worker, each as `[sql]` or `[sql, params]`.

        A refused statement is the worker's mistake, which a retry can fix: `StepFailed`.
        """
        if not isinstance(statements, list | tuple):
            raise StepFailed(f"{statements!r:.200} is not a list of statements: [[sql, params]]")
        for each in statements:
            try:
                self.stage(*_statement(each))
            except (NotAllowed, UsageError) as error:
                raise StepFailed(str(error)) from error

    def committed(self, keys: Sequence[tuple[str, str, int, str]]) -> list[str | None]:
        """Returns the note of each work that was committed before, else None."""
        return self._client.notes([Marker(*key) for key in keys])

    def require(self, key: tuple[str, str, int, str]) -> None:
        """Makes `commit` raise `StoreError` if the database does not have this earlier work."""
        self._required = Marker(*key)

    def committed_items(self, key: tuple[str, str, int, str]) -> Sequence[str]:
        """Returns the items of a step that were committed before."""
        return self._client.committed_items(Marker(*key))

    def measure(self) -> list[dict[str, Any]]:
        """Returns the changes that a human has to confirm, as JSON values."""
        with self._connections.writer() as writer:
            measured = self._staged.measure(by=writer)
        if isinstance(measured, RolledBack):
            raise StepFailed(str(measured))
        return [impact.to_json() for impact in measured]

    def commit(
        self,
        proofs: Sequence[tuple[str, Callable[[ReadOnlyView], bool], str, bool]],
        key: tuple[str, str, int, str],
        note: str = "",
        confirmed: Sequence[Mapping[str, Any]] = (),
    ) -> str | None:
        """Applies everything in one transaction; raises `StepFailed` if a proof fails.

        Returns the note in the database: an earlier attempt's if that was committed first. None
        means that nothing was changed, because a change has to be confirmed.
        """
        conditions = [Postcondition(*proof) for proof in proofs]
        impacts = [Impact(**each) for each in confirmed]
        with self._connections.writer() as writer:
            applied = self._staged.apply(
                conditions,
                marker=Marker(*key),
                note=note,
                confirmed=impacts,
                after=self._required,
                by=writer,
            )
        if isinstance(applied, RolledBack):
            raise StepFailed(str(applied))
        if isinstance(applied, Unconfirmed):
            return None
        return self.committed([key])[0] or note if applied.already else note


def _statement(entry: Any) -> tuple[str, Params]:
    match entry:
        case str():
            return entry, ()
        case [str() as sql]:
            return sql, ()
        case [str() as sql, (list() | tuple() | dict()) as params]:
            return sql, params
        case _:
            raise StepFailed(f"{entry!r:.200} is not a statement: [sql, params]")
