import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.cli_project import CliProject, is_alive
from tests.patience import wait_until

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.acceptance.command_server import CommandServer

server = CommandServer(os.environ, Path(sys.argv[1]))
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


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


@pytest.mark.slow
def test_a_killed_test_process_leaves_no_server_behind(tmp_path: Path) -> None:
    """Servers of crashed test runs would accumulate on the machine."""
    root = Path(__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], cwd=root, stdout=subprocess.PIPE, text=True
    )

    assert killed.returncode == -9
    wait_until(lambda: not is_alive(int(killed.stdout)), "the end of the server")
