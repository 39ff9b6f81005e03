"""A PostgreSQL server for the tests of this folder, started when a test needs it."""

from collections.abc import Iterator

import pytest

from tests.stubs.postgres import NotHereError, PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server; skips the test if there is none."""
    server = running_server()
    try:
        started = server.__enter__()
    except NotHereError as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield started
    server.__exit__(None, None, None)
