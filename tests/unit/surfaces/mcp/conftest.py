from pathlib import Path

import pytest

from tests.unit.surfaces.mcp.review_server import ReviewServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReviewServer:
    """A project with a review flow, served to agents."""
    monkeypatch.chdir(tmp_path)
    return ReviewServer(tmp_path)
