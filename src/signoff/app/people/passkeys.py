"""Passkeys: the file that holds them, what they sign, and which signatures to trust.

The file is meant to be committed with the settings; it holds public keys and nothing secret. Under
version control, a change of who can sign is reviewed like any other change, and signatures can be
checked wherever the repository is. A passkey that was removed stays in the file: what it signed
before has to remain verifiable.

A passkey signs a hash of a statement, with its purpose in front. The statement of an approval names
the request, its run and the digest of what was shown, and the answer as it is stored. A signature
is therefore worthless for any other request, run, content or answer, and it breaks if the stored
answer is changed later. The checks themselves are those of the package `webauthn`. Everything that
comes in is hostile: it may have been sent by a program that holds the login of a human.

A passkey is registered by a link from the terminal, which works once, so holding a login is not
enough. As soon as there is a passkey, one of them has to sign for each further one, so a shell is
not enough either. What remains is a change of the file itself, which is meant to be reviewed.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from signoff.app.runs.history import events_of, form_of
from signoff.app.settings.project import Project
from signoff.core import errors
from signoff.core.digest import SHORT, digest
from signoff.core.events import EffectFinished
from signoff.core.remedies import AddPasskey, Install, SignOnPage
from signoff.core.requests import ItemState, approves, needs_presence
from signoff.documents import regular_files
from signoff.runtime.store_port import InboxItem, RunRow

VERSION = 1
LARGEST_BYTES = 1 << 20
LONGEST_NAME = 64

HEADINGS = ("Name", "Owner", "Host", "Registered", "Confirmed by", "Fingerprint", "State")
"""Of what lists show of a passkey."""

# The purposes differ, so that no signature for one of them is ever valid for another.
_APPROVAL = b"signoff approval 1\n"
_REGISTRATION = b"signoff passkey registration 1\n"
_CONFIRMATION = b"signoff passkey confirmation 1\n"

_SIGNED = ("value", "text", "extras", "content_digest")
"""The parts of a stored answer that decide what it means."""

TIMEOUT_MILLISECONDS = 120_000

_PARTS = {
    "client_data": "clientDataJSON",
    "authenticator_data": "authenticatorData",
    "signature": "signature",
}
"""Names of the parts of a signature as they are stored, and as browsers send them."""


@dataclass(frozen=True)
class Passkey:
    """The public half of a passkey, and who registered it."""

    name: str
    owner: str
    """The user who registered it."""
    credential: str
    """The id by which authenticators find it, in base64url."""
    public_key: str
    """The public key in COSE form, in base64url."""
    rp_id: str
    """The host name that it signs for."""
    registered_at: float
    confirmation: Mapping[str, Any] = field(default_factory=dict)
    """The signature of an earlier passkey that let this one in; empty for the first."""
    removed_at: float | None = None

    @property
    def fingerprint(self) -> str:
        """What identifies its public key to humans."""
        return hashlib.sha256(_from_base64url(self.public_key)).hexdigest()

    @property
    def is_active(self) -> bool:
        """Whether it may still sign."""
        return self.removed_at is None

    def describe(self) -> tuple[str, ...]:
        """Returns what lists show, in the order of `HEADINGS`."""
        by = str(self.confirmation.get("passkey") or "-")
        removed = None if self.removed_at is None else f"removed {_day(self.removed_at)}"
        return (
            self.name, self.owner, self.rp_id, _day(self.registered_at), by,
            self.fingerprint[:SHORT], removed or "active",
        )  # fmt: skip


def read_passkeys(path: Path) -> list[Passkey]:
    """Returns all passkeys, oldest first; none if there is no file. Raises `ConfigError`."""
    try:
        document = json.loads(regular_files.read_regular(path, LARGEST_BYTES))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    # An unknown version is an error, not an empty list, which would let anyone in as the first.
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        raise _damaged(path, f"its version is {version!r}, not {VERSION}")
    try:
        found = [_read(each) for each in document["passkeys"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"it is not a list of passkeys ({error})") from error
    if len({each.name for each in found}) != len(found):
        raise _damaged(path, "two passkeys have the same name")
    return found


def add_passkey(path: Path, passkey: Passkey) -> None:
    """Adds a passkey; raises `NameTaken` if its name or its credential is known already."""
    with regular_files.translate_write_errors(path), regular_files.file_lock(path):
        # Read under the lock: two people may register at once, from two pages.
        known = read_passkeys(path)
        _refuse_known(known, passkey.name, passkey.credential)
        _write(path, [*known, passkey])


def check_name(path: Path, name: str) -> None:
    """Raises `UsageError` if a new passkey cannot have this name."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise errors.UsageError(
            f"a passkey's name is one line of at most {LONGEST_NAME} characters"
        )
    _refuse_known(read_passkeys(path), name)


def _refuse_known(known: Sequence[Passkey], name: str, credential: str = "") -> None:
    # Removed ones count too: a name that meant two keys would make earlier records ambiguous.
    if any(each.name == name for each in known):
        raise errors.NameTaken(f"a passkey named {name!r} exists or existed; choose another name")
    if any(each.credential == credential for each in known):
        raise errors.NameTaken("this passkey is registered already")


def remove_passkey(path: Path, name: str, at: float) -> Passkey:
    """Marks a passkey as removed; raises `UnknownName`."""
    with regular_files.translate_write_errors(path), regular_files.file_lock(path):
        known = read_passkeys(path)
        active = {each.name: each for each in known if each.is_active}
        if name not in active:
            raise errors.UnknownName("passkey", name, list(active))
        removed = replace(active[name], removed_at=at)
        _write(path, [removed if each.name == name else each for each in known])
    return removed


def approval_challenge(
    item: InboxItem, answer: Mapping[str, Any], by: str, number: int | None = None
) -> bytes:
    """Returns what is signed to give this answer to this request.

    `number` is the one that the request had then, if its run has been moved to another store.
    """
    statement = {
        "request": item.id if number is None else number,
        "run": item.run,
        "effect": item.effect,
        # Names and numbers can be used again after a run was deleted; a moment cannot.
        "opened_at": item.opened_at,
        "digest": item.digest,
        "answer": {name: answer[name] for name in _SIGNED if name in answer},
        "by": by,
    }
    return _challenge(_APPROVAL, statement)


def _registration_challenge(secret: str) -> bytes:
    """Returns what a new passkey signs; the secret of its link is used once."""
    return _challenge(_REGISTRATION, {"link": secret})


def _confirmation_challenge(new: Passkey) -> bytes:
    """Returns what an earlier passkey signs to let in a new one."""
    names = ("name", "owner", "credential", "public_key", "rp_id")
    return _challenge(_CONFIRMATION, {name: getattr(new, name) for name in names})


def _challenge(purpose: bytes, statement: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(purpose + bytes.fromhex(digest(statement))).digest()


def to_base64url(data: bytes) -> str:
    """Returns bytes as the base64url text, without padding, that WebAuthn uses."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_base64url(text: str) -> bytes:
    """Returns the bytes of a base64url text; raises ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _read(raw: Mapping[str, Any]) -> Passkey:
    # The fingerprint is in the file for those who review it; here it is computed from the key.
    known = {each.name for each in fields(Passkey)}
    passkey = Passkey(**{name: value for name, value in raw.items() if name in known})
    texts = (passkey.name, passkey.owner, passkey.credential, passkey.public_key, passkey.rp_id)
    if not all(isinstance(each, str) and each for each in texts):
        raise ValueError("a passkey needs a name, an owner, a credential, a public key and a host")
    _from_base64url(passkey.public_key)
    # These are compared, so they have to be numbers.
    removed = None if passkey.removed_at is None else float(passkey.removed_at)
    return replace(passkey, registered_at=float(passkey.registered_at), removed_at=removed)


def _write(path: Path, passkeys: Sequence[Passkey]) -> None:
    listed = [
        {
            **{name: value for name, value in asdict(each).items() if value not in (None, {})},
            "fingerprint": each.fingerprint,
        }
        for each in passkeys
    ]
    text = json.dumps({"version": VERSION, "passkeys": listed}, indent=2, ensure_ascii=True)
    regular_files.replace_private(path, [text, "\n"])


def _damaged(path: Path, why: str) -> errors.ConfigError:
    return errors.ConfigError(
        f"cannot use the passkeys in {path}: {why}; restore the file from version control"
    )


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


@dataclass(frozen=True)
class Proof:
    """What an authenticator returned to a page."""

    reply: Mapping[str, Any]
    """The credential with its signature, as browsers send it."""
    origins: Sequence[str]
    """The addresses of this server's pages; a signature that was made elsewhere is refused."""


def signing_options(
    file: Path, item: InboxItem, answer: Mapping[str, Any], by: str, rp_id: str
) -> dict[str, Any]:
    """Returns what a browser needs to have an answer signed; raises `PresenceRequired`."""
    allowed = _active(file, rp_id)
    if not allowed:
        raise errors.PresenceRequired(
            f"request #{item.id} needs a signature, and no passkey is registered for {rp_id}",
            remedy=AddPasskey(),
        )
    return _request_options(approval_challenge(item, answer, by), rp_id, allowed)


def prove(
    file: Path, item: InboxItem, answer: Mapping[str, Any], by: str, proof: Proof | None
) -> dict[str, Any]:
    """Returns the signature of an answer as it is stored; raises if there is no valid one."""
    if proof is None:
        raise errors.PresenceRequired(
            f"request #{item.id} needs the signature of a passkey; approve it on the web page",
            remedy=SignOnPage(item.id),
        )
    return {"request": item.id, **_checked(file, proof, approval_challenge(item, answer, by))}


def registration_options(file: Path, secret: str, name: str, rp_id: str) -> dict[str, Any]:
    """Returns what a browser needs to create a passkey; the secret is that of its link."""
    webauthn = _library()
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_registration_options(
        rp_id=rp_id,
        rp_name="signoff",
        user_name=name,
        challenge=_registration_challenge(secret),
        timeout=TIMEOUT_MILLISECONDS,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            # A touch alone proves that somebody is there, not who: a PIN or a finger does.
            user_verification=structs.UserVerificationRequirement.REQUIRED,
            resident_key=structs.ResidentKeyRequirement.PREFERRED,
        ),
        exclude_credentials=_descriptors(_active(file, rp_id)),
    )
    return dict(options_to_json_dict(options))


def created_passkey(secret: str, name: str, owner: str, created: Proof, at: float) -> Passkey:
    """Returns the passkey that an authenticator created; raises `SignatureRefused`."""
    webauthn = _library()
    origin = _origin(created)
    try:
        verified = webauthn.verify_registration_response(
            credential=dict(created.reply),
            expected_challenge=_registration_challenge(secret),
            expected_rp_id=_host_of(origin),
            expected_origin=origin,
            require_user_verification=True,
        )
    # The library raises many kinds of errors for damaged input, and every one of them means no.
    except Exception as error:
        raise errors.SignatureRefused(f"the new passkey was refused: {error}") from error
    identity = to_base64url(verified.credential_id)
    public_key = to_base64url(verified.credential_public_key)
    return Passkey(name, owner, identity, public_key, _host_of(origin), at)


def confirmation_options(file: Path, new: Passkey) -> dict[str, Any] | None:
    """Returns what a browser needs to have a passkey let in by another; None for the first."""
    others = _confirming(read_passkeys(file), new.registered_at)
    if not others:
        return None
    here = [each for each in others if each.rp_id == new.rp_id]
    if not here:
        listed = ", ".join(f"{each.name!r} ({each.rp_id})" for each in others[:8])
        raise errors.PresenceRequired(
            f"one of the passkeys {listed} has to confirm this one, and none of them works on "
            f"{new.rp_id}; open the page under the name of their host, or remove them"
        )
    return _request_options(_confirmation_challenge(new), new.rp_id, here)


def register(file: Path, new: Passkey, confirmation: Proof | None) -> Passkey:
    """Adds a passkey; raises `PresenceRequired` unless it is the first or is confirmed."""
    if _confirming(read_passkeys(file), new.registered_at):
        if confirmation is None:
            raise errors.PresenceRequired(
                "a passkey that is registered already has to confirm this one"
            )
        signature = _checked(file, confirmation, _confirmation_challenge(new))
        new = replace(new, confirmation=signature)
    add_passkey(file, new)
    return new


def _checked(file: Path, proof: Proof, challenge: bytes) -> dict[str, Any]:
    """Returns a signature as it is stored, with all that is needed to check it later.

    Raises `SignatureRefused` unless it is valid, and of a passkey that is trusted now.
    """
    passkeys = read_passkeys(file)
    identity = proof.reply.get("id")
    passkey = next((each for each in passkeys if each.credential == identity), None)
    if passkey is None or not passkey.is_active:
        raise errors.SignatureRefused("the signature is not one of a passkey of this project")
    # A line in the file is not enough: whoever can write it could have added a key of their own.
    check_trust(passkeys, passkey)
    signature = {
        "passkey": passkey.name,
        "fingerprint": passkey.fingerprint,
        "credential": passkey.credential,
        "rp_id": passkey.rp_id,
        "origin": _origin(proof),
        **{name: str(proof.reply["response"].get(part)) for name, part in _PARTS.items()},
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
    # The origin is the signature's own claim: it has to be of the host that the passkey is for.
    if credential != passkey.credential or _host_of(origin) != passkey.rp_id:
        raise errors.SignatureRefused("the signature is not one of this passkey for this host")
    response = {part: signature.get(name) for name, part in _PARTS.items()}
    reply = {"id": credential, "rawId": credential, "type": "public-key", "response": response}
    try:
        webauthn.verify_authentication_response(
            credential=reply,
            expected_challenge=challenge,
            expected_rp_id=passkey.rp_id,
            expected_origin=origin,
            credential_public_key=_from_base64url(passkey.public_key),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    # As above: whatever the library stumbles over, it is not a valid signature.
    except Exception as error:
        raise errors.SignatureRefused(f"the signature is not valid: {error}") from error


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
            raise errors.SignatureRefused(
                f"passkey {passkey.name!r} was confirmed by an unknown passkey"
            )
        check_stored(passkey.confirmation, signer, _confirmation_challenge(passkey))
        passkey = signer
    others = _confirming(passkeys[: passkeys.index(passkey)], passkey.registered_at)
    if others:
        raise errors.SignatureRefused(
            f"passkey {passkey.name!r} was added without being confirmed by {others[0].name!r}; "
            "if you did not do this, remove it"
        )


def _confirming(passkeys: Sequence[Passkey], at: float) -> list[Passkey]:
    """Returns the passkeys that can let in another one at that moment."""
    return [each for each in passkeys if each.removed_at is None or each.removed_at > at]


def _host_of(origin: str) -> str:
    """Returns the host name of an origin, which is the id that passkeys know it by."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _active(file: Path, rp_id: str) -> list[Passkey]:
    """Returns the passkeys that may sign on the pages of a host."""
    return [each for each in read_passkeys(file) if each.is_active and each.rp_id == rp_id]


def _request_options(challenge: bytes, rp_id: str, allowed: Iterable[Passkey]) -> dict[str, Any]:
    """Returns what a browser needs to have something signed by one of these passkeys."""
    webauthn = _library()
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_authentication_options(
        rp_id=rp_id,
        challenge=challenge,
        timeout=TIMEOUT_MILLISECONDS,
        allow_credentials=_descriptors(allowed),
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    return dict(options_to_json_dict(options))


def _origin(sent: Proof) -> str:
    """Returns the origin of the page that asked; raises `SignatureRefused`."""
    try:
        client_data = json.loads(_from_base64url(sent.reply["response"]["clientDataJSON"]))
        origin, foreign = client_data["origin"], client_data.get("crossOrigin", False)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise errors.SignatureRefused("the reply of the authenticator is damaged") from error
    if origin not in sent.origins or foreign is not False:
        # Passkeys know hosts, not ports: another page of this machine could ask for a signature.
        raise errors.SignatureRefused(
            f"the signature was made on another page ({str(origin)[:100]!r})"
        )
    return str(origin)


def _descriptors(passkeys: Iterable[Passkey]) -> list[Any]:
    from webauthn.helpers import structs

    return [
        structs.PublicKeyCredentialDescriptor(id=_from_base64url(each.credential))
        for each in passkeys
    ]


def _library() -> Any:
    try:
        import webauthn
    except ImportError as error:
        message = "passkeys need the extra 'passkeys'"
        raise errors.ConfigError(message, remedy=Install("passkeys")) from error
    return webauthn


# Long after they were given and without a server, the signatures of a run's approvals are checked
# again. Everything is computed from what is stored: the digest of what was shown, the answer that
# the run continued with, and whether a passkey of the project signed exactly that.

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
    passkeys = read_passkeys(project.home.passkeys if keys is None else keys)
    replies = _replies(project, row)
    given = (
        _StoredAnswer(
            item,
            form_of(project, item),
            json.loads(item.answer or "{}"),
            replies.get((item.effect, item.answered_at)),
        )
        for item in project.store.items(row.name, state=_GIVEN)
    )
    return [_check(each, passkeys) for each in given if each.approves]


class _StoredAnswer(NamedTuple):
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


def _check(given: _StoredAnswer, passkeys: Sequence[Passkey]) -> ApprovalCheck:
    item, value = given.item, given.answer.get("value")
    by, at = item.answered_by or "", item.answered_at or 0.0
    required = needs_presence(given.form, value)
    found = ApprovalCheck(item.id, item.run, item.step, item.prompt, value, by, at, required)
    signature: Mapping[str, Any] = given.answer.get("presence") or {}
    try:
        _check_record(given)
        if not signature:
            if required:
                raise errors.SignatureRefused("it has no signature, and needs one")
            return found
        passkey = _signer(passkeys, signature)
        check_trust(passkeys, passkey)
        # The number that the request had when it was signed: a run that moves to another store
        # gets new ones, and its signatures stay valid.
        challenge = approval_challenge(item, given.answer, by, signature.get("request"))
        check_stored(signature, passkey, challenge)
    except errors.SignatureRefused as error:
        return replace(found, problem=str(error))
    origin = str(signature["origin"])
    return replace(found, passkey=passkey.name, fingerprint=passkey.fingerprint, origin=origin)


def _check_record(given: _StoredAnswer) -> None:
    """Raises `SignatureRefused` if what is stored about a request does not fit together."""
    if digest(given.form) != given.item.digest:
        raise errors.SignatureRefused("what was shown is not what is stored now")
    if given.reply is None:
        if given.item.state is ItemState.USED:
            raise errors.SignatureRefused("the journal of the run has no such answer")
        return
    used = {name: given.reply.get(name) for name in (*_RECORDED, "by")}
    stored = {name: given.answer.get(name) for name in _RECORDED}
    if used != {**stored, "by": given.item.answered_by or ""}:
        raise errors.SignatureRefused(
            "the run continued with another answer than the one that is stored"
        )


def _signer(passkeys: Sequence[Passkey], signature: Mapping[str, Any]) -> Passkey:
    identity = signature.get("credential")
    found = next((each for each in passkeys if each.credential == identity), None)
    if found is None:
        name = str(signature.get("passkey"))[:100]
        raise errors.SignatureRefused(
            f"it was signed by {name!r}, which is no passkey of this project"
        )
    return found
