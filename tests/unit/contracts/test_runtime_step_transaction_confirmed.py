"""A step that deletes, or changes every row, waits for a human."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.requests import RequestKind
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore

DELETE = "DELETE FROM books WHERE id > 1"
RAISE = "UPDATE books SET price = price + 1 WHERE price >= 0"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "library.db")) as db:
        db.executescript(
            "CREATE TABLE books (id INTEGER PRIMARY KEY, price INTEGER);"
            "CREATE TABLE chapters (book INTEGER REFERENCES books (id) ON DELETE CASCADE);"
        )
        db.executemany("INSERT INTO books VALUES (?, 5)", [(n,) for n in range(1, 13)])
        db.executemany(
            "INSERT INTO chapters VALUES (?)", [(n,) for n in range(1, 13) for _ in "ab"]
        )
        db.commit()
    return tmp_path / "library.db"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def rows(database: Path, sql: str = "SELECT count(*) FROM books") -> Any:
    with closing(sqlite3.connect(database)) as db:
        return db.execute(sql).fetchone()[0]


def change(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute(sql)
        db.commit()


def workflow(database: Path, *statements: str) -> Workflow:
    def work(ctx: StepContext) -> dict[str, Any]:
        for sql in statements:
            ctx.db.stage(sql)
        return {"attempt": ctx.attempt, "feedback": ctx.feedback}

    return define_workflow(
        {
            "type": "books",
            "database": {"url": str(database), "backup": False},
            "steps": [{"name": "work", "command": work}],
        }
    )


async def start(workflow: Workflow, store: MemoryStore) -> RunResult:
    async with Engine(store) as engine:
        return await engine.start(workflow, name="run")


async def answer(workflow: Workflow, store: MemoryStore, yes: Any, text: str = "") -> RunResult:
    item = store.items("run")[0]
    signoff.answer(item, yes, text=text, by="ann", store=store)
    async with Engine(store) as engine:
        return await engine.resume("run", workflow)


async def test_a_delete_waits_for_an_approval_with_the_number_of_rows(
    database: Path, store: MemoryStore
) -> None:
    """A human must see what goes, including what goes with it."""
    books = workflow(database, DELETE)

    waiting = await start(books, store)
    (item,) = store.items("run")
    before = rows(database)
    done = await answer(books, store, True)

    assert waiting.status is Status.WAITING
    assert item.kind is RequestKind.APPROVAL
    for shown in (DELETE, "11 rows of books", "22 rows of other tables"):
        assert shown in item.form
    assert before == 12
    assert done.status is Status.COMPLETED, done.reason
    assert rows(database) == 1
    assert rows(database, "SELECT count(*) FROM chapters") == 2


async def test_a_change_of_every_row_waits_although_its_condition_looks_selective(
    database: Path, store: MemoryStore
) -> None:
    """The rows are counted, the condition is not interpreted."""
    books = workflow(database, RAISE)

    waiting = await start(books, store)
    before = rows(database, "SELECT sum(price) FROM books")
    done = await answer(books, store, True)

    assert waiting.status is Status.WAITING
    assert before == 60
    assert done.status is Status.COMPLETED, done.reason
    assert rows(database, "SELECT sum(price) FROM books") == 72


async def test_another_number_of_rows_refuses_what_was_approved(
    database: Path, store: MemoryStore
) -> None:
    """The thirteenth book was not part of the decision; the human is asked again."""
    books = workflow(database, DELETE)
    await start(books, store)
    change(database, "INSERT INTO books VALUES (13, 5)")

    again = await answer(books, store, True)
    (item,) = store.items("run")
    unchanged = rows(database)
    done = await answer(books, store, True)

    assert again.status is Status.WAITING
    assert "12 rows of books" in item.form
    assert unchanged == 13
    assert done.status is Status.COMPLETED, done.reason
    assert "11 rows" in done.state["feedback"]
    assert rows(database) == 1


async def test_a_rejected_change_is_not_made_even_if_it_became_harmless(
    database: Path, store: MemoryStore
) -> None:
    """After a question only the answer counts, not what the rows are by now."""
    books = workflow(database, RAISE)
    await start(books, store)
    change(database, "INSERT INTO books VALUES (13, -1)")

    async with Engine(store) as engine:
        await engine.resume("run", books)
    untouched = rows(database, "SELECT sum(price) FROM books")
    await answer(books, store, False, "not this year")

    assert untouched == 59
    # The second attempt changes 12 of 13 rows, which needs no confirmation, and knows why the
    # first one was rejected.
    async with Engine(store) as engine:
        result = await engine.resume("run", books)
    assert result.state["feedback"] == (
        "a human rejected the change of the database: not this year"
    )


async def test_each_item_waits_for_its_own_approval(database: Path, store: MemoryStore) -> None:
    """Items are independent, and so are their decisions."""

    def work(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("DELETE FROM books WHERE id = ?", [ctx.item])
        return {}

    books = define_workflow(
        {
            "type": "books",
            "database": {"url": str(database), "backup": False},
            "steps": [
                {"name": "list", "command": lambda _ctx: {"all": [1, 2, 3]}, "next": "work"},
                {"name": "work", "command": work, "parallel": True, "parallel_key": "all"},
            ],
        }
    )
    waiting = await start(books, store)
    assert waiting.status is Status.WAITING
    assert len(store.items("run")) == 3

    for item in store.items("run"):
        signoff.answer(item, True, by="ann", store=store)
    async with Engine(store) as engine:
        done = await engine.resume("run", books)

    assert done.status is Status.COMPLETED, done.reason
    assert rows(database) == 9


async def test_a_statement_that_cannot_be_counted_fails_the_attempt(
    database: Path, store: MemoryStore
) -> None:
    """The worker can fix it; a human cannot decide about it."""
    books = workflow(database, DELETE, "INSERT INTO chapters (book) VALUES (999)")

    result = await start(books, store)
    (item,) = store.items("run")

    assert result.status is Status.WAITING
    assert item.kind is RequestKind.CHOICE
    assert "statement 2 of 2" in item.prompt
    assert rows(database) == 12
