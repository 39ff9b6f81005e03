"""How often each passkey has signed by its own count; a copy of it makes that count go back.

Many authenticators always report 0, which says nothing. The counts belong to this machine and are
not committed; without them a signature is still bound to its request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from signoff.documents.file_lock import file_lock
from signoff.documents.regular_files import (
    make_private_folders,
    read_regular,
    replace_private,
    translate_write_errors,
)

FILE = "sign_counts.json"
LARGEST_BYTES = 1 << 20

T = TypeVar("T")


def with_count(path: Path, credential: str, check: Callable[[int], tuple[T, int]]) -> T:
    """Calls `check` with the last count of a passkey, and stores the one it returns.

    Two signatures at the same time are checked one after the other.
    """
    with translate_write_errors(path):
        make_private_folders(path.parent)
        with file_lock(path):
            counts = _read(path)
            result, count = check(counts.get(credential, 0))
            if count != counts.get(credential, 0):
                replace_private(path, [json.dumps({**counts, credential: count})])
    return result


def _read(path: Path) -> dict[str, int]:
    try:
        stored = json.loads(read_regular(path, LARGEST_BYTES))
        return {str(name): int(count) for name, count in stored.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError):
        # Counts only reveal copies; losing them must not keep a human from signing.
        return {}
