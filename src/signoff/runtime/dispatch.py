"""Hands a step to a sub-agent: builds its prompt and parses its verdict strictly."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from signoff.core.context import StepContext
from signoff.core.correction import enclosed_answer
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.step import Dispatch, StepDef
from signoff.errors import AgentBadOutput

KEY = "dispatch"

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["pass", "fail"]},
        "notes": {"type": "string"},
    },
    "required": ["status", "notes"],
    "additionalProperties": False,
}


def dispatch(
    step: StepDef, how: Dispatch
) -> Callable[[StepContext], Awaitable[tuple[Outcome, dict[str, Any]]]]:
    """Returns a handler that asks the sub-agent and maps its verdict to an outcome."""

    async def handler(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        role = str(how.agent)
        schema = None if how.free_form else VERDICT_SCHEMA
        reply = await ctx.ask(role, _prompt(step, how, ctx), key=KEY, schema=schema)
        if how.free_form:
            return Outcome.OK, {step.id: reply.text}
        verdict = _verdict(step.id, reply.value, reply.text)
        outcome = Outcome.OK if verdict["status"] == "pass" else Outcome.FAIL
        return outcome, {step.id: verdict}

    return handler


def _prompt(step: StepDef, how: Dispatch, ctx: StepContext) -> ProductPrompt:
    parts = [f"# {step.title or step.id}", *map(str, step.actions)]
    if how.script:
        parts.append(f"Run this and follow what it prints: python3 -m {how.script}")
    if how.context_vars:
        parts.append("Context:\n" + json.dumps(dict(how.context_vars), indent=2))
    if ctx.feedback:
        if previous := ctx.previous_answers.get(KEY):
            parts.append(enclosed_answer(previous))
        parts.append(f"Previous attempt failed: {ctx.feedback}")
    if not how.free_form:
        parts.append('Answer with one JSON object: {"status": "pass" or "fail", "notes": "..."}')
    material = [step.title, [*map(str, step.actions)], how.script, dict(how.context_vars)]
    return ProductPrompt("\n\n".join(parts), [*material, ctx.feedback])


def _verdict(step: str, value: Any, text: str) -> dict[str, Any]:
    """Parses a verdict; anything else is bad output and never a pass."""
    if value is None:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise AgentBadOutput(f"the answer to {step!r} is not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("status") not in ("pass", "fail"):
        raise AgentBadOutput(f'the answer to {step!r} has no status "pass" or "fail"')
    return {"status": value["status"], "notes": str(value.get("notes", ""))}
