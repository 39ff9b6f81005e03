"""What people say during a flow, kept where every later prompt finds it."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.requests import Answer


def told(ctx: StepContext, question_id: str, question: str, answer: Answer) -> dict[str, Any]:
    """Returns the update that keeps a person's answer for the prompts that follow."""
    said = str(answer.value)
    words = f"{said}: {answer.text}" if answer.text and answer.text != said else said
    entry = {
        "question_id": question_id,
        "question": question,
        "answer": words,
        "by": answer.by,
        "iteration": ctx.iteration,
        "step": ctx.step_id,
    }
    return {"human": Append([entry])}
