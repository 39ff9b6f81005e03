"""A contract workflow on a real PostgreSQL: the same promises as on a file."""

from pathlib import Path
from typing import Any

import pytest

from signoff.contracts import StepContext, define_workflow
from signoff.contracts.definition import compile_file
from signoff.contracts.guarded_db.client import Connections
from signoff.core.errors import InvalidWorkflow
from signoff.core.outcome import Status
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore
from signoff.surfaces.cli import main
from signoff.testing import ScriptedAgent
from tests.contract.library import Library, postgres_library
from tests.stubs.postgres import PostgresServer


@pytest.fixture
def library(postgres: PostgresServer, tmp_path: Path) -> Library:
    return postgres_library(postgres, tmp_path)


async def test_a_step_changes_everything_or_nothing(library: Library) -> None:
    """A first attempt that cannot be proved leaves no row behind."""

    def add(ctx: StepContext) -> dict[str, Any]:
        title = f"Attempt {ctx.attempt}"
        ctx.db.stage("INSERT INTO books (id, title) VALUES ($1, $2)", [9, title])
        return {"rows": len(ctx.db.query("SELECT title FROM books"))}

    def second(ctx: StepContext) -> bool:
        return ctx.db.exists("SELECT 1 FROM books WHERE title = $1", ["Attempt 2"])

    workflow = define_workflow(
        {
            "type": "books",
            "database": {"url": library.address, "backup": False},
            "steps": [{"name": "add", "command": add, "postconditions": [check("second", second)]}],
        }
    )
    before = library.titles()

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(workflow, name="run")

    assert result.status is Status.COMPLETED, result.reason
    assert library.titles() == [*before, "Attempt 2"]
    assert result.state["rows"] == len(before)


async def test_a_step_is_not_committed_if_the_work_before_it_is_gone(library: Library) -> None:
    """A backup may be restored at any time, also while a step is under way."""

    def second(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("UPDATE books SET title = 'Ulysses' WHERE id = 1")
        library.change("DELETE FROM signoff_steps")
        return {}

    steps = [
        {"name": "first", "command": lambda _ctx: {}, "next": "second"},
        {"name": "second", "command": second},
    ]
    database = {"url": library.address, "backup": False}
    workflow = define_workflow({"type": "books", "database": database, "steps": steps})
    before = library.titles()

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(workflow, name="run")

    assert result.status is Status.FAILED
    assert "the work of step 'first' is no longer in the database" in result.reason
    assert library.titles() == before


async def test_a_contract_file_names_a_server_which_is_not_copied(
    library: Library, tmp_path: Path
) -> None:
    """Servers are backed up by their owners; a workflow works on one as it does on a file."""
    file = tmp_path / "contract.yaml"
    file.write_text(
        f"type: books\ndatabase: {library.address}\n"
        "steps: [{name: add, prompt: Add a book., postconditions: [result.ok]}]\n"
    )
    workflow = compile_file(SourceFile(file), CompileContext(tmp_path, tmp_path / ".signoff"))
    statement = '["INSERT INTO books (id, title) VALUES ($1, $2)", [9, "Persuasion"]]'
    claude = ScriptedAgent([f'{{"ok": true, "statements": [{statement}]}}'])

    async with Engine(MemoryStore(), agents={"claude": claude}) as engine:
        result = await engine.start(workflow, name="run")

    assert result.status is Status.COMPLETED, result.reason
    assert "Persuasion" in library.titles()
    assert "_backup" not in result.state


def check(name: str, function: Any) -> dict[str, Any]:
    return {"name": name, "check": function}


def test_a_connection_that_the_server_closed_is_opened_again(library: Library) -> None:
    """An agent may take longer than a server lets a connection rest."""
    connections = Connections(library.address)
    before = connections.reader()
    library.rows(
        # It returns when the session has ended.
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    titles = connections.reader().query("SELECT title FROM books")

    assert connections.reader() is not before
    assert len(titles) == len(library.titles())


def test_the_backup_of_a_server_is_refused_when_a_definition_asks_for_it() -> None:
    """A workflow must not promise a backup that nobody takes."""
    database = {"url": "postgresql://ann@db/books", "backup": True}
    steps = [{"name": "add", "command": lambda _ctx: {}}]

    with pytest.raises(InvalidWorkflow, match=r"does not back up a PostgreSQL database.*pg_dump"):
        define_workflow({"type": "books", "database": database, "steps": steps})


@pytest.mark.parametrize(
    "words", [["status"], ["migrate"], ["backup"], ["backups"], ["restore", "x", "--yes"]]
)
def test_the_commands_for_a_file_name_the_tools_of_a_server(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They refuse without connecting, and without showing the password."""
    (tmp_path / ".signoff").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGNOFF_DATA_URL", "postgresql://ann:secret@nowhere.invalid/books")

    code = main(["db", *words])
    shown = capsys.readouterr().err

    assert code == 2
    assert "use your own tool for migrations, and pg_dump for backups" in shown
    assert "secret" not in shown
