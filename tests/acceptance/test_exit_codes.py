import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import ENDS

AGENTS = """
from signoff import Reply

class Echo:
    async def ask(self, request, call):
        return Reply(request.prompt)
"""


@pytest.fixture
def ends(project: CliProject) -> CliProject:
    project.write("ends.py", ENDS)
    project.write("my_agents.py", AGENTS)
    project.write(".signoff/config.yaml", "agents: {echo: {kind: 'my_agents:Echo'}}\n")
    return project


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("completed", 0),
        ("failed", 1),
        ("waiting", 10),
        ("round_limit", 11),
        ("not_converging", 13),
        ("rejected", 14),
        ("parked", 75),
    ],
)
def test_each_end_of_a_run_has_its_exit_code(ends: CliProject, ending: str, code: int) -> None:
    """Scripts rely on exit codes to tell waiting from failure."""
    done = ends.signoff("run", "ends.py", "-i", f"ending={ending}", "--name", "one")

    assert done.returncode == code, done.stderr
    report = ends.json("show", "one")
    assert (report["status"], report["exit_code"]) == (ending, code)
    assert "Traceback" not in done.stderr


def test_a_cancelled_run_exits_with_15_when_it_is_resumed(ends: CliProject) -> None:
    """A cancelled run cannot be resumed."""
    ends.signoff("run", "ends.py", "-i", "ending=waiting", "--name", "one")

    cancelled = ends.signoff("cancel", "one", "--why", "wrong input")

    assert cancelled.returncode == 0
    assert ends.signoff("resume", "one").returncode == 15
    assert ends.signoff("cancel", "one").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "nope.py"],
        ["run", "nope.yaml"],
        ["run", "unknown"],
        ["run", "ends.py", "-i", "nonsense"],
        ["run", "ends.py", "-i", "unknown=1"],
        ["run", "ends.py", "--limit", "euro=1"],
        # Only Python takes them for numbers; whoever typed one may have meant 1.000 or 1,000.
        ["run", "ends.py", "--limit", "usd=1_000"],
        ["run", "ends.py", "--limit", "calls=1_0"],
        ["run", "ends.py", "--events", "mistyped/events.jsonl"],
        ["run", "ends.py", "--name", "../escape"],
        ["run", "broken.py"],
        ["show", "unknown"],
        ["answer", "99", "x"],
        ["runs", "--status", "stuck"],
        ["frobnicate"],
        ["resume", "--due", "one"],
    ],
    ids=" ".join,
)
def test_an_invalid_command_line_is_one_line_of_error_and_exits_with_2(
    ends: CliProject, arguments: list[str]
) -> None:
    """A traceback, or the exit code of a failed run, would mislead the user."""
    ends.write("broken.py", "raise ValueError('oops')\n")

    done = ends.signoff(*arguments)

    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("signoff: ")
    assert len(done.stderr.splitlines()) <= 2
    assert ends.json("runs") == []


def test_a_dry_run_starts_nothing(project: CliProject) -> None:
    """Not even the project's folder is created."""
    project.write("ends.py", ENDS)

    done = project.signoff("run", "ends.py", "-i", "ending=failed", "--dry-run")

    assert done.returncode == 0, done.stderr
    assert "ending = 'failed'" in done.stdout
    assert not (project.folder / ".signoff").exists()


@pytest.mark.parametrize("mistake", ["kind: manuel", "kind: manual, modle: x"])
def test_a_dry_run_with_a_mistake_in_the_settings_of_an_agent_fails(
    ends: CliProject, mistake: str
) -> None:
    """It used to report a valid plan."""
    ends.write(".signoff/config.yaml", f"agents:\n  ann: {{{mistake}}}\n")

    done = ends.signoff("run", "ends.py", "--dry-run")

    assert done.returncode == 2
    assert "agents.ann: unknown " in done.stderr
    assert "Plan is valid" not in done.stdout


@pytest.mark.parametrize(
    ("ending", "wrong", "right"),
    [
        ("failed", 'raise RuntimeError("out of luck")', "return Outcome.OK, {}"),
        ("round_limit", 'Edge("only", bound=2)', "None"),
    ],
)
def test_a_run_with_a_fixed_workflow_resumes_by_the_printed_command(
    ends: CliProject, ending: str, wrong: str, right: str
) -> None:
    """The printed command must not be refused after the user has fixed the workflow."""
    stopped = ends.signoff("run", "ends.py", "-i", f"ending={ending}", "--name", "one")
    ends.write("ends.py", ENDS.replace(wrong, right))
    (hint,) = [line for line in stopped.stdout.splitlines() if line.endswith("--adopt")]

    resumed = ends.signoff(*hint.partition("signoff ")[2].split())

    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.parametrize(("ending", "code"), [("completed", 0), ("waiting", 10)])
def test_an_events_file_that_cannot_be_written_does_not_change_the_result(
    ends: CliProject, ending: str, code: int
) -> None:
    """Watching a run must not be able to break it."""
    done = ends.signoff("run", "ends.py", "-i", f"ending={ending}", "-q", "--events", "/dev/full")

    assert done.returncode == code
    assert done.stderr == (
        "warning: /dev/full cannot be written, so events are missing in it: "
        "No space left on device\n"
    )
    assert ending in done.stdout
