"""Where the runs of a test are stored: in files, or in a PostgreSQL server.

`pytest --store postgres` lets all acceptance, crash and replay tests use a server; the marker
`both_stores` runs a test on both. Only this module knows which one a test uses.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from signoff.app.runs.runs import move_run
from signoff.app.settings.project import open_database
from signoff.runtime.store_port import Store
from signoff.store.sqlite import SqliteStore

FILE_ONLY = {
    "tests/acceptance/test_docs.py::"
    "test_the_code_blocks_of_a_section_work_as_documented[commands.md: Settings]": (
        "the address of a server makes a column of `config show` wider than documented"
    ),
    "tests/acceptance/test_crashes.py::test_a_read_only_file_system_can_be_read": (
        "about the file in the project's folder"
    ),
    "tests/acceptance/test_honest_messages.py::test_a_project_is_backed_up": (
        "a server is backed up with its own tools, and `backup` says so"
    ),
    "tests/acceptance/test_workers.py::test_a_changed_workflow_is_driven_by_a_worker": (
        "about the worker that is started in the background, which only a file has"
    ),
}
"""Tests that are about SQLite files, by the start of their id, and why they need one."""

_servers: list[Callable[[], str]] = []
"""The innermost one returns the URL of a new store; empty if runs are stored in files."""


@contextmanager
def runs_on_server(new_store: Callable[[], str]) -> Iterator[None]:
    """Lets everything inside store its runs in a server; `new_store` returns a new URL there."""
    _servers.append(new_store)
    try:
        yield
    finally:
        _servers.pop()


def server_stores() -> Callable[[], str] | None:
    """Returns what makes new stores in a server; None if runs are stored in files."""
    return _servers[-1] if _servers else None


def store_variables() -> dict[str, str]:
    """Returns the environment variables of a new project."""
    new_store = server_stores()
    return {} if new_store is None else {"SIGNOFF_DATABASE": new_store()}


def new_address(folder: Path) -> str:
    """Returns the address of a new store, which is the folder's own."""
    new_store = server_stores()
    return str(folder / "signoff.db") if new_store is None else new_store()


def open_address(address: str) -> Store:
    """Opens a store by its address."""
    return open_database(address, Path())


def moved_here(path: Path) -> str:
    """Returns the address of the store with the runs of a file, moved to a server if need be."""
    new_store = server_stores()
    if new_store is None:
        return str(path)
    address = new_store()
    with closing(SqliteStore(path)) as file, closing(open_address(address)) as server:
        for row in file.rows():
            move_run(file, server, row.name, address)
    return address
