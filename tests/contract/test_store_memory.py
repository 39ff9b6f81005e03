import pytest

from signoff.store.memory import MemoryStore
from signoff.testing import StoreSuite
from signoff.testing.store_suite.journal_writer import NewStore


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def new_store(self) -> NewStore:
        return MemoryStore
