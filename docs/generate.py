"""Generates the parts of the documentation that come from the program itself.

`python docs/generate.py` updates the pages; with `--check` it only reports whether they are up to
date. Text between the markers is generated, everything else is written by hand.
"""  # noqa: INP001  # a script next to the pages it writes, not a package

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import click
from rest_reference import rest_documents, rest_operations

from signoff import plugins
from signoff.core import graph
from signoff.core.workflow import Workflow
from signoff.skills import discover_workflows
from signoff.surfaces.cli.entry import signoff

FOLDER = Path(__file__).parent
EVERYWHERE = frozenset({"debug"})

Part = Callable[[], Iterator[str]]


def main(arguments: list[str]) -> int:
    """Writes the pages, or checks them; returns the exit code."""
    outdated = []
    for name, parts in pages().items():
        page = FOLDER / name
        before = page.read_text("utf-8")
        after = regenerate(name, before, parts)
        if after != before:
            outdated.append(name)
            if arguments != ["--check"]:
                page.write_text(after, "utf-8")
    if arguments != ["--check"]:
        return 0
    for name in outdated:
        print(f"{name} is out of date; run: make docs", file=sys.stderr)
    return int(bool(outdated))


def regenerate(name: str, page: str, parts: Mapping[str, Part]) -> str:
    """Returns a page with its generated parts replaced."""
    for title, part in parts.items():
        before, begin, rest = page.partition(f"<!-- generated: {title} -->\n")
        _, end, after = rest.partition("<!-- end of generated -->\n")
        if not begin or not end:
            raise SystemExit(f"{name} has no markers for the part {title!r}")
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


def graph_of(workflow: Workflow) -> Iterator[str]:
    """Yields the graph of a skill."""
    yield from ("```mermaid", *graph.mermaid(workflow).splitlines(), "```", "")


def pages() -> dict[str, dict[str, Part]]:
    """Returns the generated parts of each page, by title."""
    skills = discover_workflows()
    return {
        "api.md": {"operations": rest_operations, "documents": rest_documents},
        "commands.md": {"commands": commands, "agent kinds": agent_kinds},
        "skills.md": {
            f"graph of {name}": partial(graph_of, workflow) for name, workflow in skills.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
