"""Does the work of a step: calls its function, runs its program, or asks its agent."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from signoff.contracts.checkpoint import lookup
from signoff.contracts.context import StepContext
from signoff.contracts.model import Condition, StepInput, StepOutput, WorkflowStep
from signoff.core.correction import enclosed_answer
from signoff.core.effects import ProductPrompt
from signoff.errors import StepFailed, UsageError
from signoff.runtime.from_thread import FromThread, on_thread
from signoff.runtime.process import KEPT_BYTES

KEY = "work"
"""The key of the call that does a step's work."""

_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_OUTPUT_KEYS = frozenset({"success", "result", "error", "next_step_hint", "statements"})
_OLD_NAMES = {"nextStepHint": "next_step_hint", "postconditionsPassed": ""}


async def work(step: WorkflowStep, ctx: StepContext) -> StepOutput:
    """Returns what a step gives; a worker that says it failed raises `StepFailed`."""
    output = await _done(step, ctx)
    if not output.success:
        raise StepFailed(output.error or f"step {step.name!r} reports a failure and no reason")
    return output


async def _done(step: WorkflowStep, ctx: StepContext) -> StepOutput:
    command = step.command
    if callable(command):
        return as_output(await _call(command, ctx, step.timeout))
    if command is not None:
        return await _run(list(command), step, ctx)
    if step.prompt:
        return await _ask(step, ctx)
    return StepOutput()


async def _call(
    command: Callable[[StepContext], Any], ctx: StepContext, seconds: float | None
) -> Any:
    """Returns the result of a function; raises `StepFailed` if it takes too long."""
    if seconds is None:
        _warn_if_blocking(command, ctx)
        result = command(ctx)
        return await result if inspect.isawaitable(result) else result
    is_async = inspect.iscoroutinefunction(command)
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            result = command(ctx) if is_async else await _on_thread(command, ctx)
            return await result if inspect.isawaitable(result) else result
    except TimeoutError:
        if not deadline.expired():
            raise
        raise StepFailed(f"it took more than {seconds:g} seconds") from None


def _warn_if_blocking(command: Callable[[StepContext], Any], ctx: StepContext) -> None:
    port = ctx.engine.port if ctx.engine is not None else None
    if port is not None and not inspect.iscoroutinefunction(command):
        port.may_block()


async def _on_thread(command: Callable[[StepContext], Any], ctx: StepContext) -> Any:
    engine = ctx.engine
    if engine is not None and engine.port is not None:
        port = FromThread(engine.port, asyncio.get_running_loop())
        ctx = replace(ctx, engine=replace(engine, port=port))
    return await on_thread(partial(command, ctx))


async def _run(argv: list[str], step: WorkflowStep, ctx: StepContext) -> StepOutput:
    retry = {"error": ctx.feedback, "attempt": ctx.attempt} if ctx.feedback else None
    given = StepInput(ctx.run_id, step.name, ctx.checkpoint.to_json(), ctx.params, ctx.item, retry)
    stdin = json.dumps(given.to_json(), ensure_ascii=False)
    done = await ctx.run(argv, key="command", stdin=stdin, timeout=step.timeout)
    if not done.ok:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise StepFailed(f"{argv[0]} failed with exit code {done.code}: {said or 'no output'}")
    if len(done.stdout.encode()) > KEPT_BYTES:
        # What was cut off may have been what a condition would have found.
        raise StepFailed(f"{argv[0]} printed more than {KEPT_BYTES:_} bytes; print a summary")
    return _printed(done.stdout)


def _printed(text: str) -> StepOutput:
    stripped = text.strip()
    if not stripped:
        return StepOutput()
    try:
        return as_output(json.loads(stripped))
    except (ValueError, RecursionError):
        return StepOutput(result=stripped)


async def _ask(step: WorkflowStep, ctx: StepContext) -> StepOutput:
    reply = await ctx.ask(
        step.agent,
        prompt_of(step, ctx),
        key=KEY,
        model=step.model,
        schema=step.schema,
        # Only here is the reply the step's whole work, and not a function's to make use of.
        takes=["statements", "hint"] if ctx.database is not None else ["hint"],
        timeout=step.timeout,
    )
    return as_output(reply.value) if reply.value is not None else _printed(reply.text)


def prompt_of(step: WorkflowStep, ctx: StepContext) -> ProductPrompt:
    """Returns what a worker is told: the task, what will be checked, and what went wrong before."""
    parts = [_filled(step.prompt, ctx)]
    if ctx.item is not None:
        parts.append(f"Item:\n{json.dumps(ctx.item, ensure_ascii=False, indent=1)}")
    if step.postconditions:
        parts.append("Afterwards this must be true; it is checked:\n" + told(step.postconditions))
    wish = _wish(ctx)
    if wish:
        parts.append(f"A person says: {wish}")
    if ctx.feedback and ctx.feedback != wish:
        said = "Previous attempt failed" if ctx.attempt > 1 else "A person says"
        if previous := ctx.engine.previous_answers.get(KEY) if ctx.engine else None:
            parts.append(enclosed_answer(previous))
        parts.append(f"{said}: {ctx.feedback}")
    checks = [
        [each.name, each.error, each.check if isinstance(each.check, str) else ""]
        for each in step.postconditions
    ]
    material = [parts[0], ctx.item, checks, wish, ctx.feedback]
    return ProductPrompt("\n\n".join(parts), material)


def _wish(ctx: StepContext) -> str:
    """Returns what a person wrote at the gate right before; every attempt has to know it."""
    gate, done = ctx.checkpoint.gate_decision, ctx.checkpoint.completed_steps
    if not gate or not done or done[-1].step != str(gate.get("step")).rpartition("+")[2]:
        return ""
    return str(gate.get("input") or "")


def told(conditions: Sequence[Condition]) -> str:
    """Returns conditions as a list in words."""
    return "\n".join(f"- {each.told}" for each in conditions)


def _filled(prompt: str, ctx: StepContext) -> str:
    values = {**ctx.checkpoint.to_json(), **ctx.params, "item": ctx.item}

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        found = lookup(values, name)
        if found is None:
            # Another attempt would not know it either, and neither would a person.
            what = (
                f"the prompt of step {ctx.step!r} names {match.group()}, and nothing is called so"
            )
            # A parameter has no parts; what has, a step must give.
            start = "" if "." in name else f"; start it with -i {name}=..."
            raise UsageError(f"{what}{start}")
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return _VARIABLE.sub(value, prompt)


def as_output(given: Any) -> StepOutput:
    """Reads what a function, a program or an agent gave back."""
    if isinstance(given, StepOutput):
        return given
    if isinstance(given, Mapping):
        renamed = {_OLD_NAMES.get(str(key), str(key)): value for key, value in given.items()}
        renamed.pop("", None)
        if "success" in renamed and set(renamed) <= _OUTPUT_KEYS:
            return StepOutput(**{**renamed, "success": renamed["success"] is True})
        statements = renamed.pop("statements", None)
        if isinstance(statements, list):
            return StepOutput(result=renamed, statements=statements)
    return StepOutput(result=given)
