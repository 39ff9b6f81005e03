import json

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import ENDS

SHOWING = [
    ["init"],
    ["validate", "ends.py"],
    ["graph", "ends.py"],
    ["run", "ends.py"],
    ["run", "ends.py", "-i", "way=failed"],
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
    project.signoff("run", "ends.py", "-i", "way=waiting", "--name", "one")
    return project


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_with_json_stdout_is_one_document_and_nothing_else(
    waiting: CliProject, arguments: list[str]
) -> None:
    """Every command that shows something can be read by a program."""
    done = waiting.signoff(*arguments, "--json")

    json.loads(done.stdout)
    assert "Traceback" not in done.stderr


def test_the_state_of_a_run_is_shown_to_whoever_asks_for_it(project: CliProject) -> None:
    """A script goes on with what a run has made; it may be long, so nobody else gets it."""
    project.write("flow.py", MAKES)
    project.signoff("run", "flow.py", "--name", "one")

    asked = json.loads(project.signoff("show", "one", "--json", "--state").stdout)
    usual = json.loads(project.signoff("show", "one", "--json").stdout)
    read = project.signoff("show", "one", "--state").stdout

    assert asked.pop("state") == {"notes": ["on cats", "on dögs"]}
    assert asked == usual
    assert '"on dögs"' in read


def test_a_failed_command_says_nothing_on_stdout(waiting: CliProject) -> None:
    """Half a document is worse than none."""
    done = waiting.signoff("show", "nobody", "--json")

    assert done.returncode == 2
    assert done.stdout == ""


def test_events_are_written_as_lines_of_json(waiting: CliProject) -> None:
    """A dashboard follows the file while the run goes on."""
    waiting.signoff("run", "ends.py", "--name", "two", "--events", "events.jsonl")

    lines = (waiting.folder / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert events[0]["e"] == "run_started"
    assert events[-1]["e"] == "run_stopped"
    assert {event["run"] for event in events} == {"two"}


def test_output_that_nobody_reads_to_the_end_is_no_error(waiting: CliProject) -> None:
    """`signoff logs | head -1` ends the pipe early."""
    import subprocess

    from tests.acceptance.cli_project import PROGRAM

    done = subprocess.run(
        ["sh", "-c", f"{PROGRAM} logs --json | head -c 1"],
        cwd=waiting.folder,
        env=waiting.environment,
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""


def test_colours_are_for_terminals_only(waiting: CliProject) -> None:
    """Escape codes in a log file cannot be read."""
    for arguments in (["runs"], ["show"], ["inbox"], ["doctor"]):
        assert "\x1b" not in waiting.signoff(*arguments).stdout


def test_settings_say_where_they_come_from(waiting: CliProject) -> None:
    """`config show` settles the question why a limit does not hold."""
    waiting.write(".signoff/config.yaml", "version: 1\nlimits:\n  calls: 7\n")

    shown = json.loads(waiting.signoff("config", "show", "--json", SIGNOFF_LIMITS_USD="2").stdout)

    assert shown["limits.calls"]["origin"].endswith("config.yaml:3")
    assert shown["limits.usd"] == {"value": 2.0, "origin": "environment SIGNOFF_LIMITS_USD"}


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


def test_a_workflow_that_prints_does_not_spoil_the_document(project: CliProject) -> None:
    """Scripts read stdout as JSON; a stray `print` in a handler must not break them."""
    project.write("talks.py", TALKS)

    done = project.signoff("run", "talks.py", "--json")

    assert json.loads(done.stdout)["status"] == "completed"
    assert "imported" in done.stderr
    assert "at work" in done.stderr
    assert "a program" in done.stderr
