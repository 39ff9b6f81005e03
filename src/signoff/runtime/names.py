"""Names of runs: checked when the user chooses one, made up when not."""

from __future__ import annotations

import re
import secrets
import time

from signoff.errors import InvalidRunName
from signoff.remedies import ShowInbox

LONGEST = 100
"""Characters in a run's name; it is also the name of a directory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def fresh_name(workflow: str) -> str:
    """Returns a name for a run without one: the workflow, the time, and random characters."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", workflow).strip("-").lower() or "run"
    return f"{slug[:60]}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def checked_name(name: str) -> str:
    """Returns a valid run name; raises `InvalidRunName` for one that could not be a directory."""
    if name.isdecimal():
        raise InvalidRunName(
            f"{name!r} is not a valid run name: numbers are names of requests",
            remedy=ShowInbox(int(name)),
        )
    if name == "latest":
        raise InvalidRunName(f"{name!r} is not a valid run name: it means the newest run")
    if _NAME.fullmatch(name):
        return name
    if len(name) > LONGEST and _NAME.fullmatch(name[:LONGEST]):
        raise InvalidRunName(
            f"'{name[:20]}...' is not a valid run name: it has {len(name)} characters, and at "
            f"most {LONGEST} are allowed"
        )
    raise InvalidRunName(
        f"{name!r} is not a valid run name; use letters (A-Z, a-z), digits, '.', '_' and '-', "
        "starting with a letter or digit"
    )
