"""Finds the commands that signoff suggests in what it prints, and parses them.

Every acceptance test does this with everything it sees, so that a message that names a command or
an option that does not exist fails the test that prints it. Those of skills (`skill step`) are
left out: their options depend on modules of the project, and tests of their own run every one.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import click

from signoff.surfaces.cli.entry import signoff

_COMMAND = re.compile(
    # At the start of a line, after a label, or in backquotes; elsewhere it is a word of a sentence.
    r"(?:^[ $]*|(?<=: )|`|(?<=, or )|(?<=  ))signoff (?!did|does|itself|skill step)"
    # Up to the end of the line or the next remedy; a usage line has [OPTIONS] instead of words.
    r"(?P<words>[a-z][a-z-]*(?: (?!\[)(?:(?!; )[^\n`])*)?)(?=[\n`;]|$)",
    re.MULTILINE,
)
_END = re.compile(r"  | < | \| | && |, or signoff | \(|…")


def suggestions(text: str) -> list[str]:
    """Returns the commands in a text for humans, or in the texts of a JSON document."""
    if text.startswith(("{", "[")):
        try:
            return [found for each in _texts(json.loads(text)) for found in suggestions(each)]
        except ValueError:
            pass
    return [_END.split(match["words"])[0].rstrip(" .,:)") for match in _COMMAND.finditer(text)]


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            # A text that begins like JSON would be read again.
            yield f"\n{value}"
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            yield from _texts(list(value.values()))


def check_suggestions(*texts: str) -> None:
    """Fails the test if one of these texts suggests a command that the command line refuses."""
    refused = [why for text in texts for each in suggestions(text) if (why := refusal(each))]
    assert not refused, refused


@cache
def refusal(command: str) -> str:
    """Returns why the command line refuses a command without running it; empty if it does not."""
    try:
        # Some options have effects while they are parsed: one changes the current folder.
        with chdir(Path.cwd()):
            _parse(shlex.split(command))
    except click.exceptions.Exit:
        return ""
    except click.BadParameter as error:
        # A file may be one that the user is going to write, or of another folder.
        if error.param is not None and isinstance(error.param.type, click.Path):
            return ""
        return f"signoff {command}: {error.format_message()}"
    except click.ClickException as error:
        return f"signoff {command}: {error.format_message()}"
    except ValueError as error:
        return f"signoff {command}: {error}"
    return ""


def _parse(words: list[str]) -> None:
    found: click.Command | None = signoff
    name: str | None = "signoff"
    context: click.Context | None = None
    while isinstance(found, click.Group) and words:
        context = click.Context(found, context, info_name=name)
        name, found, words = found.resolve_command(context, words)
    assert found is not None
    if not isinstance(found, click.Group):
        found.make_context(name, words, parent=context)
