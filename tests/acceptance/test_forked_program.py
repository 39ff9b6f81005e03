from tests.acceptance.cli_project import CliProject


def test_a_command_has_its_own_folder_environment_and_streams(project: CliProject) -> None:
    """Otherwise tests would affect each other, or the machine's settings affect them."""
    project.write("questions.py", QUESTIONS)

    done = project.signoff("run", "questions.py", "--json", input_text="typed", MY_NAME="ann")

    assert done.returncode == 0, done.stderr
    assert "typed ann" in done.stderr
    assert (project.folder / ".signoff").is_dir()


QUESTIONS = """
import os
import sys

from signoff import Outcome, StepDef, Workflow


def work(ctx):
    print(sys.stdin.read(), os.environ["MY_NAME"], file=sys.stderr)
    return Outcome.OK, {}


WORKFLOW = Workflow("questions", StepDef("only", handler=work, next={Outcome.OK: None}))
"""
