"""The two logs of a run directory, line by line.

`thread.jsonl` is for programs: one object per finished step and per finished effect.
`live.log` is for people. A line depends on the journal alone, never on the clock or
the machine, so two processes that write the same log write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LONGEST_QUOTE = 300
"""Characters of an outside text that a log repeats; the whole is in the journal."""


def timestamp(at: float) -> str:
    """Returns a moment in ISO 8601, in UTC."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def thread_line(place: str, at: float, entry: Mapping[str, Any]) -> bytes:
    """Returns one line of `thread.jsonl`; `place` is unique in the journal and makes its id."""
    line_id = hashlib.sha256(place.encode()).hexdigest()[:16]
    text = json.dumps({"id": line_id, "ts": timestamp(at), **entry}, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def log_line(at: float, text: str) -> bytes:
    """Returns one line of `live.log`."""
    return f"{timestamp(at)}  {quote(text)}\n".encode("utf-8", "backslashreplace")


def quote(text: Any) -> str:
    """Returns the beginning of an outside text on one line, nothing in it a terminal obeys."""
    words = " ".join(str(text)[: LONGEST_QUOTE * 2].split())
    shown = words if words.isprintable() else "".join(map(_visible, words))
    return shown if len(shown) <= LONGEST_QUOTE else f"{shown[:LONGEST_QUOTE]}…"


def _visible(character: str) -> str:
    return "?" if unicodedata.category(character) in ("Cc", "Cf") else character
