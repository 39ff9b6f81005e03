import pytest

from signoff.store.sqlite import MemoryStore
from tests.store_suite import StoreSuite
from tests.store_suite.journal_writer import NewStore


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def new_store(self) -> NewStore:
        return MemoryStore
