"""The suite for stores, on the store of this package."""

from pathlib import Path

import pytest
from signoff_audited import AuditedStore

from tests.store_suite import StoreSuite
from tests.store_suite.journal_writer import NewStore


class TestAuditedStore(StoreSuite):
    """Every test that signoff's own stores pass."""

    @pytest.fixture
    def new_store(self, tmp_path: Path) -> NewStore:
        return lambda: AuditedStore(tmp_path / "runs.db")
