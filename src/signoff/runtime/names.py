"""What runs are called: by people, or by the engine when nobody says."""

from __future__ import annotations

import re
import secrets
import time

from signoff.errors import UsageError
from signoff.remedies import ShowInbox

LONGEST = 100
"""Characters of a name, which is a directory's too."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RESERVED = frozenset({"latest"})


def fresh_name(workflow: str) -> str:
    """Returns a name for a run that was given none: what, when, and a little chance."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", workflow).strip("-").lower() or "run"
    return f"{slug[:60]}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def checked_name(name: str) -> str:
    """Returns a name that can be a directory too, or says why this one cannot."""
    if name.isdecimal():
        raise UsageError(
            f"{name!r} cannot name a run: numbers name requests", remedy=ShowInbox(int(name))
        )
    if _NAME.fullmatch(name) and name not in _RESERVED:
        return name
    if name in _RESERVED:
        raise UsageError(f"{name!r} cannot name a run: it stands for the newest one")
    if len(name) > LONGEST and _NAME.fullmatch(name[:LONGEST]):
        raise UsageError(
            f"'{name[:20]}...' cannot name a run: it has {len(name)} characters, and "
            f"{LONGEST} are the most"
        )
    raise UsageError(
        f"{name!r} cannot name a run; use the letters A to Z and a to z, digits, '.', '_' and '-', "
        "beginning with a letter or digit"
    )
