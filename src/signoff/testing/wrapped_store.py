"""A store around another one, as a base for stores that misbehave on purpose."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.core.outcome import Status
from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import (
    Alive,
    Commit,
    CommitResult,
    InboxItem,
    InboxLine,
    JournalRow,
    Owner,
    RunId,
    RunRow,
    Store,
    StoredRun,
)


class WrappedStore:
    """Passes every call on; override the ones that should count, fail or be slow."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def reopen(self) -> Store:
        """Opens the store inside once more, unwrapped."""
        return self.inner.reopen()

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Passes it on."""
        return self.inner.commit(commits, wait=wait)

    def load(self, name: str) -> StoredRun:
        """Passes it on."""
        return self.inner.load(name)

    def row(self, name: str) -> RunRow:
        """Passes it on."""
        return self.inner.row(name)

    def rows(
        self, *, status: Sequence[Status] = (), due_before: float | None = None, limit: int = -1
    ) -> list[RunRow]:
        """Passes it on."""
        return self.inner.rows(status=status, due_before=due_before, limit=limit)

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Passes it on."""
        return self.inner.journal(run, after)

    def description(self, run: RunId) -> str:
        """Passes it on."""
        return self.inner.description(run)

    def blob(self, digest: str) -> str:
        """Passes it on."""
        return self.inner.blob(digest)

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Passes it on."""
        return self.inner.take(run, owner, now, alive)

    def beat(self, owner: Owner, until: float) -> None:
        """Passes it on."""
        self.inner.beat(owner, until)

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Passes it on."""
        return self.inner.cancels(owner)

    def leave(self, owner: Owner) -> None:
        """Passes it on."""
        self.inner.leave(owner)

    def owner(self, identity: str) -> Owner | None:
        """Passes it on."""
        return self.inner.owner(identity)

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Passes it on."""
        self.inner.ask_cancel(run, why)

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Passes it on."""
        self.inner.adopt(run, definition, description)

    def items(self, run: str | None = None, *, state: Sequence[str] = ("open",)) -> list[InboxItem]:
        """Passes it on."""
        return self.inner.items(run, state=state)

    def waiting(self) -> list[InboxLine]:
        """Passes it on."""
        return self.inner.waiting()

    def item(self, number: int) -> InboxItem:
        """Passes it on."""
        return self.inner.item(number)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Passes it on."""
        return self.inner.answer(number, answer, by, at, digest)

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Passes it on."""
        return self.inner.ledger(run)

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Passes it on."""
        self.inner.keep_late(run, effect, attempt, outcome)

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Passes it on."""
        return self.inner.late(run)

    def close(self) -> None:
        """Passes it on."""
        self.inner.close()
