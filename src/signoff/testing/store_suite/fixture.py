"""Opens the store under test and closes it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from signoff.runtime.store_port import Store

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
