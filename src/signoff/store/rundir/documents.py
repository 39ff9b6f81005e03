"""The JSON documents of a run directory, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from signoff.core.delta import merged
from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.spend import Spend
from signoff.store.rundir.layout import Layout
from signoff.store.rundir.lines import timestamp

VERSION = 1
"""Of everything in here; a directory of another version is rebuilt from the journal."""

RESTING = frozenset({Status.RUNNING, Status.WAITING, Status.PARKED, Status.INTERRUPTED})
"""A run that stands so has not ended."""


class Seen(NamedTuple):
    """What a run directory says it shows."""

    version: int
    run: str
    created_at: float
    """Tells the run from an earlier one of the same name."""
    definition: str
    head: int
    thread_bytes: int
    log_bytes: int
    inbox: tuple[int, ...]
    """The open requests it shows; they change without the journal."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How long both logs were."""
        return self.thread_bytes, self.log_bytes


def state_document(state: RunState, seen: Seen, layout: Layout) -> dict[str, Any]:
    """Returns `state.json`: the head every notation shares, its own fields, then the rest."""
    head = {
        "run": seen.run,
        "workflow": state.workflow,
        "status": state.status.value,
        "step": state.step,
        "iteration": state.iteration,
        "awaiting_human": bool(seen.inbox),
        "journal_head": seen.head,
    }
    made = merged(state.state, state.pending.delta) if state.pending else state.state
    rest = _rest(state, seen)
    own = layout.fields(made)
    return {**head, **{key: own[key] for key in own if key not in head and key not in rest}, **rest}


def _rest(state: RunState, seen: Seen) -> dict[str, Any]:
    return {
        "reason": state.reason,
        "due_at": _moment(state.due_at),
        "outcome": state.outcome.value if state.outcome else None,
        "inbox": list(seen.inbox),
        "attempt": state.attempt,
        "visits": state.visits,
        "spend": _spend(state.spend),
        "limits": state.limits.to_json(),
        "started_at": timestamp(state.started_at),
        "updated_at": timestamp(state.updated_at),
        "params": state.params,
        "projection": {
            "version": seen.version,
            "created_at": seen.created_at,
            "definition": seen.definition,
            "thread_bytes": seen.thread_bytes,
            "log_bytes": seen.log_bytes,
        },
    }


def read_seen(data: bytes | None) -> Seen | None:
    """Returns what a `state.json` claims; None when it is missing, damaged or forged."""
    if data is None:
        return None
    try:
        document = json.loads(data)
        about = document["projection"]
        seen = Seen(
            version=about["version"],
            run=document["run"],
            created_at=about["created_at"],
            definition=about["definition"],
            head=document["journal_head"],
            thread_bytes=about["thread_bytes"],
            log_bytes=about["log_bytes"],
            inbox=tuple(document["inbox"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    counts = (seen.version, seen.head, *seen.sizes)
    plausible = type(seen.created_at) in (int, float) and all(type(n) is int for n in counts)
    return seen if plausible and min(counts) >= 0 else None


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
    text = json.dumps(document, ensure_ascii=False, indent=2)
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
