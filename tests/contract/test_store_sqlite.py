from pathlib import Path

import pytest

from signoff.store.sqlite import SqliteStore
from tests.store_suite import StoreSuite
from tests.store_suite.journal_writer import NewStore


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> NewStore:
        return lambda: SqliteStore(tmp_path / "signoff.db")
