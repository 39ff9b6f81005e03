"""Effects in doubt: started by a runner that died or was stopped, their end unknown.

First the old process group is ended, then a late reply is looked for, and only then
does the effect's own rule decide: run it again, count it as failed, or ask a person.
"""

from __future__ import annotations

import json
from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind, OnCrash
from signoff.core.requests import Choice
from signoff.core.run_state import EffectRecord
from signoff.core.spend import Usage
from signoff.errors import AgentError
from signoff.runtime.effect_errors import error_from_json
from signoff.runtime.effect_runner import EffectCall, EffectRunner
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import reply_of
from signoff.runtime.process import end_process
from signoff.runtime.run_inbox import RunInbox
from signoff.runtime.store_port import Store

RERUN, DONE, FAILED = "rerun", "done", "failed"

_CUT_OFF = "was cut off, by a stop or a crash"


class InDoubtRecovery:
    """Settles effects in doubt."""

    def __init__(
        self, store: Store, journal: RunJournal, effect_runner: EffectRunner, people: RunInbox
    ) -> None:
        self._store = store
        self._journal = journal
        self._effect_runner = effect_runner
        self._people = people

    async def settle(self, call: EffectCall, record: EffectRecord) -> Any:
        """Returns the effect's reply, running it again if that is its rule."""
        if record.ended:
            return await self._again(call, record)  # Its failure is recorded: nothing is in doubt.
        if record.process is not None:
            await end_process(record.process)
        place = (self._effect_runner.key(call), record.attempt)
        late = self._store.late(self._journal.run).get(place)
        if late is not None:
            return self._take(call, json.loads(late))
        if record.on_crash == OnCrash.FAIL.value:
            error = AgentError(f"this {_CUT_OFF}; its end is not known")
            raise self._effect_runner.failed(call, record.attempt, error)
        if record.on_crash == OnCrash.ASK.value:
            return await self._ask(call, record)
        return await self._again(call, record)

    async def _again(self, call: EffectCall, record: EffectRecord) -> Any:
        return await self._effect_runner.perform(call._replace(attempt=record.attempt + 1))

    async def _ask(self, call: EffectCall, record: EffectRecord) -> Any:
        what = call.effect.payload.get("argv") or call.effect.payload.get("agent")
        question = Choice(
            f"{call.effect.kind.value} {what!r} {_CUT_OFF}, and whether it did its work is "
            "not known. Run it again, take it as done, or as failed?",
            [RERUN, DONE, FAILED],
        )
        answer = self._people.ask(EffectId(f"{call.id}?{record.attempt}"), question)
        if answer.value == RERUN:
            return await self._again(call, record)
        if answer.value == FAILED:
            error = AgentError(answer.text or "a person took it as failed")
            raise self._effect_runner.failed(call, record.attempt, error)
        reply: dict[str, Any] = {"code": 0, "stdout": answer.text, "stderr": ""}
        if call.effect.kind is EffectKind.ASK:
            reply = {"text": answer.text}
            self._effect_runner.learn(call.effect, None)
        self._journal.record(ev.EffectFinished(call.id, reply))
        return reply_of(call.effect.kind, reply)

    def _take(self, call: EffectCall, kept: dict[str, Any]) -> Any:
        self._journal.record(ev.EffectFinished(call.id, **kept))
        usage = Usage(**kept["usage"]) if kept["usage"] is not None else None
        self._effect_runner.learn(call.effect, usage)
        if kept["error"] is not None:
            raise error_from_json(kept["error"])
        return reply_of(call.effect.kind, kept["reply"])
