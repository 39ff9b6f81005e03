"""The one place that turns what follows a step into a command to type.

Every word is quoted for the shell, values and placeholders alike, so that a command can be pasted
whatever the parameters contain.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from signoff.core.args import BoundedInt, Param
from signoff.core.step_output import NextCommand

PROGRAM = ("signoff", "skill", "step")

_LISTED = 10
"""A placeholder lists that many numbers of a range; of a longer range, the first and the last."""


def command_text(
    command: NextCommand, target: str = "", more: Iterable[tuple[str, str]] = ()
) -> str:
    """Returns the command that shows the next step; `target` is how the skill is found.

    `more` are further options, which may be repeated.
    """
    words = [*PROGRAM, target or command.workflow, "--step", str(command.number)]
    for name, value in command.params.items():
        words += _option(name, value_text(value))
    for name, param in command.open.items():
        words += _option(name, placeholder(param))
    for name, text in more:
        words += _option(name, text)
    return " ".join(map(_quoted, words))


def option_name(parameter: str) -> str:
    """Returns a parameter as an option."""
    return f"--{parameter.replace('_', '-')}"


def placeholder(param: Param) -> str:
    """Returns what stands for a value to fill in: its choices, or the parameter's name."""
    domain = param.domain()
    if isinstance(domain, BoundedInt) and domain.hi - domain.lo >= _LISTED:
        return f"<{domain.lo}|...|{domain.hi}>"
    choices = "|".join(map(value_text, domain)) if domain is not None else param.name
    return f"<{choices}>"


def value_text(value: Any) -> str:
    """Returns a parameter's value as it is typed, and read again by the next command."""
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple() if _is_plain(value):
            return ",".join(value)
        case list() | tuple() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_plain(items: Sequence[Any]) -> bool:
    """Tells whether the items of a list can be told apart when commas join them."""
    plain = all(isinstance(each, str) and each.strip() == each and each for each in items)
    return bool(items) and plain and not any("," in each for each in items) and items[0][0] != "["


def _option(parameter: str, value: str) -> list[str]:
    name = option_name(parameter)
    # A value that looks like an option would be read as one.
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _quoted(word: str) -> str:
    quoted = shlex.quote(word)
    # The Z shell replaces `=name` with the path of a program unless it is quoted.
    return f"'{quoted}'" if quoted.startswith("=") else quoted
