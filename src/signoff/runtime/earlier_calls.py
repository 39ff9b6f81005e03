"""Reads the agent calls in a run's journal, for agents whose answers depend on earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.effects import AgentRequest, EffectId, EffectKind
from signoff.runtime.ports import Call, EarlierCall
from signoff.runtime.store_port import RunId, Store


class _Started(NamedTuple):
    payload: dict[str, Any]
    call: Call


def earlier_calls(
    store: Store, run: RunId, name: str, to: Callable[[str], bool]
) -> Iterator[EarlierCall]:
    """Yields the attempts that have ended, in this process or an earlier one, in order.

    `to` selects calls by the agent's name. An attempt that a crash interrupted has no end, so
    it is not included: it is made again.
    """
    step = ""
    started: dict[EffectId, _Started] = {}
    for row in store.journal(run):
        for event in map(ev.from_json, decode(row.events, store.blob)):
            match event:
                case ev.RunStarted():
                    step = event.entry
                case ev.StepFinished():
                    step = event.to or ""
                    started.clear()
                case ev.EffectStarted(kind=EffectKind.ASK):
                    # Only the first attempt holds the payload.
                    payload = event.payload or started[event.id].payload
                    call = Call(name, event.id, event.attempt, step=step, agent=payload["agent"])
                    started[event.id] = _Started(payload, call)
                case ev.EffectAttemptFailed() | ev.EffectFinished() if event.id in started:
                    payload, call = started[event.id]
                    if to(call.agent):
                        yield _ended(payload, call, event)


def _ended(payload: dict[str, Any], call: Call, event: ev.Event) -> EarlierCall:
    request = AgentRequest(**{key: value for key, value in payload.items() if key != "agent"})
    reply = event.reply if isinstance(event, ev.EffectFinished) else None
    return EarlierCall(request, call, (reply or {}).get("agent") or "")
