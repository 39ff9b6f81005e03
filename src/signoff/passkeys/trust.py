"""Decides whether a passkey may be trusted: it is the first, or an earlier one let it in.

Anything that can write files as the user can add a line to the file of passkeys. It cannot sign
for an existing passkey, so an addition without the confirmation of one shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.errors import SignatureRefused
from signoff.passkeys.key_file import Passkey
from signoff.passkeys.statements import confirmation_challenge
from signoff.passkeys.webauthn_checks import check_stored


def check_trust(passkeys: Sequence[Passkey], passkey: Passkey) -> None:
    """Raises `SignatureRefused` unless a passkey is the first, or confirmed up to the first."""
    while passkey.confirmation:
        earlier = passkeys[: passkeys.index(passkey)]
        by = passkey.confirmation.get("fingerprint")
        signer = next((each for each in earlier if each.fingerprint == by), None)
        if signer is None:
            raise SignatureRefused(f"passkey {passkey.name!r} was confirmed by an unknown passkey")
        check_stored(passkey.confirmation, signer, confirmation_challenge(passkey))
        passkey = signer
    others = confirming(passkeys[: passkeys.index(passkey)], passkey.registered_at)
    if others:
        raise SignatureRefused(
            f"passkey {passkey.name!r} was added without being confirmed by {others[0].name!r}; "
            "if you did not do this, remove it"
        )


def confirming(passkeys: Sequence[Passkey], at: float) -> list[Passkey]:
    """Returns the passkeys that can let in another one at that moment."""
    return [each for each in passkeys if each.removed_at is None or each.removed_at > at]
