"""Lets a human answer instead of an agent: the prompt goes into the inbox.

The answer counts as the agent's reply. It is recorded as the reply of the agent's effect, so the
handler, a replay and the agent's other callers see no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.effects import EffectId, Reply
from signoff.core.requests import Request, Response
from signoff.core.run_state import EffectRecord
from signoff.errors import AgentBadOutput
from signoff.runtime.dispatch import PROJECT
from signoff.runtime.effect_errors import FREE, with_usage
from signoff.runtime.effect_runner import EffectCall, EffectRunner
from signoff.runtime.run_inbox import BY_HUMAN, RunInbox


def ask_human(
    runner: EffectRunner, inbox: RunInbox, call: EffectCall, record: EffectRecord | None
) -> Any:
    """Returns a human's answer as the agent's reply; raises `WaitingForAnswer` without one."""
    answer = inbox.ask(EffectId(f"{call.id}{BY_HUMAN}"), _request(call.effect.payload))
    call = call._replace(attempt=1 if record is None else record.attempt + 1)
    runner.record_start(call)
    if answer.failed:
        # Bad output, not an agent error: an attempt that knows the reason may do better.
        raise runner.record_failure(call, with_usage(AgentBadOutput(answer.value), FREE))
    reply = Reply(answer.value, answer.parsed, FREE, agent=call.agent, by=answer.by or None)
    return runner.record_reply(call, reply.to_json(), FREE)


def _request(payload: Mapping[str, Any]) -> Request:
    parts = [payload.get("system"), payload["prompt"]]
    # A human has no working copy, so the files are part of the prompt.
    files, edit = payload.get("files") or {}, payload.get("edit")
    parts += [f"----- {name} -----\n{text}" for name, text in files.items()]
    if files and edit:
        parts.append("Answer with the whole new text, and nothing else.")
    elif edit and payload.get("workspace") != PROJECT:
        parts.append(f"Work in this directory: {payload.get('workspace')}")
    prompt = "\n\n".join(filter(None, parts))
    return Response(prompt, payload.get("schema"), about=payload.get("about", {}))
