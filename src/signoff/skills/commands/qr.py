"""`signoff skill qr`: shows a quality review, or records one result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from signoff.cli.options import CliCommand
from signoff.documents.control_characters import escape_controls, json_text
from signoff.errors import UsageError


@click.command(cls=CliCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--id", "item_id", metavar="ID", help="The item to record a result for.")
@click.option("--status", type=click.Choice(["PASS", "FAIL"], case_sensitive=False),
              help="The result.")  # fmt: skip
@click.option("--finding", metavar="TEXT", help="What is wrong, if it failed.")
@click.option("--group", metavar="GROUP", help="Only the items of this group.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def qr(
    file: Path,
    item_id: str | None,
    status: str | None,
    finding: str | None,
    group: str | None,
    as_json: bool,
) -> int:
    """Show a quality review, or record the result of one item.

    FILE is the `qr-<phase>.json` of a state directory. Reviewers may record at the same time.

    Examples:
      signoff skill qr DIR/qr-plan-design.json
      signoff skill qr DIR/qr-plan-design.json --id errors-1 --status PASS
      signoff skill qr DIR/qr-plan-design.json --id errors-1 --status FAIL --finding "no retry"
    """
    from signoff.skills.qr.items import ItemStatus
    from signoff.skills.qr.record_file import read_record, record

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
    if as_json:
        click.echo(json_text(result, ensure_ascii=True))
        return 0
    for each in result["items"]:
        text = " ".join((each["finding"] or each["check"]).split())
        line = f"{each['status']:<4}  {each['severity']:<6}  {each['id']}  {text}".rstrip()
        click.echo(escape_controls(line).encode(errors="backslashreplace").decode())
    if item_id is None:
        click.echo(f"round {found.iteration}: {verdict.status}, {verdict.action}")
    return 0
