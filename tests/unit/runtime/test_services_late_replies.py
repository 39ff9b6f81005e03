import pytest

from signoff.core.errors import WriteFailed
from signoff.runtime.services import LateReplies, LateReply
from signoff.runtime.store_port import RunId
from signoff.store.sqlite import MemoryStore
from signoff.testing import WrappedStore

ONE, TWO = RunId(1), RunId(2)


class Fragile(WrappedStore):
    """A store whose server is lost after the first late reply."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.left = 1

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        if self.left == 0:
            raise WriteFailed("the server cannot be reached")
        self.left -= 1
        super().keep_late(run, effect, attempt, outcome)


def test_the_replies_of_one_run_are_stored_once() -> None:
    """Those of other runs are stored when these continue."""
    replies, store = LateReplies(), MemoryStore()
    replies.add(ONE, LateReply("ask", 1, "first"))
    replies.add(TWO, LateReply("ask", 1, "other"))

    replies.move_to(store, ONE)

    assert store.late(ONE) == {("ask", 1): "first"}
    assert store.late(TWO) == {}
    other = MemoryStore()
    replies.move_to(other, ONE)
    assert other.late(ONE) == {}


def test_replies_that_the_store_does_not_take_are_kept_for_the_next_time() -> None:
    """The server may be lost again before it has all of them."""
    replies, store = LateReplies(), Fragile()
    for number in (1, 2, 3):
        replies.add(ONE, LateReply("ask", number, f"reply {number}"))

    with pytest.raises(WriteFailed):
        replies.move_to(store, ONE)
    store.left = 2
    replies.move_to(store, ONE)

    assert store.late(ONE) == {("ask", number): f"reply {number}" for number in (1, 2, 3)}
