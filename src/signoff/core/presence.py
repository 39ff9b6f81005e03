"""Which answers must come with proof that a human was present.

A request says so in its form, so the digest of what was shown covers it. What counts as proof, and
how it is checked, is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.errors import UsageError

PRESENCE, APPROVES = "presence", "approves"
"""The keys of a form: whether presence is required, and the options that approve something."""


def needs_presence(form: Mapping[str, Any], value: Any) -> bool:
    """Tells whether an answer approves something and so needs proof of presence.

    Turning something down never does: a user who may answer may also stop a run. If a request does
    not say which of its options approve, all of them count as approval.
    """
    if not form.get(PRESENCE):
        return False
    labels = form.get(APPROVES)
    return value is not False if labels is None else value in labels


def refuse_approval_by_default(form: Mapping[str, Any]) -> None:
    """Raises `UsageError` if a deadline would approve what only a human who is present may."""
    if needs_presence(form, form.get("default")):
        raise UsageError(
            f"the default {form.get('default')!r} would approve without a signature when the "
            "deadline has passed; where presence is required, the default must reject"
        )
