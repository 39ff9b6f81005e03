"""The text of a `SKILL.md`: how a coding agent learns that a skill exists, and how to follow it.

The file ends with a mark that holds a digest of the rest. So a file that was not changed since can
be told from one that its user edited, without a list of files anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import textwrap

from signoff.cli.options import in_project
from signoff.cli.text import one_line
from signoff.core.workflow import Workflow
from signoff.skills.commands.command_text import SkillPlace, first_command
from signoff.skills.stateless import keeps_state

FILE = "SKILL.md"
MOST_DESCRIPTION = 1024
"""Agents refuse a skill with a longer description."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_MARK = "\n<!-- signoff skill install: "
_WIDTH = 100

_BODY = """\
# {name}

{description}

## Start

What the user asked for is the task. Run the first command:

    {first}

It prints the instructions of the first step, and the next command. There {steps}. If the
program `signoff` is missing, report that and stop: do not make up the steps.

## Follow it

1. Do what the step says, all of it, then run the command that it prints. Never skip a step, work
   ahead, or run a step that no command led to: later steps rely on the results of earlier ones.
2. Fill in placeholders before you run a command. '<low|high>' stands for one of the choices,
   '<name>' for a text of yours. Keep the quotes and all other options as they are. Report what is
   true: a choice that only ends the step sooner spoils the result.
3. Some steps are for a sub-agent. Do not do them yourself. Launch a new sub-agent, give it the
   instructions, the script and the context that the step prints, and nothing about the verdict you
   hope for. Then run the command for its verdict. An unclear verdict is a fail.
4. If the reply of a sub-agent is a <needs_user_input> block, it asks the user. Do not answer for
   the user: ask these questions, wait for the answers, and launch the sub-agent again, with the
   same task and the answers. The step prints how.
5. If a step says to ask the user, ask, and wait for the answer.
6. If a command fails, its message says why. Correct the command and run it again.
7. You are done when a step says that it was the last one. Then report the result to the user.

## Resume

{resume}

- `{show}` lists the steps and the options.
- `{run}` follows the same steps as a recorded run.
  No step can be skipped, and a new session goes on where the last one stopped.
"""

_WITH_FILES = """\
Note each command that you run. After an interruption, run the last one again: it prints the same
step, and the state directory that it names has the files of the steps before. Run the first command
only once, because it creates a new state directory each time. What is in no file is lost with your
session. If you have lost the command, start again with the first one."""

_WITHOUT_FILES = """\
Nothing is stored between commands. Note each command that you run, and the result of each step.
After an interruption, run the last command again: it prints the same step, and continue from your
notes. Without the results of the steps before, start again with the first command."""


def skill_text(workflow: Workflow, folder: str = "") -> str:
    """Returns the file of a skill, with its mark; `folder` is where its commands find the skill.

    It is empty if they find it wherever the file is read.
    """
    name, steps = workflow.name, workflow.total_steps
    body = _BODY.format(
        name=name,
        description=textwrap.fill(_description(workflow), _WIDTH, break_on_hyphens=False),
        steps=f"are {steps} steps" if steps > 1 else "is one step",
        first=first_command(workflow, SkillPlace(name, folder)),
        show=in_project(shlex.join(["signoff", "skill", "show", name]), folder),
        run=in_project(shlex.join(["signoff", "run", name, "--pull"]), folder),
        resume=_WITH_FILES if keeps_state(workflow) else _WITHOUT_FILES,
    )
    return marked(name, f"{_front_matter(workflow)}\n{body}")


def can_be_folder(name: str) -> bool:
    """Tells whether a skill's name can be the name of its folder."""
    return _NAME.fullmatch(name) is not None


def marked(folder: str, text: str) -> str:
    """Returns a text with the mark for a folder."""
    return f"{text}{_MARK}{_digest(folder, text)} -->\n"


def has_mark(text: str) -> bool:
    """Tells whether a text was installed, even if it was edited since."""
    return _MARK in text.replace("\r\n", "\n")


def is_untouched(folder: str, text: str) -> bool:
    """Tells whether a file is as it was written into this folder."""
    # Version control may have changed how lines end.
    text = text.replace("\r\n", "\n")
    return text == marked(folder, text.rpartition(_MARK)[0])


def _digest(folder: str, text: str) -> str:
    # With the folder, a copy that a user made in another folder is not taken for ours.
    return hashlib.sha256(f"{folder}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]


def _front_matter(workflow: Workflow) -> str:
    # Agents refuse descriptions that contain tags, and some take any three dashes for the end.
    text = re.sub("[<>]", "", re.sub("-{3,}", "--", _description(workflow)))
    description = one_line(text, MOST_DESCRIPTION)
    # Every JSON string is a YAML string, whatever it contains.
    return f"---\nname: {workflow.name}\ndescription: {json.dumps(description)}\n---\n"


def _description(workflow: Workflow) -> str:
    titles = [step.title or step.id for step in workflow.steps.values()]
    text = one_line(workflow.description or f"A procedure in steps: {', '.join(titles)}.")
    # Some agents run what is between "!`" and "`" when they load the file.
    return text.replace("!`", "! `")
