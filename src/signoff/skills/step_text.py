"""What a step's page says besides its instructions: the commands that lead on, joined to them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from signoff.core.args import placeholder, value_text
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow

# The one place that turns what follows a step into a command to type, and joins it to the step.
#
# Every word is quoted for the shell, values and placeholders alike, so that a command can be pasted
# whatever the parameters contain.


PROGRAM = ("signoff", "skill", "step")
PROJECT_DIR = "project_dir"
LAST_STEP = "This was the last step. There is no next command."


class SkillPlace(NamedTuple):
    """How a printed command finds a skill, wherever it is run."""

    name: str = ""
    """Its name, its file or its module; empty for the name of the workflow."""
    folder: str = ""
    """The folder in which it is found by that; empty for a skill of the library."""


BY_NAME = SkillPlace()


def command_text(
    command: NextCommand, target: SkillPlace = BY_NAME, more: Iterable[tuple[str, str]] = ()
) -> str:
    """Returns the command that shows the next step; `more` are further options."""
    words = [*PROGRAM, target.name or command.workflow, "--step", str(command.number)]
    for name, value in command.params.items():
        words += _option(name, value_text(value))
    for name, param in command.open.items():
        words += _option(name, placeholder(param))
    for name, text in (*more, *([(PROJECT_DIR, target.folder)] if target.folder else ())):
        words += _option(name, text)
    return " ".join(map(_quoted, words))


def first_command(workflow: Workflow, target: SkillPlace = BY_NAME) -> str:
    """Returns the command that shows the first step, with what the step requires to fill in."""
    step = workflow.entry_point
    taken = {**workflow.input_params, **workflow.params[step]}
    required = {name: param for name, param in taken.items() if param.required}
    number = list(workflow.steps).index(step) + 1
    return command_text(NextCommand(workflow.name, step, number, {}, required), target)


def option_name(parameter: str) -> str:
    """Returns a parameter as an option."""
    return f"--{parameter.replace('_', '-')}"


def _option(parameter: str, value: str) -> list[str]:
    name = option_name(parameter)
    # A value that looks like an option would be read as one.
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _quoted(word: str) -> str:
    quoted = shlex.quote(word)
    # The Z shell replaces `=name` with the path of a program unless it is quoted.
    return f"'{quoted}'" if quoted.startswith("=") else quoted


def format_step(body: str | Sequence[str], next_command: str = "", title: str = "") -> str:
    """Returns a step as text: its title, its instructions, and the command that follows.

    Without a command, the text says that this was the last step.
    """
    paragraphs = [body] if isinstance(body, str) else list(body)
    end = when_done(next_command) if next_command else LAST_STEP
    return page(title, paragraphs, [end])


def page(title: str, paragraphs: Sequence[str], end: Sequence[str]) -> str:
    """Joins the parts of a page; empty ones are left out."""
    parts = [f"# {title}" if title else "", *paragraphs, *end]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def when_done(command: str) -> str:
    """Returns the instruction to run the next command."""
    return commands("When this step is done, run:", command)


def commands(condition: str, *texts: str) -> str:
    """Returns commands below the condition under which they are run, indented like code."""
    return "\n\n".join([condition, "\n".join(f"    {text}" for text in texts)])
