"""Contract workflows from the first step to the last."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, define_workflow
from signoff.core.errors import StoreBusy
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent

Gives = Any


def gives(*results: Gives) -> Any:
    """Returns a command that returns one result after the other, then the last one forever."""
    left = list(results)

    def command(_ctx: StepContext) -> Gives:
        return left.pop(0) if len(left) > 1 else left[0]

    return command


async def play(
    workflow: Workflow,
    params: dict[str, Any] | None = None,
    store: MemoryStore | None = None,
    **agents: Any,
) -> RunResult:
    async with Engine(store or MemoryStore(), agents=agents) as engine:
        return await engine.start(workflow, params or {}, name="run")


async def go_on(
    workflow: Workflow, store: MemoryStore, answer: Any, text: str = "", **agents: Any
) -> RunResult:
    (item,) = store.items("run")
    signoff.answer(item, answer, text=text, by="ann", store=store)
    async with Engine(store, agents=agents) as engine:
        return await engine.resume("run", workflow)


async def test_the_lease_is_renewed_while_an_ordinary_command_works() -> None:
    """It may run for an hour, and another host would take the run over."""

    others = set(threading.enumerate())

    def command(_ctx: StepContext) -> dict[str, Any]:
        ours = set(threading.enumerate()) - others
        return {"beats": any(thread.name == "signoff-heartbeat" for thread in ours)}

    workflow = define_workflow({"type": "long", "steps": [{"name": "only", "command": command}]})

    assert (await play(workflow)).state["beats"] is True


async def test_a_postcondition_compares_the_result_with_the_state_before_the_step() -> None:
    """A condition such as "the text grew" would compare the new text with itself."""
    workflow = define_workflow(
        {
            "type": "growing",
            "steps": [
                {"name": "first", "command": gives({"words": 3}), "next": "second"},
                {
                    "name": "second",
                    "command": gives({"words": 5}),
                    "postconditions": ["result.words > checkpoint.words"],
                },
            ],
        }
    )

    result = await play(workflow)

    assert result.status is Status.COMPLETED, result.reason


async def test_a_result_that_decides_nothing_is_reported_with_all_other_problems() -> None:
    """One retry has to be enough to fix both."""
    workflow = define_workflow(
        {
            "type": "branching",
            "steps": [
                {
                    "name": "write",
                    "command": gives({"words": 3}),
                    "postconditions": [
                        {"name": "long", "check": "result.words > 5", "error": "too short"}
                    ],
                    "next": {
                        "condition": "result.approved",
                        "onTrue": "end",
                        "onFalse": "write",
                        "maxIterations": 2,
                    },
                },
                {"name": "end", "command": gives({})},
            ],
        }
    )

    result = await play(workflow)

    assert "too short; the branch after 'write' cannot be decided" in result.inbox[0].prompt


async def test_a_locked_database_loses_no_reply_of_an_item() -> None:
    """The agents' replies are still there when the database is free again."""
    claude = ScriptedAgent().on("", "fine")
    locked = [True]

    async def write(ctx: StepContext) -> dict[str, Any]:
        reply = await ctx.ask("claude", f"write {ctx.item}")
        if locked:
            raise StoreBusy("book.db is locked by another process; try again")
        return {"text": reply.text}

    workflow = define_workflow(
        {
            "type": "items",
            "steps": [
                {"name": "plan", "command": gives({"areas": ["a", "b"]}), "next": "write"},
                {"name": "write", "command": write, "parallel": True, "parallelKey": "areas"},
            ],
        }
    )
    store = MemoryStore()
    failed = await play(workflow, store=store, claude=claude)
    locked.clear()

    async with Engine(store, agents={"claude": claude}) as engine:
        result = await engine.resume("run", workflow)

    assert failed.status is Status.FAILED
    assert "is locked" in failed.reason
    assert result.status is Status.COMPLETED, result.reason
    assert sorted(claude.prompts) == ["write a", "write b"]


async def test_a_second_run_with_the_same_name_does_its_own_work(tmp_path: Path) -> None:
    """A new run on the same database must not find its steps done."""
    file = tmp_path / "book.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
    db.close()

    def note(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("INSERT INTO notes (text) VALUES ('one')")
        return {"before": ctx.db.value("SELECT count(*) FROM notes")}

    workflow = define_workflow(
        {"type": "notes", "database": str(file), "steps": [{"name": "note", "command": note}]}
    )

    results = [await play(workflow, store=MemoryStore()) for _ in range(2)]

    assert [result.state["before"] for result in results] == [0, 1]


def priced(file: str) -> Workflow:
    """Returns a workflow that changes a price, waits at a gate, and changes it again."""

    def change(ctx: StepContext) -> dict[str, Any]:
        Path(f"{file}.called").touch()
        ctx.db.stage("UPDATE prices SET cents = cents + 1 WHERE id = 1")
        return {}

    return define_workflow(
        {
            "type": "prices",
            "database": {"url": file, "backup": False},
            "steps": [
                {"name": "first", "command": change, "next": "gate"},
                {
                    "name": "gate",
                    "human_gate": {
                        "prompt": "Again?",
                        "options": [{"label": "Yes", "next_step": "second"}],
                    },
                },
                {"name": "second", "command": change, "next": None},
            ],
        }
    )


def was_changed(file: Path) -> bool:
    """Whether a step of such a workflow has run since the database was created."""
    return Path(f"{file}.called").exists()


def shop(file: Path) -> None:
    """Creates a database, replacing an existing one."""
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE prices (id INTEGER PRIMARY KEY, cents INTEGER)")
        db.execute("INSERT INTO prices VALUES (1, 100)")


async def test_a_database_that_lost_the_runs_work_is_noticed(tmp_path: Path) -> None:
    """After a restore, the proofs of the run do not hold any more."""
    file = tmp_path / "shop.db"
    shop(file)
    workflow, store = priced(str(file)), MemoryStore()
    await play(workflow, store=store)
    shop(file)

    result = await go_on(priced(str(file)), store, "Yes")

    assert result.status is Status.FAILED
    assert "the work of step 'gate' is no longer in the database" in result.reason
    assert not was_changed(file)


async def test_a_database_that_is_replaced_during_a_step_is_noticed(tmp_path: Path) -> None:
    """The work before it was committed by this process, so it is not looked for again before."""
    file = tmp_path / "shop.db"
    shop(file)

    def replace(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("UPDATE prices SET cents = cents + 1 WHERE id = 1")
        shop(file)
        return {}

    steps = [
        {"name": "first", "command": lambda _ctx: {}, "next": "second"},
        {"name": "second", "command": replace},
    ]
    database = {"url": str(file), "backup": False}

    result = await play(define_workflow({"type": "p", "database": database, "steps": steps}))

    with sqlite3.connect(file) as db:
        prices = db.execute("SELECT cents FROM prices").fetchall()
    db.close()
    assert result.status is Status.FAILED
    assert "the work of step 'first' is no longer in the database" in result.reason
    assert prices == [(100,)]


def test_the_path_of_a_database_is_relative_to_the_defining_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is resumed from another folder must use the same database."""
    monkeypatch.chdir(tmp_path)

    workflow = priced("shop.db")

    (handler, *_) = (step.handler for step in workflow.steps.values())
    database = handler.contract.definition.database  # type: ignore[union-attr]  # of a contract
    assert database.url == str(Path(__file__).resolve().parent / "shop.db")
