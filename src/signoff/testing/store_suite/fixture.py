"""Opens the store under test and closes it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from signoff.runtime.store_port import Store

NewStore = Callable[[], Store]


class StoreFixture:
    """What every part of the suite stands on."""

    @pytest.fixture
    def new_store(self) -> NewStore:
        """Returns a function that opens a new, empty store; the author of a store provides it."""
        raise NotImplementedError("give your class a fixture `new_store` that opens empty stores")

    @pytest.fixture
    def store(self, new_store: NewStore) -> Iterator[Store]:
        """Gives one empty store, closed at the end."""
        opened = new_store()
        yield opened
        opened.close()
