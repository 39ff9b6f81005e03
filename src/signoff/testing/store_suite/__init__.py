"""The tests that every store has to pass, for authors of stores.

Derive a class from `StoreSuite` in a test module and add one fixture that opens new,
empty stores:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def new_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "runs")
"""

from __future__ import annotations

from signoff.testing.store_suite.concurrency import ConcurrencyTests
from signoff.testing.store_suite.inbox import InboxTests
from signoff.testing.store_suite.journal import JournalTests, ListingTests
from signoff.testing.store_suite.leases import LeaseTests
from signoff.testing.store_suite.news import NewsTests
from signoff.testing.store_suite.run_queue import QueueTests
from signoff.testing.store_suite.spend import SpendTests
from signoff.testing.store_suite.texts import TextTests
from signoff.testing.store_suite.upkeep import UpkeepTests


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
