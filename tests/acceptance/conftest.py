import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.cli_project import ENVIRONMENT, CliProject, is_alive
from tests.acceptance.flow_project import FlowProject
from tests.acceptance.forked_program import ForkedProgram
from tests.acceptance.profile_project import ProfileProject
from tests.acceptance.review_project import ReviewProject


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedProgram]:
    with closing(ForkedProgram(tmp_path_factory.mktemp("commands"), ENVIRONMENT)) as server:
        yield server


@pytest.fixture(scope="session")
def forked_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedProgram]:
    with closing(ForkedProgram(tmp_path_factory.mktemp("program"))) as program:
        yield program


@pytest.fixture
def project(tmp_path: Path, command_server: ForkedProgram) -> Iterator[CliProject]:
    with closing(CliProject(tmp_path, command_server)) as project:
        yield project
    pid_file = tmp_path / "pid"
    if pid_file.exists() and is_alive(int(pid_file.read_text())):
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


@pytest.fixture
def flow_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[FlowProject]:
    """A project whose agents are stubs of the vendors' programs."""
    with closing(FlowProject(tmp_path, command_server, monkeypatch)) as project:
        yield project


@pytest.fixture
def profile_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[ProfileProject]:
    """A project with a small profile of its own."""
    with closing(ProfileProject(tmp_path, command_server, monkeypatch)) as project:
        yield project


@pytest.fixture
def review_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[ReviewProject]:
    """A git repository whose critics are scripted."""
    with closing(ReviewProject(tmp_path, command_server, monkeypatch)) as project:
        yield project
