"""Steps that time out, name unclear next steps, or return results that can't be stored."""

import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.requests import Question
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from tests.patience import PATIENCE_SECONDS, SkippingLoop, until


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A database with one empty table."""
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (attempt INTEGER)")
    return path


def noted(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        # Waits until no other connection has an open write transaction.
        db.execute("BEGIN IMMEDIATE")
        return [attempt for (attempt,) in db.execute("SELECT attempt FROM notes")]


async def play(*steps: dict[str, Any], database: Path | None = None) -> RunResult:
    definition: dict[str, Any] = {"type": "steps", "steps": list(steps)}
    if database is not None:
        definition["database"] = {"url": str(database), "backup": False}
    async with Engine(MemoryStore()) as engine:
        return await engine.start(define_workflow(definition), {}, name="run")


async def test_work_that_took_too_long_does_not_reach_the_database_afterwards(notes: Path) -> None:
    """A human is asked about the failed step; it must not complete afterwards."""
    over = threading.Event()

    def work(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("INSERT INTO notes VALUES (?)", [ctx.attempt])
        return {}

    result = await play(
        {
            "name": "note",
            "command": work,
            "timeout": 0.05,
            "postconditions": [{"name": "slow", "check": lambda _ctx: over.wait(PATIENCE_SECONDS)}],
        },
        database=notes,
    )
    over.set()

    assert result.status is Status.WAITING
    assert noted(notes) == []


@pytest.mark.parametrize("with_database", [True, False])
async def test_a_result_that_decides_no_branch_is_retried(notes: Path, with_database: bool) -> None:
    """Committed work could not be fixed any more, however often it is retried."""
    result_value = [{"mood": "fine"}, {"decision": "yes"}]

    result = await play(
        {
            "name": "decide",
            "command": lambda _ctx: result_value.pop(0),
            "next": {"condition": "result.decision == 'yes'", "onTrue": "end", "onFalse": "decide"},
        },
        {"name": "end", "command": lambda _ctx: {}},
        database=notes if with_database else None,
    )

    assert result.status is Status.COMPLETED, result.reason
    assert result.state["decision"] == "yes"


async def test_a_gate_waits_whatever_the_branch_condition_is() -> None:
    """A result must not be able to skip a gate."""
    result = await play(
        {
            "name": "check",
            "command": lambda _ctx: {"fine": False},
            "humanGate": {"prompt": "Continue?", "options": [{"label": "Go", "nextStep": "end"}]},
            "next": {"condition": "result.fine", "onTrue": "end", "onFalse": "check"},
        },
        {"name": "end", "command": lambda _ctx: {}},
    )

    assert result.status is Status.WAITING, result.reason
    assert result.inbox[0].prompt == "Continue?"


@pytest.mark.parametrize("result_value", [{"ease": float("inf")}, {1: "one"}, {"text": b"..."}])
async def test_a_result_that_cannot_be_stored_is_retried(result_value: Any) -> None:
    """A program that prints 1e999 would otherwise fail its run for good."""
    results = [result_value, {"ease": 3}]

    result = await play({"name": "measure", "command": lambda _ctx: results.pop(0)})

    assert result.status is Status.COMPLETED, result.reason
    assert result.state["ease"] == 3


@pytest.mark.parametrize(
    ("statements", "status"),
    [(None, Status.COMPLETED), (5, Status.WAITING), ("DROP", Status.WAITING)],
)
async def test_invalid_statements_never_break_a_run(
    notes: Path, statements: Any, status: Status
) -> None:
    """Models write null for an empty list."""
    envelope = {"success": True, "result": {}, "statements": statements}

    result = await play({"name": "note", "command": lambda _ctx: envelope}, database=notes)

    assert result.status is status, result.reason


@pytest.mark.parametrize("late", ["style", "facts"])
async def test_of_parallel_steps_only_the_failed_one_is_retried(late: str) -> None:
    """The work of the other one is done and paid for."""
    loop = SkippingLoop()
    done: list[str] = []

    async def does(ctx: StepContext) -> dict[str, Any]:
        done.append(ctx.step)
        return {}

    async def hangs_after_the_other(_ctx: StepContext) -> None:
        await until(lambda: done, "the work of the other step")
        await loop.hang()

    result = await play(
        *(
            {
                "name": name,
                "command": hangs_after_the_other if name == late else does,
                "parallel": True,
                "timeout": 600,
            }
            for name in ("style", "facts")
        )
    )

    assert result.status is Status.WAITING, result.reason
    assert f"- {late}: it took more than" in result.inbox[0].prompt
    assert len(done) == 1


async def test_a_program_that_prints_endless_brackets_returns_a_text() -> None:
    """Output that is not JSON is text, for whatever reason it is not."""
    prints = [sys.executable, "-c", "print('[' * 200_000)"]

    result = await play({"name": "print", "command": prints})

    assert result.status is Status.COMPLETED, result.reason


async def test_a_program_with_truncated_output_fails() -> None:
    """A condition might depend on the missing part."""
    prints = [sys.executable, "-c", "print('a' * 4_100_000)"]

    result = await play({"name": "print", "command": prints})

    assert result.status is Status.WAITING
    assert "printed more than 4_000_000 bytes" in result.inbox[0].prompt


async def test_an_unusable_answer_stops_a_run_instead_of_looping_forever() -> None:
    """Its journal would fill the disk without a visible reason."""
    broken = False

    async def ask(ctx: StepContext) -> dict[str, Any]:
        if broken:
            raise KeyError("chapter")
        return {"message": (await ctx.wait(Question("Which one?"))).value}

    workflow = define_workflow(
        {
            "type": "stuck",
            "steps": [
                {"name": "plan", "command": lambda _ctx: {"areas": ["a"]}, "next": "ask"},
                {"name": "ask", "command": ask, "parallel": True, "parallelKey": "areas"},
            ],
        }
    )
    store = MemoryStore()
    async with Engine(store) as engine:
        await engine.start(workflow, {}, name="run")
        (item,) = store.items("run")
        signoff.answer(item, "the first", by="ann", store=store)
        broken = True

        result = await engine.resume("run", workflow)

    assert result.status is Status.FAILED
    assert f"did not use what was answered (#{item.id})" in result.reason
