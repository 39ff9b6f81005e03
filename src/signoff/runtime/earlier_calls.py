"""Reads the agent calls that a run's journal holds, for agents that answer by what came before."""

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
    """Yields the attempts that ended, in this process or in an earlier one, in their order.

    `to` tells whether a call to an agent counts, by the agent's name. An attempt that a crash
    cut short has no end, so it is not among them: it is made again.
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
