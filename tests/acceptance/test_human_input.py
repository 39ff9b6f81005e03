import subprocess
import sys

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import ENDS, SIGNS

SCRIPT = """
if __name__ == "__main__":
    import signoff

    signoff.run(WORKFLOW, name="one")
"""


@pytest.fixture
def waiting(project: CliProject) -> CliProject:
    """A run that waits for an approval; the process that started it has exited."""
    project.write("signs.py", SIGNS)
    done = project.signoff("run", "signs.py", "--name", "one")
    assert done.returncode == 10, done.stderr
    return project


def test_a_run_is_started_answered_and_resumed_by_three_processes(waiting: CliProject) -> None:
    """Days may pass in between, and no process has to keep running."""
    answered = waiting.signoff("approve", "one", "--by", "ann", "--why", "reads well")
    resumed = waiting.signoff("resume", "one")

    assert (answered.returncode, resumed.returncode) == (0, 0), resumed.stderr
    final = waiting.folder / ".signoff" / "runs" / "one" / "final" / "published.md"
    assert final.read_text() == "the draft\n"
    assert (waiting.folder / "calls.txt").read_text() == "drafted\n"
    assert "approved by ann: reads well" in waiting.signoff("logs", "one").stdout


def test_the_reason_of_a_rejection_is_shown_before_and_after_the_resume(
    waiting: CliProject,
) -> None:
    """The author needs the reason to fix the draft."""
    waiting.signoff("reject", "one", "--by", "ann", "--why", "meddled")
    before = [waiting.signoff(command, "one").stdout for command in ("logs", "show")]
    waiting.signoff("resume", "one")
    after = [waiting.signoff(command, "one").stdout for command in ("logs", "show")]

    assert all("rejected by ann: meddled" in text for text in (*before, *after))
    (decision,) = waiting.json("show", "one")["decisions"]
    assert (decision["value"], decision["by"], decision["text"]) == (False, "ann", "meddled")


def test_the_printed_command_works(waiting: CliProject) -> None:
    """Users copy and paste it."""
    (request,) = waiting.json("inbox")
    command = request["commands"][0]
    assert command in waiting.signoff("show").stdout

    done = waiting.signoff(*command.split()[1:])

    assert done.returncode == 0, done.stderr
    assert waiting.json("show")["status"] == "completed"


def test_an_answer_can_come_from_a_file_or_a_pipe(project: CliProject) -> None:
    """A response may be several pages long."""
    project.write("ends.py", ENDS)
    project.write("name.txt", "Bob\n")
    for name in ("one", "two"):
        project.signoff("run", "ends.py", "-i", "ending=waiting", "--name", name)

    by_file = project.signoff("answer", "one", "--file", "name.txt", "--resume")
    by_pipe = project.signoff("answer", "two", "-", "--resume", input_text="Rob\n")

    assert (by_file.returncode, by_pipe.returncode) == (0, 0), by_pipe.stderr


def test_without_a_terminal_a_run_does_not_prompt(waiting: CliProject) -> None:
    """A build server would wait forever."""
    done = waiting.signoff("resume", input_text="y\n\n")

    assert done.returncode == 10
    assert "signoff approve 1 --digest" in done.stdout


def test_a_run_started_by_a_python_script_is_answered_and_resumed_on_the_command_line(
    project: CliProject,
) -> None:
    """The script has exited long before the human answers."""
    project.write("signs.py", SIGNS + SCRIPT)

    started = subprocess.run(
        [sys.executable, "signs.py"],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
    )
    approved = project.signoff("approve", "--resume")

    assert started.returncode == 0, started.stderr
    assert approved.returncode == 0, approved.stderr
    assert project.json("show", "one")["target"] == "signs.py:WORKFLOW"


def test_a_request_number_is_not_taken_for_an_answer(project: CliProject) -> None:
    """`signoff answer 1` must not record "1" as the answer, because that cannot be undone."""
    project.write("ends.py", ENDS)
    project.signoff("run", "ends.py", "-i", "ending=waiting", "--name", "one")

    refused = [project.signoff("answer", word) for word in ("1", "#1", "one")]
    answered = project.signoff("answer", "Bob")

    assert [done.returncode for done in refused] == [2, 2, 2]
    assert all("answer it: signoff answer" in done.stderr for done in refused)
    assert answered.returncode == 0, answered.stderr


BLIND = """
from signoff import Condition, Gate, Outcome, StepDef, Workflow

def draft(ctx):
    return Outcome.OK, {"draft": "Our tea is the best."}

WORKFLOW = Workflow(
    "blind",
    StepDef(
        "draft",
        handler=draft,
        retries=0,
        postconditions=[Condition("modest", lambda ctx: False, "it promises too much")],
        gate=Gate("Publish it?"),
    ),
)
"""


def test_whoever_accepts_a_result_sees_it(project: CliProject) -> None:
    """Neither the escalation nor a gate that names nothing showed what it was about."""
    project.write("blind.py", BLIND)
    project.signoff("run", "blind.py", "--name", "one", "--no-input")

    escalated = project.signoff("inbox", "1").stdout
    project.signoff("answer", "1", "accept", "--resume", "--no-input")
    gate = project.signoff("inbox", "2").stdout

    assert "accept" in escalated
    assert "it promises too much" in escalated
    assert "Our tea is the best." in escalated
    assert "Publish it?" in gate
    assert "draft: Our tea is the best." in gate
