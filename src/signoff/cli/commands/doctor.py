"""`signoff doctor`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from signoff.cli import exits
from signoff.cli.options import debug_option, json_option, output

_EPILOG = """\b
Examples:
  signoff doctor
  signoff doctor --json
"""


@click.command(epilog=_EPILOG)
@json_option
@debug_option
def command(as_json: bool) -> int:
    """Say what is ready here, and what to do about what is not.

    Looks at Python, the database, the disk, permissions, agents on the PATH and API keys
    (by name only). Exits with 0 when the engine can run, else with 1.
    """
    from signoff.app.doctor import examine

    out = output(as_json)
    found = examine(Path.cwd(), os.environ)
    code = exits.OK if found.can_run else exits.ERROR
    if as_json:
        checks = [
            {
                "name": c.name,
                "ready": c.ready,
                "detail": c.detail,
                "remedy": "" if c.ready else c.remedy,
                "needed": c.needed,
            }
            for c in found.checks
        ]
        out.json({"can_run": found.can_run, "checks": checks})
        return code
    for check in found.checks:
        mark = "ok" if check.ready else ("FAIL" if check.needed else "--")
        style = "" if check.ready else ("red" if check.needed else "yellow")
        out.line(f"{mark:<4}  {check.name:<12} {check.detail}", style=style)
        if not check.ready and check.remedy:
            out.line(f"{'':<19}to do: {check.remedy}")
    out.line()
    out.line("ready to run" if found.can_run else "not ready: mend what is marked FAIL")
    return code
