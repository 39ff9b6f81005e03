"""The options --real, --store and --update-snapshots, and a summary of skipped tests.

Fixtures for one kind of test are in the conftest of its folder. The PostgreSQL server is for
several kinds, so that a process of tests starts only one.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from signoff.documents import python_files
from tests.huge_pages import use_huge_pages

if TYPE_CHECKING:
    from tests.stubs.postgres import PostgresServer

# Shows the values in the assertions of the suites, as in test files.
pytest.register_assert_rewrite("tests.agent_suite", "tests.store_suite")

# A busy machine misses deadlines, and finds generating examples slow. A change is judged by the
# same examples each time; `--hypothesis-profile=explore` looks for new ones.
_PATIENT = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("signoff", _PATIENT, derandomize=True)
settings.register_profile("explore", _PATIENT, max_examples=2_000)
settings.load_profile("signoff")

# What asks for trust is tested on its own; every other test works in projects that it has written.
os.environ["SIGNOFF_TRUST"] = "1"

FILE, SERVER = "file", "postgres"
"""The stores of the option `--store`."""


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """A real PostgreSQL server; skips the test if there is none."""
    from tests.stubs.postgres import NotHereError, running_server

    server = running_server()
    try:
        started = server.__enter__()
    except NotHereError as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield started
    server.__exit__(None, None, None)


@pytest.fixture(scope="session", autouse=True)
def run_stores(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stores the runs of all tests where `--store` says."""
    yield from _stored_in(request.config.getoption("--store"), request)


@pytest.fixture(autouse=True)
def search_path() -> Iterator[None]:
    """Forgets the projects of a test; otherwise every import after it would look there too."""
    before = sys.path.copy()
    yield
    sys.path[:] = before
    python_files._project_folders.clear()


@pytest.fixture(autouse=True)
def run_store(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stores the runs of a test that is marked `both_stores` in one of them."""
    yield from _stored_in(getattr(request, "param", FILE), request)


def _stored_in(kind: str, request: pytest.FixtureRequest) -> Iterator[None]:
    if kind == FILE:
        yield
        return
    from tests.run_stores import runs_on_server

    with runs_on_server(request.getfixturevalue("postgres").new_schema):
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = any(metafunc.definition.iter_markers("both_stores"))
    if marked and metafunc.config.getoption("--store") == FILE:
        metafunc.parametrize("run_store", [FILE, SERVER], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--store") == FILE:
        return
    from tests.run_stores import FILE_ONLY

    for item in items:
        for start, reason in FILE_ONLY.items():
            if item.nodeid.startswith(start):
                item.add_marker(pytest.mark.skip(reason=f"on a server: {reason}"))


MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30
"""Several times what the tests that run at once write; many containers have less."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real", action="store_true", help="fail where a vendor's real program is not installed"
    )
    parser.addoption(
        "--store", choices=[FILE, SERVER], default=FILE, help="where the tests store their runs"
    )
    parser.addoption(
        "--update-snapshots", action="store_true", help="accept changed prompts as the new ones"
    )


def pytest_configure() -> None:
    _keep_files_in_memory()
    _handle_interrupts()


def _keep_files_in_memory() -> None:
    """Puts the folders of tests into memory if there is room; `--basetemp` chooses another place.

    A killed process loses nothing that it has written to either, and on a disk the tests wait
    longer for syncs than they work.
    """
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        return
    # Some tests run programs that they have written.
    if not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None  # Python has looked for the folder already.


def _handle_interrupts() -> None:
    """Makes Ctrl-C work in the tests, and in the programs that they start.

    A shell without job control starts background jobs with SIGINT ignored, and children inherit it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    for reason, count in reasons.items():
        terminalreporter.write_line(f"SKIPPED {count}: {reason}", yellow=True, bold=True)
    if not reasons:
        terminalreporter.write_line("skipped: nothing")


def _reason(report: object) -> str:
    match getattr(report, "longrepr", None):
        case (_, _, str(reason)):
            return reason.removeprefix("Skipped: ")
        case other:
            return str(other)


def pytest_collection_finish() -> None:
    """Makes what was collected cheap for the tests.

    The garbage collector would visit it all the time, and each fork would copy its page table.
    """
    gc.collect()
    gc.freeze()
    use_huge_pages()
