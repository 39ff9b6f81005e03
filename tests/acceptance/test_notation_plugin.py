"""A notation of another package works like a built-in one once it is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "notation_plugin"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The `signoff` command of a new environment with only signoff and the example."""
    environment = tmp_path_factory.mktemp("environment")
    constraints = ROOT / "constraints"
    uv("venv", "--python", sys.executable, str(environment))
    uv(
        "pip", "install", "--python", str(environment),
        "--constraints", str(constraints / "runtime.txt"),
        "--build-constraints", str(constraints / "dev.txt"), str(ROOT), str(EXAMPLE),
    )  # fmt: skip
    return str(environment / "bin" / "signoff")


def uv(*arguments: str) -> None:
    """Installs from uv's cache; uses the network only if something is not in the cache."""
    command = [sys.executable, "-m", "uv", *arguments]
    if subprocess.run([*command, "--offline"], capture_output=True).returncode != 0:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class Project:
    """A folder in which the installed program runs."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder

    def signoff(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder / "home"), "LANG": "C.UTF-8"},
            input="",
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def pending(self, run: str) -> str:
        (request,) = json.loads(self.signoff("show", run, "--json").stdout)["inbox"]
        return str(request["prompt"])


@pytest.fixture
def project(program: str, tmp_path: Path) -> Project:
    return Project(program, tmp_path)


def test_a_preset_of_the_plugin_runs_waits_and_resumes(project: Project) -> None:
    """An option of the start is still valid at the resume."""
    created = project.signoff("init", "--preset", "checklist")
    config = project.folder / ".signoff/config.yaml"
    config.write_text("version: 1\nchecklists: {greeting: Have a look}\n")

    waiting = project.signoff("run", "release", "--owner", "Ann", "--name", "one")
    first = project.pending("one")
    approved = project.signoff("approve", "one", "--resume")
    second = project.pending("one")
    done = project.signoff("approve", "one", "--resume")

    assert "signoff run .signoff/flows/release.yaml --owner Ann" in created.stdout + created.stderr
    assert (waiting.returncode, approved.returncode, done.returncode) == (10, 10, 0), done.stderr
    assert first == "Have a look, Ann: The changelog is up to date."
    assert second == "Have a look, Ann: The tests are green."


def test_a_named_checklist_runs_without_a_file(project: Project) -> None:
    """The target `checklist:travel` works in a folder that is not a project yet."""
    waiting = project.signoff("run", "checklist:travel", "--owner", "Bob", "--name", "trip")
    asked = project.pending("trip")
    done = project.signoff("approve", "trip", "--resume")

    assert (waiting.returncode, done.returncode) == (10, 0), waiting.stderr + done.stderr
    assert asked == "Please check, Bob: The passport is valid."


def test_a_rejected_item_ends_the_checklist_as_rejected(project: Project) -> None:
    """Only a checklist that is approved to its end may exit with 0."""
    project.signoff("run", "checklist:travel", "--name", "trip")

    rejected = project.signoff("reject", "trip", "--why", "it has expired", "--resume")

    assert rejected.returncode == 14, rejected.stderr


def test_the_command_of_the_plugin_is_listed_and_works(project: Project) -> None:
    """Users find commands in the help."""
    listed = project.signoff("--help")
    checklists = project.signoff("checklists")

    assert "List named checklists." in listed.stdout
    assert "checklist:travel" in checklists.stdout, checklists.stderr


def test_mistakes_are_reported_as_for_built_in_notations(project: Project) -> None:
    """Options of other notations, unknown names, parameters and settings are refused."""
    (project.folder / "flow.yaml").write_text("goal: x\nworkflow: [{step: generate}]\n")

    foreign = project.signoff("run", "flow.yaml", "--owner", "Ann")
    unknown = project.signoff("run", "checklist:travle")
    parameter = project.signoff("run", "checklist:travel", "-i", "foo=bar")
    project.signoff("init")
    config = project.folder / ".signoff/config.yaml"
    config.write_text("version: 1\nchecklist: {greeting: Hello}\n")
    section = project.signoff("runs")

    codes = [each.returncode for each in (foreign, unknown, parameter, section)]
    assert codes == [2, 2, 2, 2], section.stderr
    assert "--owner cannot be used with flow.yaml" in foreign.stderr
    assert "travel" in unknown.stderr
    assert "it takes none" in parameter.stderr
    assert "checklists" in section.stderr
