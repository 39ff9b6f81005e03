"""Recovers effects in doubt: the journal has their start, and no end.

The process that started such an effect died, or lost the run. Nothing in the journal tells
whether the effect happened. A model may have answered and charged for it; a command may have
changed files, completely or halfway. What is left of the old process and its children is gone
by now: `Engine.resume` ends it before anything else, so that it cannot act while or after the
effect is repeated. Recovery then takes two steps:

1. Look for a late reply: a runner that got its reply but could not record it, because it had lost
   its run or the store, has stored it since.
2. Follow the effect's `on_crash` rule: run it again (the default for model calls, which change
   nothing), count it as failed, or ask a human (the default for commands and file edits).

A repeated effect has the next attempt number and the same idempotency key. The attempt before
it is charged at unknown cost, never at zero.
"""

from __future__ import annotations

from typing import Any

from signoff.core.effects import EffectId, EffectKind, OnCrash
from signoff.core.one_line import cut
from signoff.core.requests import Answer, Choice
from signoff.core.run_state import EffectRecord
from signoff.core.spend import Usage
from signoff.errors import AgentError
from signoff.runtime.effect_errors import error_from_json, with_usage
from signoff.runtime.effect_runner import EffectCall, EffectRunner
from signoff.runtime.run_inbox import RunInbox

RERUN, DONE, FAILED = "rerun", "done", "failed"

_INTERRUPTED = "was interrupted by a stop or a crash"


async def settle(
    runner: EffectRunner, inbox: RunInbox, call: EffectCall, record: EffectRecord
) -> Any:
    """Returns the reply of an effect in doubt, running it again if that is its rule."""
    again = call._replace(attempt=record.attempt + 1)
    if record.ended:
        # The last attempt failed and is charged; only the retry is missing.
        return await runner.perform(again)
    call = call._replace(attempt=record.attempt)
    late = runner.late_reply(call)
    if late is not None:
        return _use_late(runner, call, late)
    if record.on_crash == OnCrash.FAIL.value:
        error = AgentError(f"this {_INTERRUPTED}, and its result is unknown")
        raise runner.record_failure(call, error)
    if record.on_crash == OnCrash.ASK.value:
        answer = _ask(inbox, call)
        if answer.value != RERUN:
            return _use_answer(runner, call, answer)
    return await runner.perform(again)


def _use_late(runner: EffectRunner, call: EffectCall, late: dict[str, Any]) -> Any:
    """Records a reply or an error that the previous runner could not record."""
    usage = Usage(**late["usage"]) if late["usage"] is not None else None
    if late["error"] is not None:
        raise runner.record_failure(call, with_usage(error_from_json(late["error"]), usage))
    return runner.record_reply(call, late["reply"], usage)


def _ask(inbox: RunInbox, call: EffectCall) -> Answer:
    what = call.effect.payload.get("argv") or call.agent
    prompt = str(call.effect.payload.get("prompt") or "")
    question = Choice(
        f"{call.effect.kind.value} {what!r} {_INTERRUPTED}, and it is unknown whether it "
        "completed. Run it again, or count it as done or failed?",
        [RERUN, DONE, FAILED],
        shown={"prompt": cut(prompt)} if prompt else {},
    )
    return inbox.ask(EffectId(f"{call.id}?{call.attempt}"), question)


def _use_answer(runner: EffectRunner, call: EffectCall, answer: Answer) -> Any:
    if answer.value == FAILED:
        error = AgentError(answer.text or "a human marked it as failed")
        raise runner.record_failure(call, error)
    reply: dict[str, Any] = {"code": 0, "stdout": answer.text, "stderr": ""}
    if call.effect.kind is EffectKind.ASK:
        reply = {"text": answer.text}
    return runner.record_reply(call, reply, None)
