import json

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import ENDS

SHOWING = [
    ["init"],
    ["validate", "ends.py"],
    ["graph", "ends.py"],
    ["run", "ends.py"],
    ["run", "ends.py", "-i", "ending=failed"],
    ["run", "ends.py", "--dry-run"],
    ["runs"],
    ["show"],
    ["show", "--state"],
    ["logs"],
    ["inbox"],
    ["inbox", "1"],
    ["answer", "Bob"],
    ["answer", "Bob", "--resume"],
    ["resume"],
    ["resume", "--due"],
    ["cancel"],
    ["config", "show"],
    ["config", "path"],
    ["doctor"],
]

MAKES = """
from signoff import Outcome, StepDef, Workflow


def make(ctx):
    return Outcome.OK, {"notes": ["on cats", "on dögs"]}


WORKFLOW = Workflow("makes", StepDef("make", handler=make, next={Outcome.OK: None}))
"""


@pytest.fixture
def waiting(project: CliProject) -> CliProject:
    project.write("ends.py", ENDS)
    project.signoff("run", "ends.py", "-i", "ending=waiting", "--name", "one")
    return project


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_with_json_stdout_is_exactly_one_document(
    waiting: CliProject, arguments: list[str]
) -> None:
    """Programs read the output of every command."""
    done = waiting.signoff(*arguments, "--json")

    json.loads(done.stdout)
    assert "Traceback" not in done.stderr


def test_the_state_of_a_run_is_shown_on_request(project: CliProject) -> None:
    """Scripts use the result of a run; it may be long, so it is not shown by default."""
    project.write("flow.py", MAKES)
    project.signoff("run", "flow.py", "--name", "one")

    asked = json.loads(project.signoff("show", "one", "--json", "--state").stdout)
    usual = json.loads(project.signoff("show", "one", "--json").stdout)
    read = project.signoff("show", "one", "--state").stdout

    assert asked.pop("state") == {"notes": ["on cats", "on dögs"]}
    assert asked == usual
    assert '"on dögs"' in read


def test_events_are_written_as_lines_of_json(waiting: CliProject) -> None:
    """Dashboards read the file while the run is active."""
    waiting.signoff("run", "ends.py", "--name", "two", "--events", "events.jsonl")

    lines = (waiting.folder / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert events[0]["e"] == "run_started"
    assert events[-1]["e"] == "run_stopped"
    assert {event["run"] for event in events} == {"two"}


def test_a_closed_pipe_is_not_an_error(waiting: CliProject) -> None:
    """`signoff logs | head -1` closes the pipe early."""
    import shlex
    import subprocess

    from tests.acceptance.cli_project import PROGRAM

    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(PROGRAM)} logs --json | head -c 1"],
        cwd=waiting.folder,
        env=waiting.environment,
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""


def test_colors_are_for_terminals_only(waiting: CliProject) -> None:
    """Escape codes make a log file unreadable."""
    for arguments in (["runs"], ["show"], ["inbox"], ["doctor"]):
        assert "\x1b" not in waiting.signoff(*arguments).stdout


TALKS = """
import subprocess
import sys

from signoff import Outcome, StepDef, Workflow

print("imported")


def work(ctx):
    print("at work")
    subprocess.run([sys.executable, "-c", "print('a program')"], check=True)
    return Outcome.OK, {}


WORKFLOW = Workflow("talks", StepDef("only", handler=work, next={Outcome.OK: None}))
"""


def test_a_workflow_that_prints_does_not_break_the_json_output(project: CliProject) -> None:
    """Scripts read stdout as JSON; a stray `print` in a handler must not break them."""
    project.write("talks.py", TALKS)

    done = project.signoff("run", "talks.py", "--json")

    assert json.loads(done.stdout)["status"] == "completed"
    assert "imported" in done.stderr
    assert "at work" in done.stderr
    assert "a program" in done.stderr
