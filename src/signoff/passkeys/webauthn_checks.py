"""Asks authenticators for passkeys and signatures, and checks what they return.

The checks themselves are those of the package `webauthn`. Everything that comes in is hostile:
it may have been sent by a program that holds the login of a human.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from signoff.errors import ConfigError, SignatureRefused
from signoff.passkeys.key_file import Passkey, from_base64url, to_base64url
from signoff.remedies import Install

TIMEOUT_MILLISECONDS = 120_000
LONGEST_FIELD = 20_000
"""Characters of one field; the largest, an attestation with certificates, has a few thousand."""

_PARTS = {
    "client_data": "clientDataJSON",
    "authenticator_data": "authenticatorData",
    "signature": "signature",
}
"""Names of the parts of a signature as they are stored, and as browsers send them."""


@dataclass(frozen=True)
class NewCredential:
    """What an authenticator created."""

    credential: str
    """Its id, in base64url."""
    public_key: str
    """Its public key in COSE form, in base64url."""
    rp_id: str
    """The host name that it was created for."""


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
    created: Mapping[str, Any], challenge: bytes, origins: Sequence[str]
) -> NewCredential:
    """Returns the passkey that a browser reports; raises `SignatureRefused`."""
    webauthn = _library()
    origin = _check_fields(created, ("clientDataJSON", "attestationObject"), origins)
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
    return NewCredential(identity, public_key, host_of(origin))


def stored_signature(sent: Mapping[str, Any], passkey: Passkey, origin: str) -> dict[str, Any]:
    """Returns a signature as it is stored, with all that is needed to check it later."""
    response = sent["response"]
    return {
        "passkey": passkey.name,
        "fingerprint": passkey.fingerprint,
        "credential": passkey.credential,
        "rp_id": passkey.rp_id,
        "origin": origin,
        **{name: str(response[sent_name]) for name, sent_name in _PARTS.items()},
    }


def check_sent(
    sent: Mapping[str, Any], passkey: Passkey, challenge: bytes, origins: Sequence[str], count: int
) -> tuple[dict[str, Any], int]:
    """Returns a signature as it is stored, and the authenticator's count of signatures.

    Raises `SignatureRefused`, also if the count is not above `count`.
    """
    origin = _check_fields(sent, tuple(_PARTS.values()), origins)
    signature = stored_signature(sent, passkey, origin)
    return signature, check_stored(signature, passkey, challenge, count)


def check_stored(
    signature: Mapping[str, Any], passkey: Passkey, challenge: bytes, count: int = 0
) -> int:
    """Checks a signature; needs nothing but the passkey and what was to be signed.

    Returns the authenticator's count of signatures; raises `SignatureRefused`.
    """
    webauthn = _library()
    credential = str(signature.get("credential"))
    origin = str(signature.get("origin"))
    if credential != passkey.credential or host_of(origin) != passkey.rp_id:
        raise SignatureRefused("the signature is not one of this passkey for this host")
    response = {sent: signature.get(name) for name, sent in _PARTS.items()}
    try:
        verified = webauthn.verify_authentication_response(
            credential={
                "id": credential,
                "rawId": credential,
                "type": "public-key",
                "response": response,
            },
            expected_challenge=challenge,
            expected_rp_id=passkey.rp_id,
            expected_origin=origin,
            credential_public_key=from_base64url(passkey.public_key),
            credential_current_sign_count=count,
            require_user_verification=True,
        )
    # As above: whatever the library stumbles over, it is not a valid signature.
    except Exception as error:
        raise SignatureRefused(f"the signature is not valid: {error}") from error
    return int(verified.new_sign_count)


def host_of(origin: str) -> str:
    """Returns the host name of an origin, which is the id that passkeys know it by."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _check_fields(sent: Mapping[str, Any], names: Sequence[str], origins: Sequence[str]) -> str:
    """Returns the origin of the page that asked; raises `SignatureRefused`."""
    response = sent.get("response")
    texts = [response.get(name) for name in names] if isinstance(response, Mapping) else [None]
    if not all(isinstance(each, str) and len(each) <= LONGEST_FIELD for each in texts):
        raise SignatureRefused("what the browser sent is not the reply of an authenticator")
    try:
        client_data = json.loads(from_base64url(str(texts[0])))
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
