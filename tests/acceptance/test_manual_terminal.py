"""A human answers for an agent on the terminal, with the help of a chat window."""

import os
import sys

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.test_terminal import terminal

FLOW = """
from signoff import Outcome, StepDef, Workflow

SCHEMA = {"type": "object", "required": ["slogan"]}


async def write(ctx):
    reply = await ctx.ask("manual", "Write a slogan.", schema=SCHEMA)
    await ctx.write("final/slogan.txt", reply.value["slogan"])
    return Outcome.OK, {}


WORKFLOW = Workflow("slogan", StepDef("write", handler=write, next={Outcome.OK: None}))
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="the clipboard of a Mac is asked differently")
def test_a_prompt_is_copied_and_the_answer_is_checked_against_the_schema(
    project: CliProject,
) -> None:
    """The user only has to paste the prompt into the chat and the answer back."""
    project.write("flow.py", FLOW)
    clipboard = project.write("bin/xclip", f"#!/bin/sh\ncat > {project.folder}/copied\n")
    clipboard.chmod(0o755)
    here = {"DISPLAY": ":0", "PATH": f"{clipboard.parent}:{os.defpath}"}

    with terminal(
        project, "run", "flow.py", "--name", "one", width=200, environment=here
    ) as screen:
        screen.read_until("copied to the clipboard): ")
        screen.read_until("means later")
        screen.type("Good beans.\n.\n")
        screen.read_until("it is not JSON")
        screen.read_until("means later")
        screen.type('{"slogan": "Good beans."}\n.\n')
        code = screen.exit_code()

    assert code == 0, screen.text
    copied = (project.folder / "copied").read_text()
    assert copied.startswith("Write a slogan.")
    assert '"slogan"' in copied
    runs = project.folder / ".signoff" / "runs" / "one"
    assert (runs / "final" / "slogan.txt").read_text() == "Good beans."
