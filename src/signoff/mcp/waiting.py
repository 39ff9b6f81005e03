"""Waits for news of a run that are worth a call of an agent."""

from __future__ import annotations

from anyio.to_thread import run_sync

from signoff.app.news import MOVING, RunNews, news
from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.core.outcome import Status

LOOK_SECONDS = 0.25
"""How often to look for commits of other processes."""


async def wait_for_news(project: Project, run: str, after: int, seconds: float) -> RunNews:
    """Returns what changed since commit `after`, once the run is at rest or the time is over.

    While a run is driven there is always something new, and each look would cost the agent a call.
    """
    clock = project.clock
    until = clock.monotonic() + seconds
    while not await run_sync(_needs_attention, project, run, after):
        left = until - clock.monotonic()
        if left <= 0:
            break
        await clock.sleep(min(LOOK_SECONDS, left))
    return await run_sync(news, project, run, after)


def _needs_attention(project: Project, run: str, after: int) -> bool:
    row = current_row(project, project.store.row(run))
    if row.status in MOVING:
        return False
    # A run that waits continues by itself: after an answer, or at its time.
    return row.head > after or row.status not in (Status.WAITING, Status.PARKED)
