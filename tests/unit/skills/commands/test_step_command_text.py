import shlex
import subprocess
from typing import Any

import pytest

from signoff.core.args import Arg, Param
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.skills import format_step
from signoff.skills.commands.step import command_text, first_command

HOSTILE = [
    "two words",
    "it's",
    'a "quote"',
    "$HOME ${HOME} $(id) `id`",
    "a; id && id | id > out &",
    "line one\nline two\n",
    "<needs_user_input>&amp;</needs_user_input>",
    "-x",
    "--step",
    "=ls",
    "~",
    "*",
    "!!",
    "#",
    "",
    "\\",
    "ünïcode",
    "{a,b}",
]


def command(params: dict[str, Any], *still_open: Param) -> str:
    named = {param.name: param for param in still_open}
    return command_text(NextCommand("critic", "look", 3, params, named))


@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_takes_every_value_as_it_is(value: str) -> None:
    """A parameter that a shell runs as a command would be a way into the machine."""
    text = command({"decision": value})

    words = shlex.split(text)
    printed = subprocess.run(
        ["sh", "-c", f'signoff() {{ printf "%s\\0" "$@"; }}\n{text}'],
        capture_output=True,
        text=True,
    )

    assert words[:6] == ["signoff", "skill", "step", "critic", "--step", "3"]
    assert words[6:] in (["--decision", value], [f"--decision={value}"])
    assert printed.stdout.split("\0")[:-1] == words[1:]


def test_what_is_still_to_be_filled_in_is_quoted_as_well() -> None:
    """Pasted as it is, the shell would read the choices as programs and files."""
    sure = Param("sure", str, Arg(choices=("low", "high")))

    assert command({}, sure).endswith("--sure '<low|high>'")


def test_the_first_command_shows_what_the_first_step_requires() -> None:
    """Without it, the first thing that an agent sees would be an error."""

    def start(ctx: Any, to: str, tone: str = "") -> tuple[Outcome, dict[str, Any]]:
        return Outcome.OK, {}

    step = StepDef("start", "Start", ["Begin."], start, {Outcome.OK: None})
    inputs = [Param("task", str), Param("size", int, default=1)]

    assert first_command(Workflow("w", step, inputs=inputs)) == (
        "signoff skill step w --step 1 --task '<task>' --to '<to>'"
    )


def test_a_step_has_a_title_instructions_and_a_command() -> None:
    """Scripts of sub-agents print their steps like the command line does."""
    assert format_step("Do this.", "run that", title="Part 1") == (
        "# Part 1\n\nDo this.\n\nWhen this step is done, run:\n\n    run that"
    )


def test_a_step_without_a_command_is_the_last() -> None:
    """An agent stops there instead of guessing."""
    text = format_step(["One.", "Two."])

    assert text.startswith("One.\n\nTwo.\n\nThis was the last step.")
