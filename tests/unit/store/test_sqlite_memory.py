import gc
import threading

from signoff.store.connection import Transaction
from signoff.store.sqlite import MemoryStore
from tests.patience import PATIENCE_SECONDS


def test_a_store_that_is_dropped_stays_open_for_a_thread_that_reads() -> None:
    """A program that ended while its heartbeat looked for requests to cancel crashed."""
    stores = [MemoryStore()]
    reading, released = threading.Event(), threading.Event()
    found: list[object] = []

    def read(connection: Transaction) -> None:
        with connection as db:
            reading.set()
            assert released.wait(PATIENCE_SECONDS)
            found.extend(db.execute("SELECT 1").fetchone())

    def drop() -> None:
        stores.clear()
        gc.collect()

    reader = threading.Thread(target=read, args=(stores[0]._read,))
    dropper = threading.Thread(target=drop)
    reader.start()
    assert reading.wait(PATIENCE_SECONDS)
    dropper.start()
    # Long enough to close the connection, if nothing prevents it.
    dropper.join(0.2)
    released.set()
    reader.join(PATIENCE_SECONDS)
    dropper.join(PATIENCE_SECONDS)

    assert found == [1]
