"""Checks the signatures of a run's approvals, long after they were given and without a server.

Everything is computed again from what is stored: the digest of what was shown, the answer that the
run continued with, and whether a passkey of the project signed exactly that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from signoff.app.people import passkeys as pk
from signoff.app.runs.history import events_of, form_of
from signoff.app.settings.project import Project
from signoff.core.digest import digest
from signoff.core.errors import SignatureRefused
from signoff.core.events import EffectFinished
from signoff.core.requests import ItemState, approves, needs_presence
from signoff.runtime.store_port import InboxItem, RunRow

_GIVEN = (ItemState.ANSWERED, ItemState.USED)
_RECORDED = ("value", "text", "extras", "content_digest", "presence")
"""What the journal and the inbox must agree on."""


@dataclass(frozen=True)
class ApprovalCheck:
    """What is known about one approval."""

    request: int
    run: str
    step: str
    prompt: str
    value: Any
    by: str
    at: float
    required: bool
    """Whether the request required a signature."""
    passkey: str = ""
    """The passkey that signed it; empty if none did."""
    fingerprint: str = ""
    origin: str = ""
    problem: str = ""
    """Why the approval cannot be relied on; empty if it can."""


def check_approvals(
    project: Project, run: str | None = None, keys: Path | None = None
) -> list[ApprovalCheck]:
    """Checks every approval of a run, or of the latest one; `keys` is another file of passkeys."""
    row = project.run(run)
    passkeys = pk.read_passkeys(project.home.passkeys if keys is None else keys)
    replies = _replies(project, row)
    given = (
        _Given(
            item,
            form_of(project, item),
            json.loads(item.answer or "{}"),
            replies.get((item.effect, item.answered_at)),
        )
        for item in project.store.items(row.name, state=_GIVEN)
    )
    return [_check(each, passkeys) for each in given if each.approves]


class _Given(NamedTuple):
    """An answer as it is stored, and the request that it was given to."""

    item: InboxItem
    form: Mapping[str, Any]
    answer: Mapping[str, Any]
    reply: Mapping[str, Any] | None
    """What the run has continued with."""

    @property
    def approves(self) -> bool:
        return approves(self.form, self.answer.get("value")) or bool(self.answer.get("presence"))


def _replies(project: Project, row: RunRow) -> dict[tuple[str, Any], Mapping[str, Any]]:
    """Returns the answers that the run has continued with, by effect and time.

    Not by the number of their requests, which change when a run is moved to another store.
    """
    events = (event for _, event in events_of(project, row))
    return {
        (event.id, event.reply["at"]): event.reply
        for event in events
        if isinstance(event, EffectFinished) and event.item is not None
    }


def _check(given: _Given, passkeys: Sequence[pk.Passkey]) -> ApprovalCheck:
    item, value = given.item, given.answer.get("value")
    by, at = item.answered_by or "", item.answered_at or 0.0
    required = needs_presence(given.form, value)
    found = ApprovalCheck(item.id, item.run, item.step, item.prompt, value, by, at, required)
    signature: Mapping[str, Any] = given.answer.get("presence") or {}
    try:
        _check_record(given)
        if not signature:
            if required:
                raise SignatureRefused("it has no signature, and needs one")
            return found
        passkey = _signer(passkeys, signature)
        pk.check_trust(passkeys, passkey)
        # The number that the request had when it was signed: a run that moves to another store
        # gets new ones, and its signatures stay valid.
        challenge = pk.approval_challenge(item, given.answer, by, signature.get("request"))
        pk.check_stored(signature, passkey, challenge)
    except SignatureRefused as error:
        return replace(found, problem=str(error))
    origin = str(signature["origin"])
    return replace(found, passkey=passkey.name, fingerprint=passkey.fingerprint, origin=origin)


def _check_record(given: _Given) -> None:
    """Raises `SignatureRefused` if what is stored about a request does not fit together."""
    if digest(given.form) != given.item.digest:
        raise SignatureRefused("what was shown is not what is stored now")
    if given.reply is None:
        if given.item.state is ItemState.USED:
            raise SignatureRefused("the journal of the run has no such answer")
        return
    used = {name: given.reply.get(name) for name in (*_RECORDED, "by")}
    stored = {name: given.answer.get(name) for name in _RECORDED}
    if used != {**stored, "by": given.item.answered_by or ""}:
        raise SignatureRefused("the run continued with another answer than the one that is stored")


def _signer(passkeys: Sequence[pk.Passkey], signature: Mapping[str, Any]) -> pk.Passkey:
    identity = signature.get("credential")
    found = next((each for each in passkeys if each.credential == identity), None)
    if found is None:
        name = str(signature.get("passkey"))[:100]
        raise SignatureRefused(f"it was signed by {name!r}, which is no passkey of this project")
    return found
