"""Effects in doubt: started by a runner that died or was stopped, their end unknown.

First the old process group is ended, then a late reply is looked for, and only then
does the effect's own rule decide: run it again, count it as failed, or ask a person.
"""

from __future__ import annotations

import json
from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectId, Kind, OnCrash
from signoff.core.requests import Choice
from signoff.core.run_state import EffectRecord
from signoff.core.spend import Usage
from signoff.errors import AgentError
from signoff.runtime.faults import fault_from_json
from signoff.runtime.journal import RunJournal
from signoff.runtime.outside import Errand, Outside
from signoff.runtime.people import People
from signoff.runtime.performers import reply_of
from signoff.runtime.process import end_process
from signoff.runtime.store_port import Store

RERUN, DONE, FAILED = "rerun", "done", "failed"

_CUT_OFF = "was cut off, by a stop or a crash"


class Doubt:
    """Settles effects in doubt."""

    def __init__(self, store: Store, journal: RunJournal, outside: Outside, people: People) -> None:
        self._store = store
        self._journal = journal
        self._outside = outside
        self._people = people

    async def settle(self, errand: Errand, record: EffectRecord) -> Any:
        """Returns the effect's reply, running it again if that is its rule."""
        if record.process is not None:
            await end_process(record.process)
        place = (self._outside.key(errand), record.attempt)
        late = self._store.late(self._journal.run).get(place)
        if late is not None:
            return self._take(errand, json.loads(late))
        if record.on_crash == OnCrash.FAIL.value:
            error = AgentError(f"this {_CUT_OFF}; its end is not known")
            raise self._outside.failed(errand, record.attempt, error)
        if record.on_crash == OnCrash.ASK.value:
            return await self._ask(errand, record)
        return await self._again(errand, record)

    async def _again(self, errand: Errand, record: EffectRecord) -> Any:
        return await self._outside.perform(errand._replace(attempt=record.attempt + 1))

    async def _ask(self, errand: Errand, record: EffectRecord) -> Any:
        what = errand.effect.payload.get("argv") or errand.effect.payload.get("agent")
        question = Choice(
            f"{errand.effect.kind.value} {what!r} {_CUT_OFF}, and whether it did its work is "
            "not known. Run it again, take it as done, or as failed?",
            [RERUN, DONE, FAILED],
        )
        answer = self._people.ask(EffectId(f"{errand.id}?{record.attempt}"), question)
        if answer.value == RERUN:
            return await self._again(errand, record)
        if answer.value == FAILED:
            error = AgentError(answer.text or "a person took it as failed")
            raise self._outside.failed(errand, record.attempt, error)
        reply: dict[str, Any] = {"code": 0, "stdout": answer.text, "stderr": ""}
        if errand.effect.kind is Kind.ASK:
            reply = {"text": answer.text}
            self._outside.learn(errand.effect, None)
        self._journal.record(ev.EffectFinished(errand.id, reply))
        return reply_of(errand.effect.kind, reply)

    def _take(self, errand: Errand, kept: dict[str, Any]) -> Any:
        self._journal.record(ev.EffectFinished(errand.id, **kept))
        usage = Usage(**kept["usage"]) if kept["usage"] is not None else None
        self._outside.learn(errand.effect, usage)
        if kept["error"] is not None:
            raise fault_from_json(kept["error"])
        return reply_of(errand.effect.kind, kept["reply"])
