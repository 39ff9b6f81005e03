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
    ("way", "code"),
    [
        ("completed", 0),
        ("failed", 1),
        ("waiting", 10),
        ("iteration_limit", 11),
        ("not_converging", 13),
        ("rejected", 14),
        ("parked", 75),
    ],
)
def test_each_end_of_a_run_has_its_exit_code(ends: CliProject, way: str, code: int) -> None:
    """Scripts tell a wait from a failure by nothing else."""
    done = ends.signoff("run", "ends.py", "-i", f"way={way}", "--name", "one")

    assert done.returncode == code, done.stderr
    report = ends.json("show", "one")
    assert (report["status"], report["exit_code"]) == (way, code)
    assert "Traceback" not in done.stderr


def test_a_run_that_reaches_its_ceiling_exits_with_12_and_can_be_given_more(
    ends: CliProject,
) -> None:
    """The ceiling survives a resume, and a higher one lets the run go on."""
    stopped = ends.signoff("run", "ends.py", "-i", "way=budget", "--limit", "calls=0")
    again = ends.signoff("resume")
    more = ends.signoff("resume", "--limit", "calls=1")

    assert [stopped.returncode, again.returncode, more.returncode] == [12, 12, 0]
    assert "--limit calls=NUMBER" in stopped.stdout
    assert ends.json("show")["spend"]["usd"] is None


def test_a_cancelled_run_exits_with_15_when_it_is_resumed(ends: CliProject) -> None:
    """Cancelled is for good."""
    ends.signoff("run", "ends.py", "-i", "way=waiting", "--name", "one")

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
        ["run", "nobody"],
        ["run", "ends.py", "-i", "nonsense"],
        ["run", "ends.py", "-i", "unknown=1"],
        ["run", "ends.py", "--limit", "euro=1"],
        ["run", "ends.py", "--name", "../escape"],
        ["run", "broken.py"],
        ["show", "nobody"],
        ["answer", "99", "x"],
        ["runs", "--status", "stuck"],
        ["frobnicate"],
        ["resume", "--due", "one"],
    ],
    ids=" ".join,
)
def test_a_request_that_makes_no_sense_is_one_line_and_exits_with_2(
    ends: CliProject, arguments: list[str]
) -> None:
    """A traceback, or a code that means failure, would send people looking in the wrong place."""
    ends.write("broken.py", "raise ValueError('oops')\n")

    done = ends.signoff(*arguments)

    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("signoff: ")
    assert len(done.stderr.splitlines()) <= 2
    assert ends.json("runs") == []


def test_a_traceback_is_shown_when_it_is_asked_for(ends: CliProject) -> None:
    """Whoever mends a broken workflow needs more than a line."""
    ends.write("broken.py", "raise ValueError('oops')\n")

    done = ends.signoff("run", "broken.py", "--debug")

    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "broken.py:1: ValueError: oops" in done.stderr


def test_a_name_that_is_taken_is_refused_with_the_way_to_go_on(ends: CliProject) -> None:
    """`run` never continues a run, and never replaces one."""
    ends.signoff("run", "ends.py", "-i", "way=waiting", "--name", "one")

    again = ends.signoff("run", "ends.py", "--name", "one")

    assert again.returncode == 2
    assert "signoff resume one" in again.stderr
    assert ends.json("show", "one")["status"] == "waiting"


def test_several_problems_are_reported_together(ends: CliProject) -> None:
    """One try, all mistakes."""
    ends.write(
        "bad.py",
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow('bad', StepDef('a', next={Outcome.OK: 'x'}), StepDef('b'))\n",
    )

    done = ends.signoff("validate", "bad.py")

    assert done.returncode == 2
    assert len(done.stdout.splitlines()) >= 3
    assert all(line.startswith("bad.py:2: ") for line in done.stdout.splitlines())
    assert ends.signoff("validate", "ends.py").returncode == 0


def test_a_dry_run_starts_nothing(project: CliProject) -> None:
    """Not even the project's folder is made."""
    project.write("ends.py", ENDS)

    done = project.signoff("run", "ends.py", "-i", "way=failed", "--dry-run")

    assert done.returncode == 0, done.stderr
    assert "way = 'failed'" in done.stdout
    assert not (project.folder / ".signoff").exists()


def test_a_changed_workflow_is_not_silently_gone_on_with(ends: CliProject) -> None:
    """The run was started under other rules."""
    ends.signoff("run", "ends.py", "-i", "way=waiting", "--name", "one")
    # Another length too: Python tells source files apart by their size and the second of change.
    ends.write("ends.py", ENDS.replace("bound=2", "bound=30"))

    refused = ends.signoff("resume", "one")
    adopted = ends.signoff("resume", "one", "--adopt")

    assert refused.returncode == 1
    assert "--adopt" in refused.stderr
    assert adopted.returncode == 10


@pytest.mark.parametrize(
    ("way", "wrong", "right"),
    [
        ("failed", 'raise RuntimeError("out of luck")', "return Outcome.OK, {}"),
        ("iteration_limit", 'Edge("only", bound=2)', "None"),
    ],
)
def test_a_run_whose_workflow_was_mended_goes_on_by_the_command_it_printed(
    ends: CliProject, way: str, wrong: str, right: str
) -> None:
    """The hint once led to a refusal, just when somebody had done what it said."""
    stopped = ends.signoff("run", "ends.py", "-i", f"way={way}", "--name", "one")
    ends.write("ends.py", ENDS.replace(wrong, right))
    (hint,) = [line for line in stopped.stdout.splitlines() if line.endswith("--adopt")]

    resumed = ends.signoff(*hint.partition("signoff ")[2].split())

    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.parametrize(("way", "code"), [("completed", 0), ("waiting", 10)])
def test_a_file_of_events_that_cannot_be_written_does_not_change_how_a_run_ends(
    ends: CliProject, way: str, code: int
) -> None:
    """Whoever watches a run must not be able to break it."""
    done = ends.signoff("run", "ends.py", "-i", f"way={way}", "-q", "--events", "/dev/full")

    assert done.returncode == code
    assert done.stderr == (
        "warning: /dev/full cannot be written, so events are missing in it: "
        "No space left on device\n"
    )
    assert way in done.stdout


def test_a_file_of_events_in_no_folder_is_refused_before_the_run_starts(ends: CliProject) -> None:
    """A mistyped path is found now, and not when somebody looks for the events."""
    done = ends.signoff("run", "ends.py", "--events", "mistyped/events.jsonl")

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "signoff: --events: cannot write mistyped/events.jsonl: No such file or directory"
    ]
    assert not (ends.folder / "mistyped").exists()
    assert ends.json("runs") == []
