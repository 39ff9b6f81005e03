"""The file with the passkeys of a project, meant to be committed with the settings; what they sign.

It holds public keys and nothing secret. Under version control, a change of who can sign is reviewed
like any other change, and signatures can be checked wherever the repository is. A passkey that was
removed stays in the file: what it signed before has to remain verifiable.

A passkey signs a hash of a statement, with its purpose in front. The statement of an approval names
the request, its run and the digest of what was shown, and the answer as it is stored. A signature
is therefore worthless for any other request, run, content or answer, and it breaks if the stored
answer is changed later.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from signoff.core.digest import SHORT, digest
from signoff.documents.file_lock import file_lock
from signoff.documents.regular_files import read_regular, replace_private, translate_write_errors
from signoff.errors import ConfigError, NameTaken, UnknownName, UsageError
from signoff.runtime.store_port import InboxItem

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
        return hashlib.sha256(from_base64url(self.public_key)).hexdigest()

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
        document = json.loads(read_regular(path, LARGEST_BYTES))
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
    with translate_write_errors(path), file_lock(path):
        # Read under the lock: two people may register at once, from two pages.
        known = read_passkeys(path)
        _refuse_known(known, passkey.name, passkey.credential)
        _write(path, [*known, passkey])


def check_name(path: Path, name: str) -> None:
    """Raises `UsageError` if a new passkey cannot have this name."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise UsageError(f"a passkey's name is one line of at most {LONGEST_NAME} characters")
    _refuse_known(read_passkeys(path), name)


def _refuse_known(known: Sequence[Passkey], name: str, credential: str = "") -> None:
    # Removed ones count too: a name that meant two keys would make earlier records ambiguous.
    if any(each.name == name for each in known):
        raise NameTaken(f"a passkey named {name!r} exists or existed; choose another name")
    if any(each.credential == credential for each in known):
        raise NameTaken("this passkey is registered already")


def remove_passkey(path: Path, name: str, at: float) -> Passkey:
    """Marks a passkey as removed; raises `UnknownName`."""
    with translate_write_errors(path), file_lock(path):
        known = read_passkeys(path)
        active = {each.name: each for each in known if each.is_active}
        if name not in active:
            raise UnknownName("passkey", name, list(active))
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


def registration_challenge(secret: str) -> bytes:
    """Returns what a new passkey signs; the secret of its link is used once."""
    return _challenge(_REGISTRATION, {"link": secret})


def confirmation_challenge(new: Passkey) -> bytes:
    """Returns what an earlier passkey signs to let in a new one."""
    names = ("name", "owner", "credential", "public_key", "rp_id")
    return _challenge(_CONFIRMATION, {name: getattr(new, name) for name in names})


def _challenge(purpose: bytes, statement: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(purpose + bytes.fromhex(digest(statement))).digest()


def to_base64url(data: bytes) -> str:
    """Returns bytes as the base64url text, without padding, that WebAuthn uses."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Returns the bytes of a base64url text; raises ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _read(raw: Mapping[str, Any]) -> Passkey:
    # The fingerprint is in the file for those who review it; here it is computed from the key.
    known = {each.name for each in fields(Passkey)}
    passkey = Passkey(**{name: value for name, value in raw.items() if name in known})
    texts = (passkey.name, passkey.owner, passkey.credential, passkey.public_key, passkey.rp_id)
    if not all(isinstance(each, str) and each for each in texts):
        raise ValueError("a passkey needs a name, an owner, a credential, a public key and a host")
    from_base64url(passkey.public_key)
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
    replace_private(path, [text, "\n"])


def _damaged(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"cannot use the passkeys in {path}: {why}; restore the file from version control"
    )


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
