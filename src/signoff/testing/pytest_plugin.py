"""Fixtures for tests of workflows, offline: `scripted_agent`, `cassette`, `signoff_project`.

pytest finds this by itself once signoff is installed. Cassettes are replayed; with
`--signoff-cassettes=record` (or `auto`) the agents behind them are asked and recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from signoff.agents.cassette import Mode
    from signoff.agents.scripted import ScriptedAgent
    from signoff.runtime.ports import Agent
    from signoff.testing.project_fixture import ProjectFixture

OPTION = "--signoff-cassettes"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that lets real agents be asked."""
    parser.getgroup("signoff").addoption(
        OPTION,
        choices=("replay", "auto", "record"),
        default="replay",
        help="replay: never ask a real agent; auto: record what is missing; record: all anew",
    )


@pytest.fixture
def scripted_agent() -> ScriptedAgent:
    """Returns an agent that says what the test tells it to, and keeps what it was asked."""
    from signoff.agents.scripted import ScriptedAgent

    return ScriptedAgent()


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> CassetteBox:
    """Returns a box that records agents beside the test, in `cassettes/FILE/TEST.yaml`."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    folder = request.path.parent / "cassettes" / request.path.stem
    return CassetteBox(folder / f"{name}.yaml", request.config.getoption(OPTION))


@pytest.fixture
def signoff_project(tmp_path: Path) -> ProjectFixture:
    """Returns a project of its own, whose runs are driven, answered and resumed by the test."""
    from signoff.testing.project_fixture import ProjectFixture

    return ProjectFixture(tmp_path / "project")


class CassetteBox:
    """Puts agents on the tape of one test."""

    def __init__(self, file: Path, mode: Mode) -> None:
        self.file = file
        self.mode = mode

    def wrap(self, name: str, agent: Agent) -> Agent:
        """Returns an agent that is replayed, or recorded when pytest was told so."""
        from signoff.agents.cassette import CassetteAgent

        return CassetteAgent(file=self.file, agent=agent, mode=self.mode, name=name)
