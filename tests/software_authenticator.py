"""An authenticator in software, for tests: it creates passkeys and signs like a real one.

It speaks the format of browsers (JSON with base64url) and lies on request: about the origin, the
host, the flags or the count.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from signoff.app.people.answering import AnswerInput, answer_to_sign
from signoff.app.people.passkeys import (
    Passkey,
    Proof,
    created_passkey,
    register,
    registration_options,
    signing_options,
    to_base64url,
)
from signoff.app.settings.home import Home
from signoff.app.settings.project import Project

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
ORIGIN = "http://localhost:8717"


@dataclass
class SoftwareAuthenticator:
    """One passkey, and how often it has signed."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    identity: bytes = field(default_factory=lambda: os.urandom(16))
    count: int = 0
    flags: int = PRESENT | VERIFIED

    def create(self, options: Mapping[str, Any], origin: str = ORIGIN) -> dict[str, Any]:
        """Returns what `navigator.credentials.create()` would."""
        public = self.key.public_key().public_numbers()
        cose = {
            1: 2,
            3: -7,
            -1: 1,
            -2: public.x.to_bytes(32, "big"),
            -3: public.y.to_bytes(32, "big"),
        }
        attested = bytes(16) + len(self.identity).to_bytes(2, "big") + self.identity
        data = self._data(options["rp"]["id"], ATTESTED) + attested + cbor2.dumps(cose)
        statement = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = _client_data("webauthn.create", options["challenge"], origin, {})
        return self._reply(
            {"clientDataJSON": to_base64url(client), "attestationObject": to_base64url(statement)}
        )

    def sign(self, options: Mapping[str, Any], origin: str = ORIGIN, **lies: Any) -> dict[str, Any]:
        """Returns what `navigator.credentials.get()` would; `lies` replace client data."""
        self.count += 1
        data = self._data(options["rpId"])
        client = _client_data("webauthn.get", options["challenge"], origin, lies)
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._reply(
            {
                "clientDataJSON": to_base64url(client),
                "authenticatorData": to_base64url(data),
                "signature": to_base64url(signature),
            }
        )

    def _data(self, rp_id: str, more_flags: int = 0) -> bytes:
        flags = bytes([self.flags | more_flags])
        return hashlib.sha256(rp_id.encode()).digest() + flags + self.count.to_bytes(4, "big")

    def _reply(self, response: dict[str, str]) -> dict[str, Any]:
        identity = to_base64url(self.identity)
        return {"id": identity, "rawId": identity, "type": "public-key", "response": response}


def _client_data(kind: str, challenge: str, origin: str, lies: Mapping[str, Any]) -> bytes:
    data = {"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False}
    return json.dumps({**data, **lies}).encode()


def register_passkey(
    home: Home, authenticator: SoftwareAuthenticator, name: str, confirm: Proof | None = None
) -> Passkey:
    """Registers the passkey of an authenticator, as the page does."""
    secret = f"link of {name}"
    options = registration_options(home.passkeys, secret, name, "localhost")
    created = Proof(authenticator.create(options), [ORIGIN])
    new = created_passkey(secret, name, "ann", created, 1.0)
    return register(home.passkeys, new, confirm)


def sign_answer(
    project: Project,
    number: int,
    answer: AnswerInput,
    authenticator: SoftwareAuthenticator,
    **lies: Any,
) -> AnswerInput:
    """Returns an answer that the authenticator has signed, as the page does."""
    item, stored = answer_to_sign(project, number, answer)
    options = signing_options(project.home.passkeys, item, stored, answer.by, "localhost")
    return replace(answer, proof=Proof(authenticator.sign(options, **lies), [ORIGIN]))
