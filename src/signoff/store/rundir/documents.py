"""The JSON documents of a run directory, and its two logs line by line.

`thread.jsonl` is for programs: one object per finished step and per finished effect.
`live.log` is for humans. A line depends on the journal alone, never on the clock or the
machine, so two processes that write the same log write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.spend import Spend
from signoff.documents.control_characters import escape_controls, json_text
from signoff.store.rundir.layout import Layout

VERSION = 1
"""Of everything in here; a directory of another version is rebuilt from the journal."""

LONGEST_QUOTE = 300
"""Characters of an outside text that a log repeats; the whole is in the journal."""

RESTING = frozenset({Status.RUNNING, Status.WAITING, Status.PARKED, Status.INTERRUPTED})
"""A run that stands so has not ended."""


class Claim(NamedTuple):
    """How much of which run's journal a directory says it shows."""

    run: str
    created_at: float
    """Tells the run from an earlier one of the same name."""
    definition: str
    head: int


def state_document(
    state: RunState, claim: Claim, inbox: Sequence[int], layout: Layout
) -> dict[str, Any]:
    """Returns `state.json`: the head every notation shares, its own fields, then the rest."""
    head = {
        "run": claim.run,
        "workflow": state.workflow,
        "status": state.status.value,
        "step": state.step,
        "iteration": state.iteration,
        "awaiting_human": bool(inbox),
        "journal_head": claim.head,
    }
    rest = _rest(state, claim, inbox)
    own = layout.fields(state.state_with_pending)
    return {**head, **{key: own[key] for key in own if key not in head and key not in rest}, **rest}


def _rest(state: RunState, claim: Claim, inbox: Sequence[int]) -> dict[str, Any]:
    return {
        "reason": state.reason,
        "due_at": _moment(state.due_at),
        "outcome": state.outcome.value if state.outcome else None,
        "inbox": list(inbox),
        "attempt": state.attempt,
        "visits": state.visits,
        "spend": _spend(state.spend),
        "limits": state.limits.to_json(),
        "started_at": timestamp(state.started_at),
        "updated_at": timestamp(state.updated_at),
        "params": state.params,
        "projection": {
            "version": VERSION,
            "created_at": claim.created_at,
            "definition": claim.definition,
        },
    }


def read_claim(data: bytes | None) -> Claim | None:
    """Returns what a `state.json` claims; None when it is missing, damaged or forged."""
    if data is None:
        return None
    try:
        document = json.loads(data)
        about = document["projection"]
        claim = Claim(
            document["run"], about["created_at"], about["definition"], document["journal_head"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    plausible = type(claim.created_at) in (int, float) and type(claim.head) is int
    return claim if plausible and claim.head >= 0 else None


def resolution_document(state: RunState, layout: Layout) -> dict[str, Any] | None:
    """Returns `resolution.json`: how the run ended, or None while it has not."""
    if state.status in RESTING:
        return None
    rounds = f"{state.iteration} iteration{'s' if state.iteration != 1 else ''}"
    calls = f"{state.spend.calls} call{'s' if state.spend.calls != 1 else ''}"
    word = layout.reason(state.status)
    explained = {"explanation": state.reason} if word and state.reason else {}
    return {
        "timestamp": timestamp(state.updated_at),
        "reason": word or state.reason or state.status.value,
        "final_turn": state.iteration,
        "summary": f"{state.status.value} at step {state.step!r} after {rounds} and {calls}",
        "status": state.status.value,
        **explained,
    }


def as_bytes(document: Mapping[str, Any]) -> bytes:
    """Returns a document as it is written: indented, in UTF-8."""
    text = json_text(document, indent=2)
    # Half a pair of surrogates becomes its JSON escape, so the file is valid and complete.
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _spend(spend: Spend) -> dict[str, Any]:
    return {
        "calls": spend.calls,
        "tokens": spend.tokens,
        "usd": spend.usd,
        "seconds": round(spend.seconds, 3),
    }


def _moment(at: float | None) -> str | None:
    return None if at is None else timestamp(at)


def timestamp(at: float) -> str:
    """Returns a moment in ISO 8601, in UTC."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def thread_line(place: str, at: float, entry: Mapping[str, Any]) -> bytes:
    """Returns one line of `thread.jsonl`; `place` is unique in the journal and makes its id."""
    line_id = hashlib.sha256(place.encode()).hexdigest()[:16]
    text = json_text({"id": line_id, "ts": timestamp(at), **entry})
    return f"{text}\n".encode("utf-8", "backslashreplace")


def log_line(at: float, text: str) -> bytes:
    """Returns one line of `live.log`."""
    return f"{timestamp(at)}  {quote(text)}\n".encode("utf-8", "backslashreplace")


def quote(text: Any) -> str:
    """Returns the beginning of an outside text on one line, nothing in it a terminal obeys."""
    words = " ".join(str(text)[: LONGEST_QUOTE * 2].split())
    shown = escape_controls(words)
    return shown if len(shown) <= LONGEST_QUOTE else f"{shown[:LONGEST_QUOTE]}…"
