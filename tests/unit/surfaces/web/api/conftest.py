from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from signoff.app.settings.project import Project
from signoff.store.sqlite import MemoryStore
from tests.unit.surfaces.web.review_project import TARGET, review_project, work


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with a flow; its runs are in memory, so no worker is started for them."""
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    with review_project(tmp_path, MemoryStore()) as opened:
        yield opened


@pytest.fixture
async def waiting(project: Project, program: httpx.AsyncClient) -> str:
    """A review that waits for its sign-off."""
    started = await program.post("/api/v1/runs", json={"target": TARGET, "name": "first"})
    assert started.status_code == 201, started.text
    await work(project, "first")
    return "first"
