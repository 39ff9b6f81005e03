"""Replies that could not be recorded: paid for, and kept until the run continues.

The store keeps them next to the journal. While it cannot be written, for example because its
server is away, they stay in memory: a worker waits for the server and then continues its runs.
"""

from __future__ import annotations

from typing import NamedTuple

from signoff.runtime.store_port import RunId, Store


class LateReply(NamedTuple):
    """What one attempt at an effect returned, as `Store.keep_late` stores it."""

    effect: str
    attempt: int
    outcome: str


class LateReplies:
    """The late replies of a process that are not in the store yet."""

    def __init__(self) -> None:
        self._replies: dict[RunId, list[LateReply]] = {}

    def add(self, run: RunId, reply: LateReply) -> None:
        """Keeps a reply in memory."""
        self._replies.setdefault(run, []).append(reply)

    def move_to(self, store: Store, run: RunId) -> None:
        """Stores the replies of a run; those that the store does not take stay here.

        Its last commit may have been applied although the answer was lost. A reply that the
        journal has is not looked up among the late ones, so nothing counts twice.
        """
        replies = self._replies.get(run, [])
        while replies:
            store.keep_late(run, *replies[0])
            del replies[0]
        self._replies.pop(run, None)
