"""Lets the tests of this folder take long."""

from pathlib import Path

import pytest

# The crash harness detects hanging processes itself.
SECONDS = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(SECONDS))
