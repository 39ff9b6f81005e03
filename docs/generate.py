"""Generates the parts of docs/commands.md that come from the program itself.

`python docs/generate.py` updates the page; with `--check` it only reports whether the page
is up to date. Text between the markers is generated, everything else is written by hand.
"""  # noqa: INP001  # a script next to the pages it writes, not a package

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click

from signoff import plugins
from signoff.cli.entry import signoff

PAGE = Path(__file__).with_name("commands.md")
EVERYWHERE = frozenset({"debug"})


def main(arguments: list[str]) -> int:
    """Writes the page, or checks it; returns the exit code."""
    before = PAGE.read_text("utf-8")
    after = regenerate(before)
    if arguments == ["--check"]:
        if after != before:
            print(f"{PAGE.name} is out of date; run: make docs", file=sys.stderr)
        return int(after != before)
    PAGE.write_text(after, "utf-8")
    return 0


def regenerate(page: str) -> str:
    """Returns the page with its generated parts replaced."""
    for name, part in PARTS.items():
        before, begin, rest = page.partition(f"<!-- generated: {name} -->\n")
        _, end, after = rest.partition("<!-- end of generated -->\n")
        if not begin or not end:
            raise SystemExit(f"{PAGE.name} has no markers for the part {name!r}")
        page = "".join([before, begin, "\n".join(["", *part(), ""]), end, after])
    return page


def commands() -> Iterator[str]:
    """Yields the reference of every command."""
    context = click.Context(signoff, info_name="signoff")
    for name in signoff.list_commands(context):
        command = signoff.get_command(context, name)
        if command is not None:
            yield from one(command, click.Context(command, context, info_name=name))


def one(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields the reference of one command, and of those inside it."""
    heading = "###" if context.parent is not None and context.parent.parent is None else "####"
    yield from (f"{heading} {context.command_path}", "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```", f"{context.command_path} {usage}", "```", "")
    yield from paragraphs(command.help)
    yield from options(command, context)
    if command.epilog:
        yield from epilog(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from one(inner, click.Context(inner, context, info_name=name))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields a table of a command's options, without those that every command has."""
    own = [p for p in command.params if isinstance(p, click.Option)]
    records = [p.get_help_record(context) for p in own if p.name not in EVERYWHERE]
    rows = [f"| `{names}` | {text} |" for names, text in _in_table(records)]
    if rows:
        yield from ("| option | |", "| --- | --- |", *rows, "")


def _in_table(records: Iterable[tuple[str, str] | None]) -> Iterator[list[str]]:
    return ([text.replace("|", r"\|") for text in record] for record in records if record)


def paragraphs(text: str | None) -> Iterator[str]:
    """Yields a command's description, as it is wrapped in its source."""
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        yield from (*paragraph.splitlines(), "")


def epilog(text: str) -> Iterator[str]:
    """Yields examples as a code block, and other paragraphs as text."""
    for paragraph in text.replace("\b\n", "").strip().split("\n\n"):
        title, _, rest = paragraph.partition("\n")
        if title == "Examples:":
            yield from ("```", *(line.strip() for line in rest.splitlines()), "```", "")
        else:
            yield from (*paragraph.splitlines(), "")


def agent_kinds() -> Iterator[str]:
    """Yields the kinds of agents in this version."""
    kinds = ", ".join(f"`{kind}`" for kind in sorted(plugins.AGENT_KINDS))
    yield f"Kinds of agents in this version: {kinds or 'none'}."


PARTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "agent kinds": agent_kinds,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
