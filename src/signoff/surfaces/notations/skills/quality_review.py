"""What a quality reviewer is told: how to split a review into items, and how to verify them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from signoff.core.errors import UnknownName, UnreadableFile, UsageError
from signoff.core.one_line import one_line
from signoff.documents.control_characters import escape_controls, json_text
from signoff.documents.named_texts import read_texts
from signoff.runtime.sub_agents import RUN_SCRIPT
from signoff.skills.qr import (
    ITERATION_LIMIT,
    PHASE,
    SCRIPT,
    ItemStatus,
    QRItem,
    QRRecord,
    begin_round,
    qr_file,
    read_record,
    record,
)
from signoff.skills.state import need_state_dir
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.entry import run_command
from signoff.surfaces.cli.output import Output

LONGEST_ERROR = 500
"""Characters of what is wrong with a file; it may quote the file."""

TEXTS = Path(__file__).with_suffix(".md")
"""What reviewers are told; names in braces stand for what is known only then."""


@click.command(cls=cli.CliCommand)
@click.option("--phase", required=True, help="What is reviewed, such as plan-design.")
@click.option("--state-dir", required=True, metavar="DIR", help="The directory of the skill.")
@click.option("--items", is_flag=True, help="Only split the review into items.")
@click.option("--group", metavar="GROUP", help="Only verify this group.")
def quality_review(phase: str, state_dir: str, items: bool, group: str | None) -> None:
    """Print what a quality reviewer has to do next."""
    if not PHASE.fullmatch(phase):
        raise UsageError(f"the phase {phase!r:.80} is not lowercase words joined by '-'")
    folder = need_state_dir({"state_dir": state_dir})
    text = instructions(folder, phase, group=group, only_items=items)
    # Half of a pair of surrogates cannot be printed, and its escape means the same in JSON.
    click.echo(escape_controls(text).encode(errors="backslashreplace").decode(), nl=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the module as a program; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return run_command(given, quality_review, " ".join([*RUN_SCRIPT, SCRIPT]))


def instructions(folder: Path, phase: str, *, group: str | None, only_items: bool) -> str:
    """Returns what a reviewer has to do next; begins the next round if one is due."""
    path = qr_file(folder, phase)
    command = f"signoff skill qr {shlex.quote(str(path))}"
    this = shlex.join([*RUN_SCRIPT, SCRIPT, "--phase", phase, "--state-dir", str(folder)])
    try:
        # Only the reviewer that coordinates begins a round; those of single groups, and one that
        # only writes the items, must not change what is due.
        found = begin_round(path) if group is None and not only_items else read_record(path)
    except UnreadableFile as error:
        # A group that cannot be read is an error, because this reviewer could only invent items.
        if group is not None:
            raise
        return _items(path, folder, phase, "" if only_items else this, error)
    if only_items:
        return f"The items are written down already, in {path}. There is nothing to do: pass.\n"
    if group is not None:
        return _verify(command, f"group {group}", found, _of_group(found, group))
    due = found.due()
    if not due:
        return _text("done", command=command)
    if len(due) == 1:
        return _verify(command, f"round {found.iteration}", found, next(iter(due.values())))
    commands = "\n".join(f"  {this} --group {shlex.quote(each)}" for each in due)
    return _text("groups", round=found.iteration, count=len(due), commands=commands)


def _items(path: Path, folder: Path, phase: str, again: str, error: UnreadableFile) -> str:
    subject = read_texts(TEXTS).get(f"phase-{phase}", f"the work of the phase {phase}")
    text = _text("items", subject=" ".join(subject.split()), folder=folder, file=path, phase=phase)
    if path.exists():
        problem = one_line(str(error), LONGEST_ERROR)
        text = f"This file cannot be used, so replace it: {problem}\n\n{text}"
    then = (
        f"Then run this again, and do what it prints:\n\n  {again}"
        if again
        else _text("items-done")
    )
    return f"{text}\n{then.rstrip()}\n"


def _of_group(found: QRRecord, group: str) -> list[QRItem]:
    """Returns the items of a group that are due; all of them if none is."""
    items = [item for item in found.items if item.group == group]
    if not items:
        raise UnknownName("group", group, dict.fromkeys(item.group for item in found.items))
    return found.due().get(group) or items


def _verify(command: str, title: str, found: QRRecord, items: Sequence[QRItem]) -> str:
    # One JSON object on each line: whatever a model wrote into an item, it cannot begin a line that
    # looks like an instruction.
    lines = [
        json_text(
            {
                **_names(item),
                "severity": item.severity,
                "scope": item.scope,
                "check": item.check,
                "finding": item.finding or "",
            }
        )
        for item in items
    ]
    # With the group, a mistyped id cannot change what another reviewer records.
    command = f"{command} --group {shlex.quote(items[0].group)}"
    late = found.iteration >= ITERATION_LIMIT
    ask = _text("ask", round=found.iteration) if late else ""
    return _text("verify", title=title, command=command, ask=ask, items="\n".join(lines))


def _text(name: str, **values: object) -> str:
    return read_texts(TEXTS)[name].format(**values) + "\n"


def _names(item: QRItem) -> dict[str, str]:
    """Returns the id, and how to write it in a command if that is not the same."""
    quoted = shlex.quote(item.id)
    return {"id": item.id} if quoted == item.id else {"id": item.id, "quoted_id": quoted}


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--id", "item_id", metavar="ID", help="The item to record a result for.")
@click.option("--status", type=click.Choice(["PASS", "FAIL"], case_sensitive=False),
              help="The result.")  # fmt: skip
@click.option("--finding", metavar="TEXT", help="What is wrong, if it failed.")
@click.option("--group", metavar="GROUP", help="Only the items of this group.")
def qr(
    file: Path,
    item_id: str | None,
    status: str | None,
    finding: str | None,
    group: str | None,
    out: Output,
) -> int:
    """Show a quality review, or record the result of one item.

    FILE is the `qr-<phase>.json` of a state directory. Reviewers may record at the same time.

    Examples:
      signoff skill qr DIR/qr-plan-design.json
      signoff skill qr DIR/qr-plan-design.json --id errors-1 --status PASS
      signoff skill qr DIR/qr-plan-design.json --id errors-1 --status FAIL --finding "no retry"
    """
    if (item_id is None) != (status is None) or (finding is not None and item_id is None):
        raise UsageError("--id and --status belong together; --finding needs both")
    if item_id is not None and status is not None:
        item = record(file, item_id, status, finding, group=group)
        if item.status is ItemStatus.FAIL and not item.finding:
            # Not refused: a failure that the agent does not report again would be lost.
            click.echo("warning: recorded without a finding, so no one can tell what is wrong; "
                       "repeat the command with --finding TEXT", err=True)  # fmt: skip
    found = read_record(file)
    verdict = found.verdict()
    result: dict[str, Any] = {
        "iteration": found.iteration,
        "status": verdict.status,
        "action": verdict.action,
        "items": [
            {"id": each.id, "status": each.status, "severity": each.severity, "check": each.check,
             "finding": each.finding}
            for each in found.items
            if item_id in (None, each.id) and group in (None, each.group)
        ],
    }  # fmt: skip
    if out.as_json:
        out.json(result)
        return 0
    for each in result["items"]:
        text = " ".join((each["finding"] or each["check"]).split())
        line = f"{each['status']:<4}  {each['severity']:<6}  {each['id']}  {text}".rstrip()
        click.echo(escape_controls(line).encode(errors="backslashreplace").decode())
    if item_id is None:
        click.echo(f"round {found.iteration}: {verdict.status}, {verdict.action}")
    return 0
