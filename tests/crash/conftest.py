"""Lets the tests of this folder take long, and share the servers of the crash harness."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.testing.crash import shared_servers

# The crash harness detects hanging processes itself.
SECONDS = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(scope="session", autouse=True)
def crash_servers() -> Iterator[None]:
    with shared_servers():
        yield
