"""A profile of another package works like a shipped one once it is installed."""

import json
import shutil
from pathlib import Path

import pytest

from tests.installed import ROOT, InstalledProject, create_environment

EXAMPLE = ROOT / "examples" / "profile_package"

CONFIG = """
version: 1
agents:
  script: {kind: scripted, file: script.yaml}
profiles:
  providers: {default: script}
  approval: {default_approver: skip, stages: {plan.response: manual}}
"""

LOADED = """
import json
from importlib.metadata import entry_points
import click
(point,) = entry_points(group="signoff.profiles")
group = click.Group()
profile = point.load()(group)
prompt = profile().generate_review_prompt({"change": "Add a column.", "dialect": "mysql"})
print(json.dumps([point.name, profile.get_metadata()["name"], list(group.commands), prompt]))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with signoff, the example, and pytest for the example's own tests."""
    environment = tmp_path_factory.mktemp("environment")
    create_environment(environment, str(EXAMPLE), "pytest", constraints="dev.txt")
    return environment


@pytest.fixture
def project(environment: Path, tmp_path: Path) -> InstalledProject:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    return InstalledProject(environment, tmp_path)


def test_the_entry_point_leads_to_the_profile_and_its_templates(project: InstalledProject) -> None:
    """Templates are no Python files and are easily left out of a package."""
    done = project.run("python", "-c", LOADED)

    assert done.returncode == 0, done.stderr
    point, name, commands, prompt = json.loads(done.stdout)
    assert (point, name, commands) == ("sql-migration", "sql-migration", ["dialects"])
    assert "> Add a column." in prompt
    assert "@@@REVIEW_META" in prompt


def test_the_examples_own_tests_pass_inside_the_repository(environment: Path) -> None:
    """They must not pick up the options of the repository's own tests."""
    inside = InstalledProject(environment, EXAMPLE)
    done = inside.run("python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")

    assert "7 passed" in done.stdout, done.stdout + done.stderr


@pytest.fixture
def commands(project: InstalledProject) -> InstalledProject:
    """A project for the commands of profiles."""
    project.signoff("init")
    (project.folder / ".signoff/config.yaml").write_text(CONFIG, "utf-8")
    return project


def test_the_profile_is_listed_run_and_resumed(commands: InstalledProject) -> None:
    """Users see no difference between shipped and installed profiles."""
    listed = commands.signoff("profile", "list")
    change = "change=Users get a nickname."
    waiting = commands.signoff("profile", "init", "sql-migration", "-c", change, "--name", "one")
    done = commands.signoff("profile", "approve", "one")

    assert "sql-migration" in listed.stdout
    assert "SQL migrations that can be undone." in listed.stdout
    assert (waiting.returncode, done.returncode) == (10, 0), waiting.stderr + done.stderr
    code = commands.folder / ".signoff/runs/one/iteration-1/code"
    assert sorted(path.name for path in code.iterdir()) == ["down.sql", "up.sql"]
