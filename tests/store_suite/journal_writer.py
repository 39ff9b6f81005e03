"""What the tests of a store share: its fixtures, and a writer that acts like a runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.runtime.store_port import Commit, CommitResult, NewItem, NewRun, Owner, RunId, Store

ANN = Owner("ann", "host-1", 101, "birth-1")
BOB = Owner("bob", "host-2", 202, "birth-2")
START = 1_700_000_000.0

NewStore = Callable[[], Store]


class StoreFixture:
    """The fixtures that every part of the suite uses."""

    @pytest.fixture
    def new_store(self) -> NewStore:
        """Returns a function that opens a new, empty store; the store's author provides it."""
        raise NotImplementedError("add a fixture `new_store` to your test class (see StoreSuite)")

    @pytest.fixture
    def store(self, new_store: NewStore) -> Iterator[Store]:
        """Yields one empty store, and closes it at the end."""
        store = new_store()
        yield store
        store.close()


class JournalWriter:
    """Writes commits of one run; knows its head and its fence."""

    def __init__(self, store: Store, name: str = "run", *, owner: Owner = ANN) -> None:
        self.store = store
        self.name = name
        self.owner = owner
        self.run = RunId(0)
        self.head = 0
        self.fence = 1

    def first(self, **changes: Any) -> Commit:
        """Returns the commit that creates the run."""
        new = NewRun(
            name=self.name,
            workflow="review",
            target="pkg:FLOW",
            definition="d1",
            description='{"name": "review"}',
            created_at=START,
            owner=self.owner.id,
            needs=changes.pop("needs", None),
        )
        return self.next(new=new, **changes)

    def next(self, **changes: Any) -> Commit:
        """Returns a commit that builds on the last accepted one."""
        values: dict[str, Any] = {
            "run": self.run,
            "fence": self.fence,
            "head": self.head,
            "events": f'[{{"e":"{self.name}-{self.head + 1}"}}]',
            "status": Status.RUNNING,
            "step": "draft",
            "iteration": 1,
            "reason": "",
            "due_at": None,
            "at": START + self.head + 1,
        }
        return Commit(**{**values, **changes})

    def begin(self, **changes: Any) -> CommitResult:
        """Creates the run."""
        return self.put(self.first(**changes))

    def append(self, **changes: Any) -> CommitResult:
        """Adds one commit."""
        return self.put(self.next(**changes))

    def put(self, commit: Commit) -> CommitResult:
        """Passes one commit to the store and updates the head."""
        (result,) = self.store.commit([commit])
        self.note(result)
        return result

    def note(self, result: CommitResult) -> None:
        """Updates the head and the run after a commit, as a runner does."""
        if result.accepted:
            self.head += 1
            self.run = result.run or self.run

    def wait(self, **changes: Any) -> CommitResult:
        """Releases the run until a human answers."""
        return self.append(status=Status.WAITING, release=True, **changes)

    def events(self) -> list[str]:
        """Returns the events of the run's journal in the store."""
        return [row.events for row in self.store.journal(self.run)]


def new_request(effect: str = "ask#1", **changes: Any) -> NewItem:
    """Returns a request to a human."""
    values: dict[str, Any] = {
        "effect": effect,
        "kind": "question",
        "prompt": "Ship it?",
        "form": '{"kind":"question","prompt":"Ship it?"}',
        "digest": "shown",
        "step": "draft",
        "opened_at": START,
        "deadline": None,
    }
    return NewItem(**{**values, **changes})


def start_run(store: Store, name: str = "run", **changes: Any) -> JournalWriter:
    """Creates a run and returns its writer."""
    writer = JournalWriter(store, name)
    writer.begin(**changes)
    return writer
