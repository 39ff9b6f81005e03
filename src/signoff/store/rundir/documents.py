"""The JSON documents of a run directory, and its two logs line by line.

`thread.jsonl` is for programs: one object per finished step and per finished effect.
`live.log` is for humans. A line depends on the journal alone, never on the clock or the
machine, so two processes that write the same log write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from signoff.core.outcome import NOT_ENDED
from signoff.core.run_state import RunState
from signoff.core.spend import Spend
from signoff.documents.control_characters import escape_controls, json_text
from signoff.store.rundir.layout import Layout, ShownRun

VERSION = 1
"""The version of all these formats; it is written into `state.json`."""

LONGEST_QUOTE = 300
"""Characters of an outside text that a log repeats; the journal has all of it."""


class ProjectionState(NamedTuple):
    """Which run a directory shows, and up to which commit of its journal."""

    run: str
    created_at: float
    """Distinguishes the run from an earlier one of the same name."""
    definition: str
    head: int
    """0 while the run is driven: most files are written when it rests."""


def state_document(
    run: ShownRun, projection: ProjectionState, inbox: Sequence[int], layout: Layout, head: int
) -> dict[str, Any]:
    """Returns `state.json`: the common header, the notation's own fields, then the rest.

    A layout that nests the record of the run has its own fields first, and all others under `run`.
    `inbox` has the numbers of the open requests, `head` is that of the last commit it is about.
    """
    state = run.state
    header = {
        "run": projection.run,
        "workflow": state.workflow,
        "status": state.status.value,
        "step": state.step,
        "iteration": state.iteration,
        "awaiting_human": bool(inbox),
        "journal_head": head,
    }
    remaining = _remaining_fields(state, projection, inbox)
    fields = layout.fields(run)
    if layout.nests_run:
        return {**fields, "run": {**header, **remaining}}
    if taken := sorted(fields.keys() & {*header, *remaining}):
        # A mistake of the notation's author, whose tests turn the warning into an error. Users
        # still get the common fields, which programs rely on.
        warnings.warn(
            f"{type(layout).__name__} has fields of its own that every state.json has: "
            f"{', '.join(taken)}; give them other names",
            stacklevel=2,
        )
    return {**header, **fields, **header, **remaining}


def _remaining_fields(
    state: RunState, projection: ProjectionState, inbox: Sequence[int]
) -> dict[str, Any]:
    return {
        "reason": state.reason,
        "due_at": None if state.due_at is None else timestamp(state.due_at),
        "outcome": state.outcome.value if state.outcome else None,
        "inbox": list(inbox),
        "attempt": state.attempt,
        "times": state.visits,
        "spend": _spend(state.spend),
        "limits": state.limits.to_json(),
        "started_at": timestamp(state.started_at),
        "updated_at": timestamp(state.updated_at),
        "params": state.params,
        "projection": {
            "version": VERSION,
            "created_at": projection.created_at,
            "definition": projection.definition,
            "head": projection.head,
        },
    }


def read_projection_state(data: bytes | None) -> ProjectionState | None:
    """Returns what a `state.json` shows; None if it is missing, damaged or implausible."""
    if data is None:
        return None
    try:
        document = json.loads(data)
        if isinstance(document["run"], dict):
            document = document["run"]
        stored = document["projection"]
        projection = ProjectionState(
            document["run"], stored["created_at"], stored["definition"], stored["head"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    plausible = type(projection.created_at) in (int, float) and type(projection.head) is int
    return projection if plausible and projection.head >= 0 else None


def resolution_document(state: RunState, layout: Layout) -> dict[str, Any] | None:
    """Returns `resolution.json`, how the run ended; None while it has not."""
    if state.status in NOT_ENDED:
        return None
    rounds = f"{state.iteration} round{'s' if state.iteration != 1 else ''}"
    calls = f"{state.spend.calls} call{'s' if state.spend.calls != 1 else ''}"
    own = layout.resolution(state)
    explanation = {"explanation": state.reason} if own.get("reason") and state.reason else {}
    return {
        "timestamp": timestamp(state.updated_at),
        "reason": state.reason or state.status.value,
        **own,
        "final_turn": state.iteration,
        "summary": f"{state.status.value} at step {state.step!r} after {rounds} and {calls}",
        "status": state.status.value,
        **explanation,
    }


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Returns a document as indented JSON in UTF-8."""
    text = json_text(document, indent=2)
    # Half of a surrogate pair becomes its JSON escape, so the file is valid and complete.
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _spend(spend: Spend) -> dict[str, Any]:
    return {
        "calls": spend.calls,
        "tokens": spend.tokens,
        "usd": spend.usd,
        "seconds": round(spend.seconds, 3),
    }


def timestamp(at: float) -> str:
    """Returns a time in ISO 8601, in UTC."""
    utc = datetime.fromtimestamp(at, UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def thread_line(key: str, at: float, entry: Mapping[str, Any]) -> bytes:
    """Returns one line of `thread.jsonl`; its id is made from `key`, unique in the journal."""
    line_id = hashlib.sha256(key.encode()).hexdigest()[:16]
    text = json_text({"id": line_id, "ts": timestamp(at), **entry})
    return f"{text}\n".encode("utf-8", "backslashreplace")


def log_line(at: float, text: str) -> bytes:
    """Returns one line of `live.log`."""
    return f"{timestamp(at)}  {quote(text)}\n".encode("utf-8", "backslashreplace")


def quote(text: Any) -> str:
    """Returns the start of an outside text on one line, without terminal control sequences."""
    words = " ".join(str(text)[: LONGEST_QUOTE * 2].split())
    line = escape_controls(words)
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"
