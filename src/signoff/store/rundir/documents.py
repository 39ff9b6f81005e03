"""The JSON documents of a run directory, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    made = merged(state.state, state.pending.delta) if state.pending else state.state
    rest = _rest(state, claim, inbox)
    own = layout.fields(made)
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
