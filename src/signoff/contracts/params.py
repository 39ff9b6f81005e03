"""Which parameters a contract takes: the declared ones, or those its texts name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signoff.contracts.model import ConditionalNext, WorkflowDefinition, WorkflowStep

_IN_PROMPT = re.compile(r"\{\{\s*(\w+)[\w.]*\s*\}\}")
_IN_EXPRESSION = re.compile(r"(?<![\w.])params\s*\.\s*([A-Za-z_]\w*)")
_WHOLE = re.compile(r"(?<![\w.])params(?!\w)(?!\s*\.\s*[A-Za-z_])")


def params_of(definition: WorkflowDefinition) -> frozenset[str] | None:
    """Returns the names of the parameters there are; None when they cannot be known.

    A function or a program gets all parameters and may read any of them, so a definition
    that has one takes every name unless it declares its parameters.
    """
    if definition.params is not None:
        return frozenset(definition.params)
    texts = [text for step in definition.steps for text in _texts(step)]
    expressions = [text for text in texts if isinstance(text, str)]
    called = any(step.command is not None for step in definition.steps)
    if called or len(expressions) < len(texts) or any(map(_WHOLE.search, expressions)):
        return None
    named = {name for text in expressions for name in _IN_EXPRESSION.findall(text)}
    prompts = [step.prompt or "" for step in definition.steps]
    named |= {name for text in prompts for name in _IN_PROMPT.findall(text)}
    named |= {step.parallel_key.partition(".")[0] for step in definition.steps if step.parallel_key}
    return frozenset(named - {"item"})


def _texts(step: WorkflowStep) -> Iterator[object]:
    for condition in (*step.preconditions, *step.postconditions):
        yield condition.check
    if isinstance(step.next, ConditionalNext):
        yield step.next.condition
