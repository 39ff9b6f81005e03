import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from tests.patience import PATIENCE_SECONDS

ADD = "INSERT INTO books (title) VALUES (?)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "books.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT)")
    return file


def titles(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [title for (title,) in db.execute("SELECT title FROM books ORDER BY id")]


def book(database: Any, command: Callable[[StepContext], Any], **options: Any) -> Workflow:
    if not isinstance(database, dict):
        database = {"url": str(database)}
    steps = [
        {"name": "add", "command": command, **options},
        {"name": "end", "command": lambda _ctx: {}},
    ]
    return define_workflow(
        {"type": "book", "database": {"backup": False, **database}, "steps": steps}
    )


async def play(workflow: Workflow) -> RunResult:
    async with Engine(MemoryStore()) as engine:
        return await engine.start(workflow, name="run")


async def test_the_branch_is_decided_once_and_by_what_is_committed(path: Path) -> None:
    """A second look could lead elsewhere, because another program may have changed the rows."""
    counts = []

    def add(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage(ADD, ["Emma"])
        return {}

    def enough(ctx: StepContext) -> bool:
        counts.append(ctx.db.value("SELECT count(*) FROM books"))
        return bool(counts[-1] == 3)

    branch = {"condition": enough, "on_true": "end", "on_false": "add", "max_iterations": 5}

    result = await play(book(path, add, next=branch))

    assert result.status is Status.COMPLETED, result.reason
    assert counts == [1, 2, 3]


async def test_a_function_that_returns_an_awaitable_is_awaited_before_the_commit(
    path: Path,
) -> None:
    """Otherwise an empty transaction would be committed, and the work be lost."""

    async def later(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage(ADD, ["Persuasion"])
        return {"title": "Persuasion"}

    def add(ctx: StepContext) -> Any:
        return later(ctx)

    checks = [{"name": "titled", "check": "result.title == 'Persuasion'"}]

    result = await play(book(path, add, next="end", postconditions=checks))

    assert result.status is Status.COMPLETED, result.reason
    assert titles(path) == ["Persuasion"]


async def test_an_abandoned_function_commits_nothing(path: Path) -> None:
    """The run was stopped; another process may have done the step meanwhile."""
    free, threads = threading.Event(), []
    loop = asyncio.get_running_loop()

    def add(ctx: StepContext) -> dict[str, Any]:
        threads.append(threading.current_thread())
        ctx.db.stage(ADD, ["Emma"])
        loop.call_soon_threadsafe(engine.interrupt, "stop")
        free.wait(PATIENCE_SECONDS)
        return {}

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(book(path, add, next="end"), name="run")
    free.set()
    await asyncio.to_thread(threads[0].join, PATIENCE_SECONDS)

    assert result.status is Status.INTERRUPTED
    assert not threads[0].is_alive()
    assert titles(path) == []
