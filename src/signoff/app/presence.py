"""Proof that a human was present when a request was approved: the signature of a passkey.

`answering` decides which answers need it; a surface passes on what the authenticator returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.app.home import Home
from signoff.errors import PresenceRequired, SignatureRefused
from signoff.passkeys import key_file, sign_counts
from signoff.passkeys.key_file import Passkey, read_passkeys
from signoff.passkeys.statements import approval_challenge
from signoff.passkeys.trust import check_trust
from signoff.passkeys.webauthn_checks import check_sent, request_options
from signoff.remedies import AddPasskey, SignOnPage
from signoff.runtime.store_port import InboxItem


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
    return sign_counts.with_count(
        home.private_folder("web") / sign_counts.FILE,
        passkey.credential,
        lambda count: check_sent(proof.reply, passkey, challenge, proof.origins, count),
    )
