from pathlib import Path

import pytest

from signoff.store.sqlite import SqliteStore
from signoff.testing import StoreSuite
from signoff.testing.store_suite.journal_writer import NewStore


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> NewStore:
        return lambda: SqliteStore(tmp_path / "signoff.db")
