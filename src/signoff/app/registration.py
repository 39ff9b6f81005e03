"""Registers passkeys: who may sign approvals from now on.

A registration starts in the terminal, with a link that works once, so holding a login is not
enough. As soon as there is a passkey, one of them has to sign for each further one, so a shell is
not enough either. What remains is a change of the file itself, which is meant to be reviewed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from signoff.app.home import Home
from signoff.app.presence import Proof, active_passkeys, check_proof, passkeys_file
from signoff.errors import PresenceRequired, UsageError
from signoff.passkeys.key_file import (
    LONGEST_NAME,
    Passkey,
    add_passkey,
    read_passkeys,
    refuse_known,
)
from signoff.passkeys.statements import confirmation_challenge, registration_challenge
from signoff.passkeys.trust import confirming
from signoff.passkeys.webauthn_checks import check_creation, creation_options, request_options


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
    new = check_creation(created.reply, challenge, created.origins)
    return Passkey(
        registration.name, registration.owner, new.credential, new.public_key, new.rp_id, at
    )


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
