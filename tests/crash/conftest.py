"""Lets the tests of this folder take long, and keeps their files in memory where it can."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

# The crash harness detects hanging processes itself.
SECONDS = 3600

MEMORY = Path("/dev/shm")
ROOM_BYTES = 1 << 30
"""Several times what one test writes; the /dev/shm of many containers is smaller."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is room, otherwise on disk.

    A killed process loses nothing that it has written to either, and on a disk these tests spend
    more time waiting for syncs than working.
    """
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        yield tmp_path
        return
    with TemporaryDirectory(dir=MEMORY, prefix="signoff-crash-") as folder:
        yield Path(folder)
