"""Hands a step to a sub-agent, and takes its verdict as the step's outcome.

The reply is parsed strictly: what is not clearly a verdict is bad output, so the step is retried
with feedback, and a human decides if that does not help. It is never a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from signoff.core.context import StepContext
from signoff.core.correction import enclosed_answer
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.step import HandlerFunction, HandlerObject, Result, StepDef
from signoff.errors import AgentBadOutput
from signoff.light_dataclass import frozen_dataclass

KEY = "dispatch"

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"enum": ["pass", "fail"]}, "notes": {"type": "string"}},
    "required": ["status", "notes"],
    "additionalProperties": False,
}


class AgentRole(StrEnum):
    """The role of the sub-agent for a dispatched step."""

    QUALITY_REVIEWER = "quality-reviewer"
    DEVELOPER = "developer"
    TECHNICAL_WRITER = "technical-writer"
    EXPLORE = "explore"
    GENERAL_PURPOSE = "general-purpose"
    ARCHITECT = "architect"


@frozen_dataclass()
class Dispatch(HandlerObject):
    """A handler that hands the step to a sub-agent instead of running Python."""

    agent: AgentRole | str
    """A role, mapped to an agent by the settings, or an agent's name."""
    script: str = ""
    """The module that the prompt tells the sub-agent to run."""
    context_vars: Mapping[str, Any] = field(default_factory=dict)
    """Values for the sub-agent's prompt, by name."""
    free_form: bool = False
    """Whether the sub-agent's answer is taken as text instead of a verdict."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What a verdict can lead to; a text is no verdict, so it only completes the step."""
        return (Outcome.OK,) if self.free_form else (Outcome.OK, Outcome.FAIL)

    def function(self, step: StepDef) -> HandlerFunction:
        """Returns a function that asks the sub-agent and maps its verdict to an outcome."""

        async def handler(ctx: StepContext) -> Result:
            schema = None if self.free_form else VERDICT_SCHEMA
            prompt = _prompt(step, self, ctx)
            reply = await ctx.ask(str(self.agent), prompt, key=KEY, schema=schema)
            if self.free_form:
                return Outcome.OK, {step.id: reply.text}
            verdict = _verdict(step.id, reply.value, reply.text)
            outcome = Outcome.OK if verdict["status"] == "pass" else Outcome.FAIL
            return outcome, {step.id: verdict}

        return handler

    def describe(self) -> Any:
        """Returns what the sub-agent is asked."""
        return [str(self.agent), self.script, dict(self.context_vars), self.free_form]


def _prompt(step: StepDef, how: Dispatch, ctx: StepContext) -> ProductPrompt:
    parts = [step.instructions]
    if how.script:
        parts.append(f"Run this and follow what it prints: python3 -m {how.script}")
    if how.context_vars:
        parts.append("Context:\n" + json.dumps(dict(how.context_vars), indent=2))
    parts += feedback_parts(ctx, KEY)
    if not how.free_form:
        parts.append('Answer with one JSON object: {"status": "pass" or "fail", "notes": "..."}')
    material = [step.title, [*map(str, step.actions)], how.script, dict(how.context_vars)]
    return ProductPrompt("\n\n".join(parts), [*material, ctx.feedback])


def feedback_parts(ctx: StepContext, key: str) -> list[str]:
    """Returns what a retry adds to a prompt: the previous answer, and why it was not accepted."""
    if not ctx.feedback:
        return []
    previous = ctx.previous_answers.get(key)
    shown = [enclosed_answer(previous)] if previous else []
    return [*shown, f"Previous attempt failed: {ctx.feedback}"]


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
