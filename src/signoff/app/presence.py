"""Proof that a human was present when a request was approved: the signature of a passkey.

`answering` decides which answers need it; a surface passes on what the authenticator returned.

A passkey is registered by a link from the terminal, which works once, so holding a login is not
enough. As soon as there is a passkey, one of them has to sign for each further one, so a shell is
not enough either. What remains is a change of the file itself, which is meant to be reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from signoff.app.history import events_of, form_of
from signoff.app.home import Home
from signoff.app.project import Project
from signoff.core.digest import digest
from signoff.core.events import EffectFinished
from signoff.core.requests import ItemState, approves, needs_presence
from signoff.errors import PresenceRequired, SignatureRefused, UsageError
from signoff.passkeys import key_file
from signoff.passkeys.key_file import (
    LONGEST_NAME,
    Passkey,
    add_passkey,
    approval_challenge,
    confirmation_challenge,
    read_passkeys,
    refuse_known,
    registration_challenge,
)
from signoff.passkeys.webauthn_checks import (
    check_creation,
    check_sent,
    check_stored,
    check_trust,
    confirming,
    creation_options,
    request_options,
)
from signoff.remedies import AddPasskey, SignOnPage
from signoff.runtime.store_port import InboxItem, RunRow


@dataclass(frozen=True)
class Proof:
    """What an authenticator returned to a page."""

    reply: Mapping[str, Any]
    """The credential with its signature, as browsers send it."""
    origins: Sequence[str]
    """The addresses of this server's pages; a signature that was made elsewhere is refused."""


def passkeys_file(home: Home) -> Path:
    """Returns the path of a project's passkeys."""
    return home.path / key_file.FILE


def active_passkeys(home: Home, rp_id: str) -> list[Passkey]:
    """Returns the passkeys that may sign on the pages of a host."""
    found = read_passkeys(passkeys_file(home))
    return [each for each in found if each.is_active and each.rp_id == rp_id]


def signing_options(
    home: Home, item: InboxItem, answer: Mapping[str, Any], by: str, rp_id: str
) -> dict[str, Any]:
    """Returns what a browser needs to have an answer signed; raises `PresenceRequired`."""
    allowed = active_passkeys(home, rp_id)
    if not allowed:
        raise PresenceRequired(
            f"request #{item.id} needs a signature, and no passkey is registered for {rp_id}",
            remedy=AddPasskey(),
        )
    return request_options(approval_challenge(item, answer, by), rp_id, allowed)


def prove(
    home: Home, item: InboxItem, answer: Mapping[str, Any], by: str, proof: Proof | None
) -> dict[str, Any]:
    """Returns the signature of an answer as it is stored; raises if there is no valid one."""
    if proof is None:
        raise PresenceRequired(
            f"request #{item.id} needs the signature of a passkey; approve it on the web page",
            remedy=SignOnPage(item.id),
        )
    signature = check_proof(home, proof, approval_challenge(item, answer, by))
    return {"request": item.id, **signature}


def check_proof(home: Home, proof: Proof, challenge: bytes) -> dict[str, Any]:
    """Returns a signature as it is stored; raises `SignatureRefused` unless it is valid."""
    passkeys = read_passkeys(passkeys_file(home))
    identity = proof.reply.get("id")
    passkey = next((each for each in passkeys if each.credential == identity), None)
    if passkey is None or not passkey.is_active:
        raise SignatureRefused("the signature is not one of a passkey of this project")
    check_trust(passkeys, passkey)
    return check_sent(proof.reply, passkey, challenge, proof.origins)


@dataclass(frozen=True)
class Registration:
    """A registration that was started in the terminal."""

    secret: str
    """The secret of its link, which is used once."""
    name: str
    """How the passkey will be called."""
    owner: str
    """The user who registers it."""


def check_name(home: Home, name: str) -> None:
    """Raises `UsageError` if a new passkey cannot have this name."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise UsageError(f"a passkey's name is one line of at most {LONGEST_NAME} characters")
    refuse_known(read_passkeys(passkeys_file(home)), name)


def registration_options(home: Home, registration: Registration, rp_id: str) -> dict[str, Any]:
    """Returns what a browser needs to create a passkey."""
    challenge = registration_challenge(registration.secret)
    return creation_options(challenge, rp_id, registration.name, active_passkeys(home, rp_id))


def created_passkey(registration: Registration, created: Proof, at: float) -> Passkey:
    """Returns the passkey that an authenticator created; raises `SignatureRefused`."""
    challenge = registration_challenge(registration.secret)
    name, owner = registration.name, registration.owner
    return check_creation(created.reply, challenge, created.origins, name, owner, at)


def confirmation_options(home: Home, new: Passkey) -> dict[str, Any] | None:
    """Returns what a browser needs to have a passkey let in by another; None for the first."""
    others = confirming(read_passkeys(passkeys_file(home)), new.registered_at)
    if not others:
        return None
    here = [each for each in others if each.rp_id == new.rp_id]
    if not here:
        listed = ", ".join(f"{each.name!r} ({each.rp_id})" for each in others[:8])
        raise PresenceRequired(
            f"one of the passkeys {listed} has to confirm this one, and none of them works on "
            f"{new.rp_id}; open the page under the name of their host, or remove them"
        )
    return request_options(confirmation_challenge(new), new.rp_id, here)


def register(home: Home, new: Passkey, confirmation: Proof | None) -> Passkey:
    """Adds a passkey; raises `PresenceRequired` unless it is the first or is confirmed."""
    path = passkeys_file(home)
    if confirming(read_passkeys(path), new.registered_at):
        if confirmation is None:
            raise PresenceRequired("a passkey that is registered already has to confirm this one")
        signature = check_proof(home, confirmation, confirmation_challenge(new))
        new = replace(new, confirmation=signature)
    add_passkey(path, new)
    return new


# Approvals are checked long after they were given, and without a server. Everything is computed
# again from what is stored: the digest of what was shown, the answer that the run continued with,
# and whether a passkey of the project signed exactly that.

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
    passkeys = read_passkeys(passkeys_file(project.home) if keys is None else keys)
    replies = _replies(project, row)
    return [
        _check(item, form, answer, replies.get((item.effect, item.answered_at)), passkeys)
        for item in project.store.items(row.name, state=_GIVEN)
        for form, answer in [(form_of(project, item), json.loads(item.answer or "{}"))]
        if approves(form, answer.get("value")) or answer.get("presence")
    ]


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


def _check(
    item: InboxItem,
    form: Mapping[str, Any],
    answer: Mapping[str, Any],
    reply: Mapping[str, Any] | None,
    passkeys: Sequence[Passkey],
) -> ApprovalCheck:
    by = item.answered_by or ""
    signature: Mapping[str, Any] = answer.get("presence") or {}
    found = ApprovalCheck(
        request=item.id,
        run=item.run,
        step=item.step,
        prompt=item.prompt,
        value=answer.get("value"),
        by=by,
        at=item.answered_at or 0.0,
        required=needs_presence(form, answer.get("value")),
    )
    try:
        _check_record(item, form, answer, reply)
        if not signature:
            if found.required:
                raise SignatureRefused("it has no signature, and needs one")
            return found
        passkey = _signer(passkeys, signature)
        check_trust(passkeys, passkey)
        challenge = approval_challenge(item, answer, by, signature.get("request"))
        check_stored(signature, passkey, challenge)
    except SignatureRefused as error:
        return replace(found, problem=str(error))
    return replace(
        found,
        passkey=passkey.name,
        fingerprint=passkey.fingerprint,
        origin=str(signature["origin"]),
    )


def _check_record(
    item: InboxItem,
    form: Mapping[str, Any],
    answer: Mapping[str, Any],
    reply: Mapping[str, Any] | None,
) -> None:
    """Raises `SignatureRefused` if what is stored about a request does not fit together."""
    if digest(form) != item.digest:
        raise SignatureRefused("what was shown is not what is stored now")
    if reply is None:
        if item.state is ItemState.USED:
            raise SignatureRefused("the journal of the run has no such answer")
        return
    used = {**{name: reply.get(name) for name in _RECORDED}, "by": reply.get("by")}
    if used != {**{name: answer.get(name) for name in _RECORDED}, "by": item.answered_by or ""}:
        raise SignatureRefused("the run continued with another answer than the one that is stored")


def _signer(passkeys: Sequence[Passkey], signature: Mapping[str, Any]) -> Passkey:
    identity = signature.get("credential")
    found = next((each for each in passkeys if each.credential == identity), None)
    if found is None:
        name = str(signature.get("passkey"))[:100]
        raise SignatureRefused(f"it was signed by {name!r}, which is no passkey of this project")
    return found
