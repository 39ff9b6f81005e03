"""What users are told about rejections, unused answers, busy agents and errors in scripts."""

from __future__ import annotations

import json
from subprocess import CompletedProcess

import pytest

from tests.acceptance.cli_project import CliProject

WORKFLOW = """
from signoff import Approval, End, Outcome, StepDef, Workflow

async def sign_off(ctx):
    answer = await ctx.wait(Approval("Publish this?", "text"))
    return (Outcome.OK if answer.approved else Outcome.FAIL), {}

next_steps = {Outcome.OK: None, Outcome.FAIL: End.REJECTED}
WORKFLOW = Workflow("gate", StepDef("sign_off", handler=sign_off, next=next_steps))
"""


def run(project: CliProject, *arguments: str, code: int) -> CompletedProcess[str]:
    """Runs a command that ends with this code."""
    done = project.signoff(*arguments)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def waiting(project: CliProject) -> CliProject:
    """A run that waits for an approval."""
    project.write("gate.py", WORKFLOW)
    run(project, "run", "gate.py", "--name", "one", "--no-input", "--quiet", code=10)
    return project


def test_a_rejected_run_says_why_in_the_list_and_in_detail(waiting: CliProject) -> None:
    """The reason is what the next person needs, wherever they look."""
    run(waiting, "reject", "one", "--why", "too \x1b[31mloud", "--resume", code=14)

    assert waiting.json("runs")[0]["reason"] == "too \x1b[31mloud"
    assert waiting.signoff("runs").stdout.splitlines()[1].endswith("too loud")
    assert waiting.signoff("show", "one").stdout.startswith("✗ rejected  one: too loud\n")


def test_an_answered_run_says_that_it_was_not_resumed(waiting: CliProject) -> None:
    """It looks as if it waited for someone, and waits for a command."""
    before = waiting.json("runs")[0]["answered"]
    waiting.signoff("approve", "one")

    assert (before, waiting.json("runs")[0]["answered"]) == (False, True)
    listed = waiting.signoff("runs").stdout.splitlines()[1]
    assert listed.endswith("answered, not resumed yet: signoff resume one")
    assert waiting.signoff("show", "one").stdout.startswith("● answered, not resumed yet  one\n")


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["show", "two"], "UnknownName", 2),
        (["runs", "--status", "bad"], "UnknownName", 2),
        (["show", "--unknown"], "NoSuchOption", 2),
        (["run", "gate.py", "-i", "unused=1"], "InvalidParams", 2),
        (["approve", "one", "--digest", "0123456789ab"], "StaleApproval", 1),
        (["runs", "--delete", "one"], "UsageError", 2),
    ],
)
def test_an_error_is_a_json_document_where_json_was_asked_for(
    waiting: CliProject, arguments: list[str], kind: str, code: int
) -> None:
    """A script parses standard output, also when something went wrong."""
    done = run(waiting, *arguments, "--json", code=code)

    document = json.loads(done.stdout)
    assert (document["error"]["kind"], document["exit_code"]) == (kind, code)
    assert document["error"]["message"] in done.stderr


def test_a_run_is_deleted_with_its_files(waiting: CliProject) -> None:
    """A project is used for years."""
    run(waiting, "run", "gate.py", "--name", "two", "--no-input", "--quiet", code=10)

    waiting.signoff("runs", "--delete", "one", "--yes")

    assert [row["run"] for row in waiting.json("runs")] == ["two"]
    assert not (waiting.folder / ".signoff/runs/one").exists()
    assert waiting.signoff("runs", "--prune", "1d").stdout == "no run ended longer than 1d ago\n"


def test_a_project_is_backed_up(waiting: CliProject) -> None:
    """The copy is complete, although runs may continue meanwhile."""
    made = waiting.json("backup", "copy.db")

    assert made["runs"] == 1
    assert (waiting.folder / "copy.db").exists()


FLOW = """
goal: A slogan.
constraints: {inline: {short: Short.}}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
"""


def test_without_an_agent_nothing_starts_and_the_message_says_what_works(
    project: CliProject,
) -> None:
    """A first run without any account has to lead somewhere."""
    project.write("slogan.yaml", FLOW)

    refused = run(project, "run", "slogan.yaml", code=2)
    by_hand = run(project, "run", "slogan.yaml", "--agent", "manual", "--no-input", code=10)

    pulled = run(project, "run", "slogan.yaml", "--pull", "--agent", "manual", code=2)

    assert "leave out --agent" in pulled.stderr
    assert "answer by hand; add --agent manual; " in refused.stderr
    assert "signoff doctor -v" in refused.stderr
    assert "#1 manual work" in by_hand.stdout
