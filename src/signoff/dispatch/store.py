"""The dispatcher that is used without any other: workers find runs in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from signoff.runtime.ports import Drive, QueueNeeds


class StoreDispatcher:
    """Has nothing to do: a run's row says that it is queued, answered or due."""

    def __init__(self, url: str = "", scope: str = "") -> None:
        """Takes what every dispatcher is opened with."""

    async def submit(self, run: str, needs: Sequence[str]) -> None:
        """Does nothing: workers look for queued runs."""

    async def wake(self, run: str, needs: Sequence[str]) -> None:
        """Does nothing: workers look for answers."""

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:
        """Does nothing: workers look for what is due."""

    async def check(self) -> str:
        """Returns where workers look."""
        return "workers look into the database"

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:  # noqa: ARG002  # the port prescribes them
        """Waits: no run comes from elsewhere."""
        await asyncio.Event().wait()
