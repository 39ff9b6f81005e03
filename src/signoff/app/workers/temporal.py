"""Temporal as the dispatcher: placement, timers and failover by an engine that teams operate.

Each run has one workflow (`temporal_workflow.py`), which has it driven by an activity. Temporal
learns the run's name, when to look again, and the capabilities in the name of the task queue. The
activity runs on the loop of the worker's engine; this client has a thread and a loop of its own,
so a handler that blocks the engine's loop does not stop the heartbeat.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from temporalio import activity
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from signoff.app.workers.temporal_workflow import ENDED, DriveRun
from signoff.core.errors import ConfigError, RunBusy, SignoffError, StoreBusy, WriteFailed
from signoff.runtime.ports import DispatcherUnavailable, Drive, QueueNeeds, Rest
from signoff.runtime.store_port import DispatchToken

HEARTBEAT_SECONDS = 5.0
"""How long a worker may be silent before its runs go to another one; `?heartbeat=2` changes it."""

NEW_QUEUES_SECONDS = 1.0
"""How often a worker looks for runs with needs that it has not worked for yet."""

CONNECT_SECONDS = 10.0

ANSWER_SECONDS = 10.0
"""How long a server may take to answer. One that starts listens before it answers."""

ATTEMPTS_PER_ACTIVITY = 1_000_000
"""Makes the attempts of a later activity higher than those of an earlier one."""


class TemporalDispatcher:
    """Starts a workflow for each run, and drives runs as activities."""

    def __init__(self, url: str, scope: str) -> None:
        """Parses `temporal://host:port/namespace`; `scope` keeps several stores apart."""
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        try:
            self._address = f"{parts.hostname or 'localhost'}:{parts.port or 7233}"
            self._heartbeat = float(options.pop("heartbeat", [HEARTBEAT_SECONDS])[0])
        except ValueError as error:
            raise ConfigError(f"dispatch is {url!r}: {error}") from error
        if options or self._heartbeat <= 0:
            raise ConfigError(f"dispatch is {url!r}; use temporal://HOST:PORT/NAMESPACE")
        self._namespace = parts.path.strip("/") or "default"
        self._scope = scope

    async def submit(self, run: str, needs: Sequence[str]) -> None:
        """Starts the workflow of a run, or has it look again."""
        client = await self._connect()
        try:
            await client.start_workflow(
                DriveRun.run,
                args=[run, self._queue(needs), self._heartbeat],
                id=f"{self._prefix}/{run}",
                task_queue=self._prefix,
                start_signal="look",
                rpc_timeout=timedelta(seconds=ANSWER_SECONDS),
            )
        except RPCError as error:
            raise DispatcherUnavailable(f"Temporal refused run {run!r}: {error}") from error

    async def wake(self, run: str, needs: Sequence[str]) -> None:
        """Has the workflow of a run look again; starts it if it has ended."""
        await self.submit(run, needs)

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:  # noqa: ARG002  # the run has it
        """Has the workflow look, find out when the run is due, and set a timer."""
        await self.submit(run, needs)

    async def check(self) -> str:
        """Returns the address and namespace, once the server has answered.

        A client connects to a namespace that does not exist without an error.
        """
        client = await self._connect()
        request = DescribeNamespaceRequest(namespace=self._namespace)
        try:
            await client.workflow_service.describe_namespace(
                request, timeout=timedelta(seconds=ANSWER_SECONDS)
            )
        except RPCError as error:
            raise DispatcherUnavailable(
                f"Temporal at {self._address} does not serve namespace {self._namespace!r}: {error}"
            ) from error
        return f"Temporal at {self._address}, namespace {self._namespace}"

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        """Drives runs as activities, on the caller's loop, until it is cancelled."""
        engine_loop, stop = asyncio.get_running_loop(), threading.Event()
        failed: asyncio.Future[None] = engine_loop.create_future()

        async def drive_here(run: str, token: DispatchToken) -> Rest:
            work = drive(run, token)
            future = asyncio.run_coroutine_threadsafe(_as_coroutine(work), engine_loop)
            return await asyncio.wrap_future(future)

        def work() -> None:
            try:
                asyncio.run(self._work(drive_here, needs, slots, stop))
            except Exception as error:  # noqa: BLE001  # it is raised where this is awaited
                # A client that gave up: its namespace is gone, for example.
                lost = DispatcherUnavailable(f"Temporal at {self._address} failed: {error}")
                problem = error if isinstance(error, SignoffError) else lost
                with suppress(RuntimeError):
                    engine_loop.call_soon_threadsafe(_fail, failed, problem)

        thread = threading.Thread(target=work, name="signoff-temporal", daemon=True)
        thread.start()
        try:
            await failed
        finally:
            stop.set()
            # Not joined on the loop itself: what is being driven ends there.
            await asyncio.shield(asyncio.to_thread(thread.join, 2 * CONNECT_SECONDS))

    async def _work(
        self,
        drive: Callable[[str, DispatchToken], Awaitable[Rest]],
        needs: QueueNeeds,
        slots: int,
        stop: threading.Event,
    ) -> None:
        """Serves the workflows, and a task queue for each kind of run, until it is stopped."""
        client = await self._connect()
        activities = [_activity(drive, self._heartbeat)]
        # The workflow imports nothing but Temporal's own modules, so it needs no sandbox.
        runner = UnsandboxedWorkflowRunner()
        async with AsyncExitStack() as workers:
            await workers.enter_async_context(
                Worker(
                    client, task_queue=self._prefix, workflows=[DriveRun], workflow_runner=runner
                )
            )
            queues: set[str] = set()
            while not stop.is_set():
                for queue in await self._queues(needs) - queues:
                    queues.add(queue)
                    worker = Worker(
                        client,
                        task_queue=queue,
                        activities=activities,
                        max_concurrent_activities=slots,
                        # By default one is sent after four fifths of the time: too late for a
                        # machine that is busy for a moment.
                        max_heartbeat_throttle_interval=timedelta(seconds=self._heartbeat / 2),
                        graceful_shutdown_timeout=timedelta(seconds=CONNECT_SECONDS),
                    )
                    await workers.enter_async_context(worker)
                await asyncio.to_thread(stop.wait, NEW_QUEUES_SECONDS)

    async def _queues(self, needs: QueueNeeds) -> set[str]:
        """Returns the task queues to serve; none if the store cannot be asked now."""
        try:
            # On a thread: it waits for a store that is away, and the heartbeats of runs that are
            # driven must not. Other workers would take these runs, and repeat their calls.
            kinds = await asyncio.to_thread(needs)
        except (StoreBusy, WriteFailed):
            # The worker itself reports it and waits; the queues that are known are served on.
            return set()
        return {self._queue(each) for each in kinds}

    async def _connect(self) -> Client:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await Client.connect(self._address, namespace=self._namespace)
        except (RuntimeError, TimeoutError, RPCError) as error:
            raise DispatcherUnavailable(
                f"cannot reach Temporal at {self._address}: {str(error) or 'no answer'}; runs stay "
                "queued, and workers find them more slowly"
            ) from error

    @property
    def _prefix(self) -> str:
        return f"signoff/{self._scope}"

    def _queue(self, needs: Sequence[str]) -> str:
        """Returns the task queue for runs with these needs."""
        return f"{self._prefix}/{'+'.join(sorted(needs)) or 'any'}"


def _activity(
    drive: Callable[[str, DispatchToken], Awaitable[Rest]], heartbeat_seconds: float
) -> Callable[..., Any]:
    @activity.defn(name="signoff-drive")
    async def drive_run(run: str) -> float | None:
        info = activity.info()
        attempt = int(info.activity_id) * ATTEMPTS_PER_ACTIVITY + info.attempt
        token = DispatchToken(info.workflow_run_id or "", attempt)
        # Before anything else: preparing a run may take longer than a heartbeat.
        activity.heartbeat()
        driving = asyncio.ensure_future(drive(run, token))
        while not driving.done():
            await asyncio.wait({driving}, timeout=heartbeat_seconds / 4)
            activity.heartbeat()
        try:
            rest = driving.result()
        except RunBusy as error:
            # Expected, so it is no warning in the log. Temporal makes another attempt.
            raise ApplicationError(str(error), category=ApplicationErrorCategory.BENIGN) from error
        return ENDED if rest.ended else rest.seconds

    return drive_run


def _fail(future: asyncio.Future[None], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


async def _as_coroutine(work: Awaitable[Rest]) -> Rest:
    return await work
