"""Tests that no text of an agent can control the user's terminal."""

import json

from signoff.documents.control_characters import CONTROL
from tests.acceptance.cli_project import CliProject

HOSTILE = "ok\x1b[2J\x9b31m\x7f\u202e\u2066 done"
FLOW = f"""
from signoff import Outcome, Question, StepDef, Workflow

TEXT = {HOSTILE!r}

async def work(ctx):
    await ctx.write("final/artifact.md", TEXT)
    await ctx.command(["printf", "%s", TEXT])
    ctx.progress(TEXT)
    await ctx.wait(Question(TEXT))
    return Outcome.OK, {{}}

async def before(ctx):
    return Outcome.OK, {{"text": TEXT, TEXT: 1}}

WORKFLOW = Workflow(
    "asks",
    StepDef("first", handler=before, next={{Outcome.OK: "second"}}),
    StepDef("second", handler=work, next={{Outcome.OK: None}}),
)
"""


def test_json_and_files_of_a_run_hold_no_raw_control_characters(project: CliProject) -> None:
    """Otherwise a reply could change what the approver sees on the screen."""
    project.write("flow.py", FLOW)

    ran = project.signoff("run", "flow.py", "--name", "one", "--json", "--events", "events.jsonl")
    commands = [
        ("show",),
        ("show", "--state"),
        ("inbox",),
        ("logs",),
        ("show", "--json", "--state"),
    ]
    printed = [ran.stdout, ran.stderr, *(project.signoff(*each).stdout for each in commands)]
    folder = project.folder / ".signoff" / "runs" / "one"
    names = ["state.json", "thread.jsonl", "live.log", "definition.json", "hitl/questions.json"]
    files = [folder / name for name in names] + [project.folder / "events.jsonl"]

    assert ran.returncode == 10, ran.stderr
    for text in (*printed, *(path.read_text() for path in files)):
        assert text
        assert CONTROL.search(text) is None, text
    asked = json.loads((folder / "hitl" / "questions.json").read_text())["questions"]
    assert asked[0]["questions"][0]["question"] == HOSTILE
    assert (folder / "final" / "artifact.md").read_bytes() == HOSTILE.encode()
