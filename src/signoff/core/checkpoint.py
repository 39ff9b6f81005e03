"""The state of a run as JSON, stored now and then so that a resume need not fold every event."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from signoff.core.effects import EffectKind
from signoff.core.frozen import CHECKPOINT_DEPTH, freeze
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import EffectRecord, Pending, RunState, Stage
from signoff.core.spend import LedgerEntry, Limits, Spend
from signoff.core.stop_reason import reason_from_json
from signoff.errors import StoreDamaged


def state_to_json(state: RunState) -> dict[str, Any]:
    """Returns a state as the checkpoint stores it."""
    data = {f.name: getattr(state, f.name) for f in fields(state)}
    data["limits"] = state.limits.to_json()
    data["spend"] = state.spend.to_json()
    data["visit_spend"] = state.visit_spend.to_json()
    data["ledger"] = [list(entry) for entry in state.ledger.values()]
    data["effects"] = {
        scope: {key: _slots(record) for key, record in records.items()}
        for scope, records in state.effects.items()
    }
    data["pending"] = _slots(state.pending) if state.pending else None
    data["stop_reason"] = state.stop_reason.to_json() if state.stop_reason else None
    return data


def state_from_json(data: dict[str, Any]) -> RunState:
    """Reads a checkpoint back."""
    try:
        return _state(dict(data))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreDamaged(f"a stored checkpoint is not readable: {error!r}") from error


def _state(values: dict[str, Any]) -> RunState:
    # `freeze` is deeper than usual here: the checkpoint wraps values that were stored as events.
    values["params"] = freeze(values["params"], CHECKPOINT_DEPTH)
    values["limits"] = Limits.from_json(values["limits"])
    values["spend"] = Spend(**values["spend"])
    values["visit_spend"] = Spend(**values["visit_spend"])
    entries = [LedgerEntry(*entry) for entry in values["ledger"]]
    values["ledger"] = {entry[:3]: entry for entry in entries}
    values["status"] = Status(values["status"])
    values["stage"] = Stage(values["stage"])
    values["state"] = freeze(values["state"], CHECKPOINT_DEPTH)
    if values["outcome"] is not None:
        values["outcome"] = Outcome(values["outcome"])
    values["effects"] = {
        scope: {k: EffectRecord(**{**r, "kind": EffectKind(r["kind"])}) for k, r in records.items()}
        for scope, records in values["effects"].items()
    }
    if values["pending"] is not None:
        pending = dict(values["pending"])
        outcome = pending.pop("outcome")
        values["pending"] = Pending(Outcome(outcome) if outcome else None, **pending)
    values["stop_reason"] = reason_from_json(values["stop_reason"])
    return RunState(**values)


def _slots(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}
