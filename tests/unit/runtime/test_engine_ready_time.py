import pytest

from signoff.core.outcome import Status
from signoff.runtime.engine import ready_at
from signoff.runtime.store_port import RunRow
from signoff.store.sqlite import MemoryStore
from tests.store_suite.journal_writer import JournalWriter, new_request

NOW = 1000.0


@pytest.fixture
def row() -> RunRow:
    store = MemoryStore()
    JournalWriter(store, "one").begin(needs=(), status=Status.QUEUED, release=True, at=900.0)
    return store.row("one")


def test_a_queued_run_waits_since_it_was_queued(row: RunRow) -> None:
    """The time of the hand-over is the start, whichever process drives the run in the end."""
    assert ready_at(row, [], NOW) == 900.0


@pytest.mark.parametrize(
    ("status", "due_at", "expected"),
    [
        (Status.PARKED, 950.0, 950.0),
        (Status.WAITING, 950.0, 950.0),
        (Status.PARKED, 1050.0, None),
        (Status.WAITING, None, None),
        (Status.RUNNING, None, None),
        (Status.INTERRUPTED, None, None),
    ],
)
def test_only_a_run_that_could_continue_has_waited_for_a_worker(
    row: RunRow, status: Status, due_at: float | None, expected: float | None
) -> None:
    """A run that someone resumes early, or after a crash, says nothing about the workers."""
    assert ready_at(row._replace(status=status, due_at=due_at), [], NOW) == expected


def test_an_answer_makes_a_waiting_run_ready() -> None:
    """Open requests have no time, and of several answers the first one counts."""
    store = MemoryStore()
    items = [new_request(f"ask#{number}") for number in range(3)]
    writer = JournalWriter(store, "one")
    writer.begin(needs=(), opened=items, status=Status.WAITING, release=True)
    for item, at in zip(store.items("one"), (980.0, 970.0), strict=False):
        store.answer(item.id, '{"value": "yes"}', "ann", at, item.digest)

    found = [store.item(number) for number in (1, 2, 3)]

    assert ready_at(store.row("one"), found, NOW) == 970.0


def test_a_run_that_was_never_handed_over_waits_for_no_worker(row: RunRow) -> None:
    """Someone answered it and resumed it a day later: no worker was slow."""
    assert ready_at(row._replace(needs=None), [], NOW) is None
