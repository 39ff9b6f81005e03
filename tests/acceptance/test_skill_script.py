"""`signoff skill script`: runs the script of a sub-agent in the Python that has signoff."""

import pytest

from tests.acceptance.cli_project import CliProject

SCRIPT = """
import sys
from pathlib import Path

import signoff

print(__name__, Path(sys.argv[0]).name, sys.argv[1:])
if "--fail" in sys.argv:
    raise ValueError("first line\\nsecond line")
sys.exit(3)
"""


@pytest.mark.parametrize("file", ["checks/review.py", ".signoff/skills/review.py"])
def test_a_script_of_the_project_runs_with_its_own_arguments(
    project: CliProject, file: str
) -> None:
    """Options belong to the script, even those that every command has."""
    project.write(file, SCRIPT)
    module = "checks.review" if file.startswith("checks") else "review"

    done = project.signoff("skill", "script", module, "--phase", "a b", "--help")

    assert done.stdout == "__main__ review.py ['--phase', 'a b', '--help']\n"
    assert (done.returncode, done.stderr) == (3, "")


def test_a_skill_that_is_a_script_shows_its_first_step(project: CliProject) -> None:
    """A sub-agent can follow a skill of its own."""
    done = project.signoff("skill", "script", "signoff.skills.library.deepthink")

    assert done.stdout.startswith("# deepthink, step 1 of ")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", ["nowhere", "no.where", "../up", "a b", ""])
def test_a_script_that_does_not_exist_is_one_line(project: CliProject, module: str) -> None:
    """The sub-agent reports it instead of guessing what to do."""
    done = project.signoff("skill", "script", module)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"signoff: unknown script {module!r}: there is no Python module of that name\n"
    )


def test_a_script_that_fails_is_one_line_with_its_place(project: CliProject) -> None:
    """A traceback would be read as the instructions."""
    project.write("review.py", SCRIPT)

    done = project.signoff("skill", "script", "review", "--fail")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "the script review failed: " in done.stderr
    assert "review.py:9: ValueError: first line" in done.stderr
