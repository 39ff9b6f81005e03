"""Conditions that query the database, in files and in Python."""

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from signoff.contracts import Condition, StepContext, define_workflow
from signoff.contracts.checkpoint import checkpoint_of
from signoff.contracts.definition import QueryCheck, compile_file
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.errors import AuthorError
from signoff.notation import CompileContext
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent

FILE = """
type: books
database: {{url: books.db, backup: false}}
steps:
  - name: add
    prompt: Add {{{{title}}}} to the books.
    postconditions:
      - name: listed once
        query: SELECT count(*) FROM books WHERE title = :title
        values: {{title: params.title}}
        check: value == 1
        error: It is not listed once
      - name: cheap
        query: {query}
        check: {check}
"""
CHEAP = "SELECT title, price FROM books"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "books.db")) as db:
        db.execute("CREATE TABLE books (title TEXT, price INTEGER)")
        db.commit()
    return tmp_path


def compiled(
    folder: Path, query: str = CHEAP, check: str = "rows.all(r, r.price < 10)"
) -> Workflow:
    file = folder / "contract.yaml"
    file.write_text(FILE.format(query=json.dumps(query), check=json.dumps(check)))
    return compile_file(SourceFile(file), CompileContext(folder, folder / ".signoff"))


async def play(workflow: Workflow, *statements: tuple[str, list[Any]]) -> RunResult:
    replies = [json.dumps({"statements": [[sql, values]]}) for sql, values in statements]
    agents = {"claude": ScriptedAgent(replies)}
    async with Engine(MemoryStore(), agents=agents) as engine:
        return await engine.start(workflow, {"title": "Emma'; --"}, name="run")


INSERT = "INSERT INTO books VALUES (?, ?)"


async def test_a_file_checks_the_database_without_a_function(folder: Path) -> None:
    """The first reply adds another book, the second one is too expensive, the third is right."""
    result = await play(compiled(folder), (INSERT, ["Emma", 5]), (INSERT, ["Emma'; --", 5]))

    assert result.status is Status.COMPLETED, result.reason
    with closing(sqlite3.connect(folder / "books.db")) as db:
        assert db.execute("SELECT title FROM books").fetchall() == [("Emma'; --",)]


async def test_work_that_does_not_meet_the_query_is_rolled_back(folder: Path) -> None:
    """The query runs inside the transaction."""
    result = await play(compiled(folder), (INSERT, ["Emma'; --", 50]), (INSERT, ["Emma'; --", 60]))

    assert result.status is Status.WAITING
    with closing(sqlite3.connect(folder / "books.db")) as db:
        assert db.execute("SELECT count(*) FROM books").fetchone() == (0,)


@pytest.mark.parametrize(
    ("query", "check", "problem"),
    [
        ("DELETE FROM books WHERE price = 1", "value == 1", "only read"),
        ("INSERT INTO books VALUES ('x', 1) RETURNING price", "value == 1", "only read"),
        ("DROP TABLE books", "value == 1", "migration"),
        ("SELECT load_extension('x')", "value == 1", "load_extension"),
        ("SELECT 1; DELETE FROM books", "value == 1", "several statements"),
        (CHEAP, "count == 1", "unknown name count; valid: checkpoint"),
        (CHEAP, "rows ==", "not an expression"),
    ],
)
def test_a_bad_query_is_an_error_of_the_definition(
    folder: Path, query: str, check: str, problem: str
) -> None:
    """It must not wait until an agent has done its work."""
    with pytest.raises(AuthorError) as refused:
        compiled(folder, query, check)

    assert problem in str(refused.value)
    assert "contract.yaml:14" in str(refused.value)


def test_a_query_needs_a_database_and_values_need_a_query() -> None:
    """Both would only fail after the work."""
    checks = [
        {"name": "a", "query": "SELECT 1", "check": "value == 1"},
        {"name": "b", "check": "result == 1", "values": {"x": "params.x"}},
        {"name": "c", "query": "SELECT :x", "check": "value == 1", "values": {"x": "nothing.x"}},
    ]

    with pytest.raises(AuthorError) as refused:
        define_workflow(
            {"type": "t", "steps": [{"name": "s", "command": print, "postconditions": checks}]}
        )

    for problem in ("a query needs a database", "values without a query", "unknown name nothing"):
        assert problem in str(refused.value)


class Rows:
    """A database that returns the same rows to every query."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._rows = rows
        self.asked: list[Any] = []

    def query(self, sql: str, params: Any = ()) -> Any:
        self.asked.append((sql, params))
        return self._rows


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ([{"n": Decimal(3)}], "value == 3"),
        ([{"n": Decimal("2.5")}], "value > 2.0 && value < 3.0"),
        ([{"n": UUID(int=1)}], "value == '00000000-0000-0000-0000-000000000001'"),
        ([{"n": b"\xff"}], "value == 'ff'"),
        ([{"n": {"a": [1, None]}}], "rows[0].n.a[0] == 1"),
        ([], "value == null && size(rows) == 0"),
    ],
)
def test_values_of_the_database_are_plain_values_in_the_check(
    rows: list[dict[str, Any]], check: str
) -> None:
    """Expressions know numbers, texts, lists and mappings."""
    database: Any = Rows(*rows)
    ctx = StepContext("s", checkpoint_of("run", "t", "s", {}), {"x": 7}, view=database)

    held = QueryCheck("SELECT :x", check, {"x": "params.x + 1"})(ctx)

    assert held
    assert database.asked == [("SELECT :x", {"x": 8})]


def test_a_worker_is_shown_the_query() -> None:
    """It can then run the query itself."""
    condition = Condition("listed", "value == 1", query="SELECT count(*) FROM books")

    assert condition.description == "listed (value == 1), for: SELECT count(*) FROM books"
