"""The port to a dispatcher: what brings runs to workers.

A dispatcher decides where and when a run is driven, and never what happened: that is in the
journal. It may lose, repeat, delay or reorder anything. A worker drives a run only if the store
lets it, and looks into the store by itself from time to time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from signoff.errors import OperatorError
from signoff.runtime.store_port import DispatchToken


class DispatcherUnavailable(OperatorError):  # noqa: N818  # named as the errors of the tree are
    """What brings runs to workers cannot be reached; they stay queued."""


class Rest(NamedTuple):
    """How a run came to rest, as far as a dispatcher has to know."""

    seconds: float | None = None
    """How long until it continues by itself; None if that depends on a human."""
    ended: bool = False
    """Whether nothing is to be done until someone wakes it."""


Drive = Callable[[str, DispatchToken | None], Awaitable[Rest]]
"""Drives a run by name until it rests; raises if this worker cannot, and another one should."""

QueueNeeds = Callable[[], Sequence[Sequence[str]]]
"""Returns what runs need that this worker can drive: one sorted list for each kind of run."""


class Dispatcher(Protocol):
    """Brings runs to workers that can do what the runs need.

    The first three say that a run may continue; each may be called again, or too early.
    """

    async def submit(self, run: str, needs: Sequence[str]) -> None:
        """A run was handed over."""
        ...

    async def wake(self, run: str, needs: Sequence[str]) -> None:
        """A run that rested may continue, perhaps because it was answered."""
        ...

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:
        """A run continues by itself at a time, in seconds since 1970."""
        ...

    async def check(self) -> str:
        """Returns where it is; raises `DispatcherUnavailable` if it cannot be reached."""
        ...

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        """Lets this worker drive runs, until it is cancelled."""
        ...
