"""A notation of another package works like a built-in one once it is installed."""

import json
from pathlib import Path

import pytest

from tests.installed import ROOT, InstalledProject, create_environment

EXAMPLE = ROOT / "examples" / "notation_plugin"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with only signoff and the example."""
    environment = tmp_path_factory.mktemp("environment")
    create_environment(environment, str(EXAMPLE))
    return environment


@pytest.fixture
def project(environment: Path, tmp_path: Path) -> InstalledProject:
    return InstalledProject(environment, tmp_path)


def pending(project: InstalledProject, run: str) -> str:
    """Returns what the open request of a run asks."""
    (request,) = json.loads(project.signoff("show", run, "--json").stdout)["inbox"]
    return str(request["prompt"])


def test_a_preset_of_the_plugin_runs_waits_and_resumes(project: InstalledProject) -> None:
    """An option of the start is still valid at the resume."""
    created = project.signoff("init", "--preset", "checklist")
    config = project.folder / ".signoff/config.yaml"
    config.write_text("version: 1\nchecklists: {greeting: Have a look}\n")

    waiting = project.signoff("run", "release", "--owner", "Ann", "--name", "one")
    first = pending(project, "one")
    approved = project.signoff("approve", "one", "--resume")
    second = pending(project, "one")
    done = project.signoff("approve", "one", "--resume")

    assert "signoff run .signoff/flows/release.yaml --owner Ann" in created.stdout + created.stderr
    assert (waiting.returncode, approved.returncode, done.returncode) == (10, 10, 0), done.stderr
    assert first == "Have a look, Ann: The changelog is up to date."
    assert second == "Have a look, Ann: The tests are green."


def test_a_named_checklist_runs_without_a_file(project: InstalledProject) -> None:
    """The target `checklist:travel` works in a folder that is not a project yet."""
    waiting = project.signoff("run", "checklist:travel", "--owner", "Bob", "--name", "trip")
    asked = pending(project, "trip")
    done = project.signoff("approve", "trip", "--resume")

    assert (waiting.returncode, done.returncode) == (10, 0), waiting.stderr + done.stderr
    assert asked == "Please check, Bob: The passport is valid."


def test_mistakes_are_reported_as_for_built_in_notations(project: InstalledProject) -> None:
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
