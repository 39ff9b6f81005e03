"""What the suites of this folder share: a PostgreSQL server, started when it is first asked for."""

from collections.abc import Iterator

import pytest

from tests.stubs.postgres import NotHereError, PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server; skipped by name where there is none."""
    server = running_server()
    try:
        started = server.__enter__()
    except NotHereError as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield started
    server.__exit__(None, None, None)
