"""Recovers effects in doubt: the journal has their start, and no end.

The process that started such an effect died, or lost the run. Nothing in the journal tells
whether the effect happened. A model may have answered and charged for it; a command may have
changed files, completely or halfway. What is left of the old process and its children is gone
by now: `Engine.resume` ends it before anything else, so that it cannot act while or after the
effect is repeated. Recovery then takes two steps:

1. Look for a late reply: a runner that lost its run but still got its reply has stored it.
2. Follow the effect's `on_crash` rule: run it again (the default for model calls, which change
   nothing), count it as failed, or ask a human (the default for commands and file edits).

A repeated effect has the next attempt number and the same idempotency key. The attempt before
it is charged at unknown cost, never at zero.
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
from signoff.runtime.run_inbox import RunInbox
from signoff.runtime.store_port import Store

RERUN, DONE, FAILED = "rerun", "done", "failed"

_INTERRUPTED = "was interrupted by a stop or a crash"


class InDoubtRecovery:
    """Finds out how effects in doubt ended, or decides how they count."""

    def __init__(
        self, store: Store, journal: RunJournal, effect_runner: EffectRunner, inbox: RunInbox
    ) -> None:
        self._store = store
        self._journal = journal
        self._effect_runner = effect_runner
        self._inbox = inbox

    async def settle(self, call: EffectCall, record: EffectRecord) -> Any:
        """Returns the effect's reply, running it again if that is its rule."""
        if record.ended:
            # The last attempt failed and is charged; only the retry is missing.
            return await self._rerun(call, record)
        attempt_key = (self._effect_runner.idempotency_key(call), record.attempt)
        late = self._store.late(self._journal.run).get(attempt_key)
        if late is not None:
            return self._use_late(call, json.loads(late))
        if record.on_crash == OnCrash.FAIL.value:
            error = AgentError(f"this {_INTERRUPTED}, and its result is unknown")
            raise self._effect_runner.record_failure(call, record.attempt, error)
        if record.on_crash == OnCrash.ASK.value:
            return await self._ask(call, record)
        return await self._rerun(call, record)

    async def _rerun(self, call: EffectCall, record: EffectRecord) -> Any:
        return await self._effect_runner.perform(call._replace(attempt=record.attempt + 1))

    async def _ask(self, call: EffectCall, record: EffectRecord) -> Any:
        what = call.effect.payload.get("argv") or call.effect.payload.get("agent")
        question = Choice(
            f"{call.effect.kind.value} {what!r} {_INTERRUPTED}, and it is unknown whether it "
            "completed. Run it again, or count it as done or failed?",
            [RERUN, DONE, FAILED],
        )
        answer = self._inbox.ask(EffectId(f"{call.id}?{record.attempt}"), question)
        if answer.value == RERUN:
            return await self._rerun(call, record)
        if answer.value == FAILED:
            error = AgentError(answer.text or "a human marked it as failed")
            raise self._effect_runner.record_failure(call, record.attempt, error)
        reply: dict[str, Any] = {"code": 0, "stdout": answer.text, "stderr": ""}
        if call.effect.kind is EffectKind.ASK:
            reply = {"text": answer.text}
            self._effect_runner.note_cost(call.effect, None)
        self._journal.record(ev.EffectFinished(call.id, reply))
        return reply_of(call.effect.kind, reply)

    def _use_late(self, call: EffectCall, late: dict[str, Any]) -> Any:
        """Records a reply or an error that the previous runner could not record."""
        self._journal.record(ev.EffectFinished(call.id, **late))
        usage = Usage(**late["usage"]) if late["usage"] is not None else None
        self._effect_runner.note_cost(call.effect, usage)
        if late["error"] is not None:
            raise error_from_json(late["error"])
        return reply_of(call.effect.kind, late["reply"])
