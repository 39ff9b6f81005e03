"""An engine for tests: a store in memory, a scripted agent, and a clock that does not move."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.effects import EffectId
from signoff.core.errors import WriteFailed
from signoff.core.outcome import Outcome, Status
from signoff.core.step import Handler, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.owner import birth_of
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import Commit, CommitResult, Store
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, ScriptedAgent, WrappedStore

OK = Outcome.OK
Work = tuple[Outcome, dict[str, Any]]


DISK_FULL = WriteFailed("the disk is full")


class EngineFixture:
    """Drives one run called `run`, and restarts the process around it at will."""

    def __init__(self, *, store: Store | None = None, **settings: Any) -> None:
        self.store: Store = store or MemoryStore()
        self.clock = settings.pop("clock", None) or FrozenClock()
        self.agent = ScriptedAgent(clock=self.clock)
        self._settings = {"agents": {"claude": self.agent}, "clock": self.clock, **settings}
        self.engine = Engine(self.store, **self._settings)

    async def start(self, workflow: Workflow, /, **params: Any) -> RunResult:
        """Starts the run."""
        return await self.engine.start(workflow, params, name="run")

    async def resume(self, workflow: Workflow, **options: Any) -> RunResult:
        """Resumes the run in a new process."""
        await self.restart()
        return await self.engine.resume("run", workflow, **options)

    async def restart(self, store: Store | None = None, **settings: Any) -> None:
        """Ends the process and starts another on the same store."""
        await self.engine.close()
        self._settings |= settings
        self.engine = Engine(store or self.store, **self._settings)

    async def start_and_die(self, workflow: Workflow, *, at: int) -> None:
        """Starts the run in a process that gets no further than before its `at`-th commit."""
        await self.restart(DyingStore(self.store, at))
        with pytest.raises(WriteFailed) as died:
            await self.start(workflow)
        assert str(died.value) == str(DISK_FULL)

    async def answered(self, workflow: Workflow, value: Any = "yes", text: str = "") -> RunResult:
        """Starts the run, answers its only request, and resumes it in a new process."""
        waiting = await self.start(workflow)
        assert waiting.status is Status.WAITING, waiting.reason
        self.answer(value, text)
        return await self.resume(workflow)

    def answer(self, value: Any, text: str = "", *, number: int | None = None) -> None:
        """Answers the only open request, or the one of that number."""
        item = self.store.item(number) if number is not None else only(self.store.items("run"))
        answer = json.dumps({"value": value, "text": text})
        self.store.answer(item.id, answer, "ann", self.clock.now(), item.digest)

    def events(self, kind: type[ev.Event] = ev.Event) -> list[Any]:
        """Returns what is durable of the run's journal."""
        rows = self.store.journal(self.store.row("run").id)
        stored = (decode(row.events, self.store.blob) for row in rows)
        found = [ev.from_json(event) for row in stored for event in row]
        return [event for event in found if isinstance(event, kind)]

    def add_process(self, pid: int, born: str | None = None) -> None:
        """Adds to the journal what a dead runner had recorded of its first command's program."""
        row = self.store.row("run")
        process = {"pid": pid, "born": born or birth_of(pid) or ""}
        running = ev.to_json(ev.EffectRunning(EffectId("command#1"), process))
        commit = Commit(
            run=row.id,
            fence=row.fence,
            head=row.head,
            events=json.dumps([running]),
            status=row.status,
            step=row.step,
            iteration=1,
            reason="",
            due_at=None,
            at=self.clock.now(),
        )
        assert self.store.commit([commit])[0].accepted

    async def close(self) -> None:
        """Ends the process."""
        await self.engine.close()


class CountingStore(WrappedStore):
    """Counts what is asked of it."""

    def __init__(self, inner: Store | None = None) -> None:
        super().__init__(inner or MemoryStore())
        self.batches: list[int] = []
        """How many runs each transaction held."""

    @property
    def commits(self) -> int:
        """How many transactions there were."""
        return len(self.batches)

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Counts it."""
        self.batches.append(len(commits))
        return super().commit(commits, wait=wait)


class DyingStore(WrappedStore):
    """Takes nothing in from its `at`-th commit on, as if the process were gone."""

    def __init__(self, inner: Store, at: int) -> None:
        super().__init__(inner)
        self._left = at - 1
        self.failed = False

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Fails once its time has come."""
        if self._left == 0:
            self.failed = True
            raise DISK_FULL
        self._left -= 1
        return super().commit(commits, wait=wait)

    def revive(self) -> None:
        """Works again."""
        self._left = -1


def only(found: Sequence[Any]) -> Any:
    """Returns the one thing that is there."""
    (one,) = found
    return one


def one_step(handler: Handler, **more: Any) -> Workflow:
    """Returns a workflow of a single step called `work`."""
    defaults: dict[str, Any] = {"next": {Outcome.OK: None}}
    return Workflow("flow", StepDef("work", handler=handler, **{**defaults, **more}))


def chain(*handlers: Callable[..., Any]) -> Workflow:
    """Returns a workflow of steps `step1`, `step2`, ... one after the other."""
    ids = [f"step{n}" for n in range(1, len(handlers) + 1)]
    follows = [*ids[1:], None]
    steps = [
        StepDef(id_, handler=handler, next={Outcome.OK: then})
        for id_, handler, then in zip(ids, handlers, follows, strict=True)
    ]
    return Workflow("flow", *steps)
