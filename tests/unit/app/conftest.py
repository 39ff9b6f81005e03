from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import Settings
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def project(tmp_path: Path, clock: FrozenClock) -> Iterator[Project]:
    """A project in memory, at a standstill in time; only readable files touch the disk."""
    with project_in(tmp_path, clock) as opened:
        yield opened


def project_in(folder: Path, clock: FrozenClock) -> Project:
    """A new project in memory, for a test that needs several."""
    home = init_home(folder, {}).home
    return Project(home, Settings(), MemoryStore(), folder, clock)
