"""Asks authenticators for passkeys and signatures, and decides which of them to trust.

The checks themselves are those of the package `webauthn`. Everything that comes in is hostile:
it may have been sent by a program that holds the login of a human.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from signoff.errors import ConfigError, SignatureRefused
from signoff.passkeys.key_file import (
    Passkey,
    confirmation_challenge,
    from_base64url,
    to_base64url,
)
from signoff.remedies import Install

TIMEOUT_MILLISECONDS = 120_000

_PARTS = {
    "client_data": "clientDataJSON",
    "authenticator_data": "authenticatorData",
    "signature": "signature",
}
"""Names of the parts of a signature as they are stored, and as browsers send them."""


def creation_options(
    challenge: bytes, rp_id: str, name: str, known: Iterable[Passkey]
) -> dict[str, Any]:
    """Returns what a browser needs to create a passkey."""
    webauthn = _library()
    from webauthn.helpers import structs

    options = webauthn.generate_registration_options(
        rp_id=rp_id,
        rp_name="signoff",
        user_name=name,
        challenge=challenge,
        timeout=TIMEOUT_MILLISECONDS,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            user_verification=structs.UserVerificationRequirement.REQUIRED,
            resident_key=structs.ResidentKeyRequirement.PREFERRED,
        ),
        exclude_credentials=_descriptors(known),
    )
    parsed: dict[str, Any] = json.loads(webauthn.options_to_json(options))
    return parsed


def request_options(challenge: bytes, rp_id: str, allowed: Iterable[Passkey]) -> dict[str, Any]:
    """Returns what a browser needs to have something signed by one of these passkeys."""
    webauthn = _library()
    from webauthn.helpers import structs

    options = webauthn.generate_authentication_options(
        rp_id=rp_id,
        challenge=challenge,
        timeout=TIMEOUT_MILLISECONDS,
        allow_credentials=_descriptors(allowed),
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    parsed: dict[str, Any] = json.loads(webauthn.options_to_json(options))
    return parsed


def check_creation(
    created: Mapping[str, Any], challenge: bytes, origins: Sequence[str], name: str, owner: str,
    at: float,
) -> Passkey:  # fmt: skip
    """Returns the passkey that a browser reports; raises `SignatureRefused`."""
    webauthn = _library()
    origin = _origin(created, origins)
    try:
        verified = webauthn.verify_registration_response(
            credential=dict(created),
            expected_challenge=challenge,
            expected_rp_id=host_of(origin),
            expected_origin=origin,
            require_user_verification=True,
        )
    # The library raises many kinds of errors for damaged input, and every one of them means no.
    except Exception as error:
        raise SignatureRefused(f"the new passkey was refused: {error}") from error
    identity = to_base64url(verified.credential_id)
    public_key = to_base64url(verified.credential_public_key)
    return Passkey(name, owner, identity, public_key, host_of(origin), at)


def check_sent(
    sent: Mapping[str, Any], passkey: Passkey, challenge: bytes, origins: Sequence[str]
) -> dict[str, Any]:
    """Returns a signature as it is stored, with all that is needed to check it later.

    Raises `SignatureRefused` unless it is valid.
    """
    origin = _origin(sent, origins)
    signature = {
        "passkey": passkey.name,
        "fingerprint": passkey.fingerprint,
        "credential": passkey.credential,
        "rp_id": passkey.rp_id,
        "origin": origin,
        **{name: str(sent["response"].get(part)) for name, part in _PARTS.items()},
    }
    check_stored(signature, passkey, challenge)
    return signature


def check_stored(signature: Mapping[str, Any], passkey: Passkey, challenge: bytes) -> None:
    """Raises `SignatureRefused` unless a passkey signed this; needs nothing else.

    The count of an authenticator is not checked: most of them always report 0.
    """
    webauthn = _library()
    credential = str(signature.get("credential"))
    origin = str(signature.get("origin"))
    if credential != passkey.credential or host_of(origin) != passkey.rp_id:
        raise SignatureRefused("the signature is not one of this passkey for this host")
    response = {part: signature.get(name) for name, part in _PARTS.items()}
    reply = {"id": credential, "rawId": credential, "type": "public-key", "response": response}
    try:
        webauthn.verify_authentication_response(
            credential=reply,
            expected_challenge=challenge,
            expected_rp_id=passkey.rp_id,
            expected_origin=origin,
            credential_public_key=from_base64url(passkey.public_key),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    # As above: whatever the library stumbles over, it is not a valid signature.
    except Exception as error:
        raise SignatureRefused(f"the signature is not valid: {error}") from error


def check_trust(passkeys: Sequence[Passkey], passkey: Passkey) -> None:
    """Raises `SignatureRefused` unless a passkey is the first, or confirmed up to the first.

    Anything that can write files as the user can add a line to the file of passkeys. It cannot sign
    for an existing passkey, so an addition without the confirmation of one shows.
    """
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


def host_of(origin: str) -> str:
    """Returns the host name of an origin, which is the id that passkeys know it by."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _origin(sent: Mapping[str, Any], origins: Sequence[str]) -> str:
    """Returns the origin of the page that asked; raises `SignatureRefused`."""
    try:
        client_data = json.loads(from_base64url(sent["response"]["clientDataJSON"]))
        origin, foreign = client_data["origin"], client_data.get("crossOrigin", False)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SignatureRefused("the reply of the authenticator is damaged") from error
    if origin not in origins or foreign is not False:
        # Passkeys know hosts, not ports: another page of this machine could ask for a signature.
        raise SignatureRefused(f"the signature was made on another page ({str(origin)[:100]!r})")
    return str(origin)


def _descriptors(passkeys: Iterable[Passkey]) -> list[Any]:
    from webauthn.helpers import structs

    return [
        structs.PublicKeyCredentialDescriptor(id=from_base64url(each.credential))
        for each in passkeys
    ]


def _library() -> Any:
    try:
        import webauthn
    except ImportError as error:
        message = "passkeys need the extra 'passkeys'"
        raise ConfigError(message, remedy=Install("passkeys")) from error
    return webauthn
