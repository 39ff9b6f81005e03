"""`signoff inbox`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import complete_run, debug_option, json_option, open_here, output

if TYPE_CHECKING:
    from signoff.cli.output import Output

_EPILOG = """\b
Examples:
  signoff inbox                everything that waits for a person
  signoff inbox first-try      what one run waits for
  signoff inbox 7              one request, with all that it shows
"""


@click.command(epilog=_EPILOG)
@click.argument("where", required=False, metavar="[ITEM|RUN]", shell_complete=complete_run)
@json_option
@debug_option
def command(where: str | None, as_json: bool) -> None:
    """List what waits for a person, oldest first, with the command that answers it."""
    from signoff.app.answering import find_item
    from signoff.app.inbox import open_requests, request_to_json

    out = output(as_json)
    with open_here() as project:
        one = where is not None and where.removeprefix("#").isdecimal()
        items = [find_item(project, where)] if one else open_requests(project, where)
        requests = [request_to_json(project, item) for item in items]
    if as_json:
        out.json(requests[0] if one else requests)
    elif not requests:
        out.line("nothing waits for you")
    for request in () if as_json else requests:
        _show(request, out, whole=one)


def _show(request: dict[str, Any], out: Output, *, whole: bool) -> None:
    from signoff.cli.text import ago, clean, moment, one_line

    age = ago(request["opened_at"], time.time())
    out.line(
        f"#{request['number']}  {request['kind']}  {request['run']} · {request['step']} · {age}",
        style="yellow",
    )
    prompt = clean(request["prompt"])
    out.line(f"    {prompt if whole else one_line(prompt, 200)}")
    if whole:
        _show_content(request, out)
    if request["deadline"] is not None:
        taken = f", then {request['default']!r} is taken"
        out.line(f"    until {moment(request['deadline'])}{taken}")
    for command in request["commands"]:
        out.line(f"    {command}")


def _show_content(request: dict[str, Any], out: Output) -> None:
    import json

    for name, value in request["shown"].items():
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        out.line(f"    {name}:")
        for line in text.splitlines():
            out.line(f"    │ {line}")
    if request["path"]:
        out.line(f"    file: {request['path']}")
    out.line(f"    digest: {request['digest']}")
