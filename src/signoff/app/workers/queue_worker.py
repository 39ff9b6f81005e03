"""A worker: claims runs that were handed over, and drives several of them at once.

All of them share one engine, and with it the limits of each agent. The queue is in the store, so a
worker that dies loses nothing: its runs are claimed by the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import InitVar, dataclass, field
from functools import partial

from signoff.app.runs.run_records import living_workers
from signoff.app.runs.runs import Warn
from signoff.app.runs.start import DUE, prepare
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import WorkerCapabilities
from signoff.core import errors as er
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.remedies import Resume
from signoff.core.requests import ItemState
from signoff.runtime import store_port as port
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Dispatcher, DispatcherUnavailable, Observer, Rest

NEWS_SECONDS = 0.1
"""How often an idle worker asks whether another process has changed the store, which is cheap."""

LOOK_SECONDS = 2.0
"""How often it looks for runs anyway: a time comes, or an owner dies, without any change."""

SWEEP_SECONDS = 10.0
"""How often a worker with a dispatcher looks for runs that the dispatcher has lost."""

_ACTIVE = (Status.QUEUED, Status.RUNNING, Status.PARKED)

SOME_RUNS = 200
"""How many runs it looks at for agents that it has not checked yet."""

MOST_LOST = 3
"""How many processes a run may lose without having recorded anything in between."""

_PROGRESS = (ev.EffectFinished, ev.ItemFinished, ev.StepFinished, ev.StepWorked, ev.RunStopped)


@dataclass(kw_only=True)
class QueueWorker:
    """Drives runs that were handed over until it is cancelled, or idle for long enough."""

    project: Project = field(kw_only=False)
    slots: int
    labels: InitVar[Collection[str]] = ()
    idle_seconds: float | None = None
    """If set, it ends when it had nothing to do for so long, or is not the only worker."""
    dispatcher: Dispatcher | None = None
    """Where runs come from; without one, from the store."""
    look_seconds: float = LOOK_SECONDS
    """How often it looks for runs at least, even if nothing has changed."""
    sweep_seconds: float = SWEEP_SECONDS
    """How often it claims the runs that its dispatcher has lost."""
    warn: Warn = lambda _warning: None
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _swept_at: float = field(default=float("-inf"), init=False)
    _claimed_at: float = field(default=float("inf"), init=False)
    _stopping: bool = field(default=False, init=False)

    def __post_init__(self, labels: Collection[str]) -> None:
        """Knows what it can do; `labels` are capabilities that its operator chose."""
        self._capabilities = WorkerCapabilities(self.project, labels)

    async def work(self, observers: Sequence[Observer] = ()) -> None:
        """Claims and drives runs; if cancelled, its runs go back to the queue."""
        while True:
            async with self.project.engine(observers) as engine:
                number = engine.register(self.slots, self._capabilities.names)
                if not self._is_needed(number):
                    return
                self._stopping = False
                serving = asyncio.create_task(self._serve(engine))
                try:
                    with work_signal(self.project.store) as signal:
                        await self._claim_and_drive(engine, signal)
                finally:
                    self._stopping = True
                    await self._hand_back(engine)
                    serving.cancel()
                    await asyncio.gather(serving, return_exceptions=True)
            # No longer listed, it looks once more: a run may have been queued by a process that
            # saw this worker just before.
            if not self._can_continue():
                return

    def _is_needed(self, number: int) -> bool:
        """Of workers that several processes started at the same time, the first one stays."""
        if self.idle_seconds is None:
            return True
        return all(each.number >= number for each in living_workers(self.project.store))

    def _can_continue(self) -> bool:
        # Without this look, a run that was queued while the worker signed off would wait for the
        # next one.
        queued = self.project.store.rows(status=[Status.QUEUED])
        able = self._capabilities.names
        return any(row.needs is not None and able.issuperset(row.needs) for row in queued)

    async def _claim_and_drive(self, engine: Engine, signal: WorkSignal) -> None:
        time = asyncio.get_running_loop().time
        busy_at = time()
        while True:
            try:
                await self._claim(engine)
                if self._tasks:
                    busy_at = time()
                elif self.idle_seconds is not None:
                    is_over = time() - busy_at >= self.idle_seconds
                    if is_over and not self._awaits_time():
                        return
                await self._next_event(signal)
            except (er.StoreBusy, er.WriteFailed) as error:
                await self._outlast(error)

    async def _claim(self, engine: Engine) -> None:
        """Claims runs for the free slots, and begins to drive them."""
        if self._free_slots <= 0:
            return
        # Others may have removed this worker from the list while its machine slept: by the wall
        # clock, since they did not stop.
        before, self._claimed_at = self._claimed_at, self.project.clock.now()
        if self._claimed_at - before >= port.FORGOTTEN_SECONDS:
            engine.register(self.slots, self._capabilities.names)
        # With a dispatcher, runs are looked for in the store only now and then.
        now = asyncio.get_running_loop().time()
        is_due = self.dispatcher is None or now - self._swept_at >= self.sweep_seconds
        if is_due:
            self._swept_at = now
            self._start_claimed(engine)
        if self._free_slots and await self._learned():
            engine.register(self.slots, self._capabilities.names)
            if is_due:
                self._start_claimed(engine)

    @property
    def _free_slots(self) -> int:
        return self.slots - len(self._tasks)

    def _start_claimed(self, engine: Engine) -> None:
        # Nothing may fail between a claim and its tasks: the runs would belong to a worker that
        # does not drive them, for as long as it lives.
        for row in engine.claim(self._capabilities.names, self._free_slots):
            driving = self._drive(engine, row, after=self._tasks.get(row.name))
            self._tasks[row.name] = asyncio.create_task(driving)

    async def _learned(self) -> bool:
        """Checks the agents that runs need; tells whether this worker can do more now."""
        # Those of a worker that died count too: this one may be all that is left to continue them.
        active = self.project.store.rows(status=_ACTIVE, limit=SOME_RUNS)
        needs = {need for row in active for need in row.needs or ()}
        return bool(needs) and await asyncio.to_thread(self._capabilities.check, needs)

    def _awaits_time(self) -> bool:
        """Tells whether a run continues by itself at some time, for which a worker is needed."""
        due = self.project.store.rows(status=DUE, due_before=float("inf"))
        return any(row.needs is not None for row in due)

    async def _next_event(self, signal: WorkSignal) -> None:
        """Returns when a run has come to rest, there may be work, or some time has passed."""
        time = asyncio.get_running_loop().time
        claimed_at = time()
        if len(self._tasks) >= self.slots:
            await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        else:
            await signal.wait(self._tasks.values(), self.look_seconds)
            if signal.is_live():
                # Every worker hears of every run. When many arrive, one look for several is enough.
                await asyncio.sleep(claimed_at + NEWS_SECONDS - time())
        for name in [name for name, task in self._tasks.items() if task.done()]:
            # Raises what ended this worker's ability to work.
            self._tasks.pop(name).result()

    # For a dispatcher

    async def _serve(self, engine: Engine) -> None:
        """Lets the dispatcher bring runs, for as long as this worker works."""
        while self.dispatcher is not None:
            try:
                await self.dispatcher.serve(
                    partial(self._dispatched, engine), self._kinds, self.slots
                )
            except (DispatcherUnavailable, er.StoreBusy, er.WriteFailed) as error:
                # It asks the store what it could drive, and that may be away too.
                self.warn(str(error))
            await asyncio.sleep(self.sweep_seconds)

    async def _dispatched(self, engine: Engine, run: str, token: port.DispatchToken | None) -> Rest:
        """Drives a run until it rests, if the store has something to do for it."""
        if self._stopping:
            raise er.RunBusy("this worker stops; another one has to drive the run")
        if run not in self._tasks:
            try:
                row = self.project.store.row(run)
            except er.UnknownName:
                return Rest(ended=True)
            if not has_work(self.project, row):
                return rest_of(self.project, run)
            self._tasks[run] = asyncio.create_task(self._drive(engine, row, token))
        # A run that this worker drives already is waited for too. If a dispatcher was away, it
        # believes the earlier attempt dead and makes another one; if that ended here at once, the
        # next would go to another worker, which would take the run and repeat the call under way.
        await asyncio.wait({self._tasks[run]})
        return rest_of(self.project, run)

    def _kinds(self) -> list[list[str]]:
        """Returns the needs of runs that this worker could drive, each kind once."""
        rows = self.project.store.rows(status=_ACTIVE, limit=SOME_RUNS)
        able = self._capabilities.names
        kinds = {row.needs for row in rows if row.needs is not None and able.issuperset(row.needs)}
        return [list(kind) for kind in kinds]

    async def _drive(
        self,
        engine: Engine,
        row: port.RunRow,
        token: port.DispatchToken | None = None,
        *,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        """Drives a run; `after` is the task that drove it before and is not over yet."""
        is_refused, is_again = False, after is not None
        await asyncio.gather(*([after] if after is not None else []))
        while True:
            try:
                # After an error too the run belongs to this worker, so no other one would continue
                # it. The server may be lost again before this one has.
                if is_again:
                    # The run may be another worker's by now, which may still need its replies.
                    engine.store_late_replies(row)
                    row = self.project.store.row(row.name)
                    can_try = has_work(self.project, row) and not is_refused
                    if self._stopping or not (engine.owns(row) or can_try):
                        return
                await self._drive_once(engine, row, token)
                return
            except er.LeaseLost as error:
                # Usually another process has taken it. But a server that failed over may have lost
                # the last commits: then the run is still this worker's, and no one else takes it.
                self.warn(f"{row.name}: {error}")
                if self._stopping:
                    return
                is_again = is_refused = True
            except (er.StoreBusy, er.WriteFailed) as error:
                if self._stopping:
                    # Another worker takes it over: this one must not begin to drive it again.
                    raise
                is_again = True
                await self._outlast(error)

    async def _outlast(self, error: er.StoreError) -> None:
        """Waits until a server that could not be reached can be; raises for any other store.

        All workers lose it together. If each ended, someone would have to start them all again.
        """
        store = self.project.store
        if store.local_file() is not None:
            raise error
        self.warn(f"{error}; trying again")
        while True:
            await asyncio.sleep(self.look_seconds)
            # On a thread: it waits for the server, and calls of runs are under way.
            with suppress(er.StoreBusy, er.WriteFailed):
                await asyncio.to_thread(store.changes)
                self.warn("the database can be reached again")
                return

    async def _drive_once(
        self, engine: Engine, row: port.RunRow, token: port.DispatchToken | None
    ) -> None:
        try:
            # A run that ends every process that touches it would otherwise take one worker after
            # the other with it.
            is_lost = row.status is Status.RUNNING
            if is_lost and lost_workers(self.project.store, row) >= MOST_LOST:
                raise er.HandlerFailed(
                    f"{MOST_LOST} processes ended while they drove this run, at the same place; "
                    "fix what ends them, then resume it",
                    remedy=Resume(row.name),
                )
            workflow = prepare(self.project, row, None, self.warn)
            result = await engine.resume(row.name, workflow, token=token)
            if token is None and self.dispatcher is not None and result.due_at is not None:
                await self.dispatcher.at(row.name, row.needs or (), result.due_at)
        except (DispatcherUnavailable, er.RunBusy, er.StoreDamaged) as error:
            # Another process drives it now, or nothing can be recorded about this run.
            self.warn(f"{row.name}: {error}")
        except er.NotTrusted as error:
            self.warn(f"{row.name}: {error}")
            with suppress(er.LeaseLost, er.RunBusy):
                await engine.hold(row.name, "its definition has changed and needs trust")
        except (er.LeaseLost, er.StoreError):
            # Nothing can be recorded about it, or about any run.
            raise
        except er.SignoffError as error:
            await self._fail(engine, row, error)

    async def _fail(self, engine: Engine, row: port.RunRow, error: er.SignoffError) -> None:
        if isinstance(error, er.DefinitionChanged):
            # Python loads a module once: this worker may have older code than the run's user.
            hint = "a worker keeps the code it started with, so end it if the code is newer"
            error = er.DefinitionChanged(
                f"{error}; {hint} (`signoff workers` lists it)", remedy=error.remedies
            )
        self.warn(f"{row.name}: {error}")
        # If another process drives it by now, what becomes of it is decided there.
        with suppress(er.LeaseLost, er.RunBusy):
            await engine.fail(row.name, error)

    async def _hand_back(self, engine: Engine) -> None:
        """Stops the runs that are left; each is queued again, with all that it has recorded."""
        stopped = engine.interrupt("its worker stopped", Status.QUEUED)
        for name, task in self._tasks.items():
            if name not in stopped:
                # It is being prepared and has no runner yet, which would record why it stopped.
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()


def has_work(project: Project, row: port.RunRow) -> bool:
    """Tells whether a run can continue now; a dispatcher may ask for it at any time."""
    is_due = row.due_at is not None and row.due_at <= project.clock.now()
    match row.status:
        case Status.QUEUED | Status.RUNNING:
            return True
        case Status.PARKED:
            return is_due
        case Status.WAITING:
            return is_due or bool(project.store.items(row.name, state=(ItemState.ANSWERED,)))
        case _:
            return False


def rest_of(project: Project, run: str) -> Rest:
    """Returns for how long a run rests; raises `RunBusy` if another process drives it."""
    row = project.store.row(run)
    match row.status:
        case Status.QUEUED:
            return Rest(0.0)
        case Status.RUNNING:
            # The dispatcher asks again, more and more rarely.
            raise er.RunBusy(f"run {run!r} is driven by another process")
        case Status.WAITING | Status.PARKED:
            now = project.clock.now()
            return Rest(None if row.due_at is None else max(0.0, row.due_at - now))
        case _:
            return Rest(ended=True)


def lost_workers(store: port.Store, row: port.RunRow) -> int:
    """Returns how often a run was resumed since it last recorded a result or a stop.

    A run whose code ends its process, by exhausting the memory for example, would be claimed by one
    worker after the other: each would die, and each would pay again for the call under way.
    """
    count = 0
    for commit in reversed(store.journal(row.id)):
        for event in reversed(list(port.events_in([commit], store.blob))):
            if isinstance(event, _PROGRESS):
                return count
            count += isinstance(event, ev.RunResumed)
    return count


@dataclass
class WorkSignal:
    """What a worker hears of a store, on its event loop."""

    _store: port.Store
    is_live: Callable[[], bool]
    """Tells whether the store says when there is work; otherwise it has to be asked."""
    _heard: asyncio.Event

    async def wait(self, tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
        """Returns when a task is done, the store has changed, or the time is over.

        What it says between two calls is not lost: the next one returns at once.
        """
        hearing = asyncio.create_task(self._hear())
        try:
            done, _ = await asyncio.wait(
                {hearing, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hearing.cancel()
        if hearing in done:
            # Raises what kept the store from being asked.
            hearing.result()
        self._heard.clear()

    async def _hear(self) -> None:
        before = None if self.is_live() else self._store.changes()
        while before is not None and not self.is_live():
            await asyncio.sleep(NEWS_SECONDS)
            if self._store.changes() != before:
                return
        await self._heard.wait()


@contextmanager
def work_signal(store: port.Store) -> Iterator[WorkSignal]:
    """Listens to a store for as long as a worker works."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        loop.call_soon_threadsafe(heard.set)

    with port.subscribed(store.listener(), [port.Topic.WORK], hear) as is_live:
        yield WorkSignal(store, is_live, heard)
