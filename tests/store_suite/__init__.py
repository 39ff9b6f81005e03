"""The tests that every store has to pass, for authors of stores.

Derive a class from `StoreSuite` in a test module and add one fixture that opens new,
empty stores:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def new_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "runs")
"""

from __future__ import annotations

from tests.store_suite.concurrency import ConcurrencyTests
from tests.store_suite.inbox import InboxTests
from tests.store_suite.journal import JournalTests, ListingTests
from tests.store_suite.leases import LeaseTests
from tests.store_suite.news import NewsTests
from tests.store_suite.run_queue import QueueTests
from tests.store_suite.spend import SpendTests
from tests.store_suite.texts import TextTests
from tests.store_suite.upkeep import UpkeepTests


class StoreSuite(
    JournalTests,
    ListingTests,
    NewsTests,
    InboxTests,
    LeaseTests,
    QueueTests,
    SpendTests,
    TextTests,
    UpkeepTests,
    ConcurrencyTests,
):
    """All tests of a store."""
