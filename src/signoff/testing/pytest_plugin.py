"""Fixtures for tests of workflows, offline: `scripted_agent`, `cassette`, `signoff_project`.

pytest loads this plugin automatically once signoff is installed. Cassettes are replayed;
with `--signoff-cassettes=record` (or `auto`) real agents are called and recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from signoff.agents.scripted import Mode, ScriptedAgent
    from signoff.runtime.ports import Agent
    from signoff.testing.project_fixture import ProjectFixture

OPTION = "--signoff-cassettes"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that allows calls to real agents."""
    parser.getgroup("signoff").addoption(
        OPTION,
        choices=("replay", "auto", "record"),
        default="replay",
        help="replay: call no real agent; auto: record what is missing; record: record everything",
    )


@pytest.fixture
def scripted_agent() -> ScriptedAgent:
    """Returns an agent that answers as the test scripts it, and records its requests."""
    from signoff.agents.scripted import ScriptedAgent

    return ScriptedAgent()


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> CassetteBox:
    """Returns a wrapper that records agents next to the test, in `cassettes/FILE/TEST.yaml`."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    folder = request.path.parent / "cassettes" / request.path.stem
    return CassetteBox(folder / f"{name}.yaml", request.config.getoption(OPTION))


@pytest.fixture
def signoff_project(tmp_path: Path) -> ProjectFixture:
    """Returns an empty project in which the test starts, answers and resumes runs."""
    from signoff.testing.project_fixture import ProjectFixture

    return ProjectFixture(tmp_path / "project")


class CassetteBox:
    """Wraps agents so that one test records or replays them."""

    def __init__(self, file: Path, mode: Mode) -> None:
        self.file = file
        self.mode = mode

    def wrap(self, name: str, agent: Agent) -> Agent:
        """Returns an agent that is replayed, or recorded if pytest was started to record."""
        from signoff.agents.scripted import CassetteAgent

        return CassetteAgent(file=self.file, agent=agent, mode=self.mode, name=name)
