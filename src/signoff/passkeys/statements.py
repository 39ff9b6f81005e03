"""What a passkey signs: a hash of a statement, with its purpose in front.

The statement of an approval names the request, its run and the digest of what was shown, and the
answer as it is stored. A signature is therefore worthless for any other request, run, content or
answer, and it breaks if the stored answer is changed later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from signoff.core.digest import digest
from signoff.passkeys.key_file import Passkey
from signoff.runtime.store_port import InboxItem

_APPROVAL = b"signoff approval 1\n"
_REGISTRATION = b"signoff passkey registration 1\n"
_CONFIRMATION = b"signoff passkey confirmation 1\n"
# The purposes differ, so that no signature for one of them is ever valid for another.

_SIGNED = ("value", "text", "extras", "content_digest")
"""The parts of a stored answer that decide what it means."""


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
