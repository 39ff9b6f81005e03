"""The promises every store keeps, as tests any author of a store can run.

Derive a class from `StoreSuite` in a test module and give it one fixture that opens new,
empty stores:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def new_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "runs")
"""

from __future__ import annotations

from signoff.testing.store_suite.inbox import InboxPromises
from signoff.testing.store_suite.journal import JournalPromises
from signoff.testing.store_suite.leases import LeasePromises
from signoff.testing.store_suite.listing import ListingPromises
from signoff.testing.store_suite.sharing import SharingPromises
from signoff.testing.store_suite.spend import SpendPromises
from signoff.testing.store_suite.texts import TextPromises


class StoreSuite(
    JournalPromises,
    ListingPromises,
    InboxPromises,
    LeasePromises,
    SpendPromises,
    TextPromises,
    SharingPromises,
):
    """All of them."""
