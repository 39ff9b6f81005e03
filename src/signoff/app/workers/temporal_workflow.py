"""The Temporal workflow of a run: a few lines that never change.

It knows a run's name and how long to wait, and nothing else. Temporal replays it, so a change
would break the workflows that are open: add a new one under another name instead.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

ENDED = -1.0
"""The activity's result if nothing is to be done until someone wakes the run."""

LONGEST_DRIVE = timedelta(days=365)
"""A run may take any time; a dead worker is noticed by its missing heartbeat."""

RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=1.5,
    maximum_interval=timedelta(seconds=10),
)
"""Without a limit: the store makes any number of attempts safe."""


@workflow.defn(name="signoff-run-1")
class DriveRun:
    """Has a run driven, waits until it may continue, and repeats that until it ends."""

    def __init__(self) -> None:
        self._news = False

    @workflow.signal(name="look")
    def look(self) -> None:
        """The run may continue."""
        self._news = True

    @workflow.run
    async def run(self, run: str, queue: str, heartbeat_seconds: float) -> None:
        """Drives the run on a task queue of workers that can do what it needs."""
        while True:
            self._news = False
            pause: float | None = await workflow.execute_activity(
                "signoff-drive",
                run,
                task_queue=queue,
                start_to_close_timeout=LONGEST_DRIVE,
                heartbeat_timeout=timedelta(seconds=heartbeat_seconds),
                retry_policy=RETRY,
                result_type=float | None,  # type: ignore[arg-type]  # it takes any annotation
            )
            if pause == ENDED and not self._news:
                return
            try:
                timeout = None if pause is None else max(pause, 0.0)
                await workflow.wait_condition(lambda: self._news, timeout=timeout)
            except TimeoutError:
                pass
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[run, queue, heartbeat_seconds])
