"""The context of a step, its work (a function, a program, an agent), and its conditions.

The context is what a step's command and its conditions get. Whether work was done is checked here,
never taken on trust.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.contracts.checkpoint import (
    AmbiguousName,
    Checkpoint,
    expression_view,
    is_result_name,
    lookup,
    lookup_result,
)
from signoff.contracts.expressions import CTX_NAMES, BadExpression, Expression, parse_expression
from signoff.contracts.model import Check, Condition, StepInput, StepOutput, WorkflowStep
from signoff.core.checked import enclosed_answer
from signoff.core.context import StepContext as EngineContext
from signoff.core.effects import CommandResult, ProductPrompt, Reply
from signoff.core.errors import NotSerialisable, StepFailed, UsageError
from signoff.core.frozen import freeze
from signoff.core.requests import Answer, Request
from signoff.runtime.error_text import unmet
from signoff.runtime.handlers import for_thread, is_async, on_thread, thread_slots
from signoff.runtime.process import KEPT_BYTES

if TYPE_CHECKING:
    from signoff.contracts.database import StepSession, Tables


@dataclass(frozen=True)
class StepContext:
    """What a step knows about the run, and its access to agents, programs and the database."""

    step: str
    checkpoint: Checkpoint
    params: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    """The step's result, for its postconditions and its `next`; before it, the last step's."""
    item: Any = None
    """The current item, if the step fans out."""
    attempt: int = 1
    feedback: str = ""
    """The error of the last attempt, or what a human wrote at a gate."""
    hint: str | None = None
    """The next step that the worker suggests."""
    must_hold: Sequence[str] = ()
    """Descriptions of the postconditions."""
    folder: str | None = None
    """The folder in which programs run; None means the current one."""
    view: Tables | None = field(default=None, repr=False, compare=False)
    database: StepSession | None = field(default=None, repr=False, compare=False)
    engine: EngineContext | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.checkpoint.workflow_run_id

    @property
    def db(self) -> Tables:
        """The workflow's database; commands can stage changes, conditions can only read."""
        found = self.view or self.database
        if found is None:
            raise UsageError("this workflow has no database")
        return found

    def ask(self, agent: str, prompt: str, **options: Any) -> Awaitable[Reply]:
        """Asks an agent; a replay gets the recorded reply."""
        # Workers outside of this process see from this which options of `submit` count for the
        # step.
        takes = options.pop("takes", ())
        return self._engine().ask(agent, prompt, about=self._about(takes), **options)

    def run(self, argv: list[str], **options: Any) -> Awaitable[CommandResult]:
        """Runs a program and returns what it printed."""
        return self._engine().command(argv, **{"cwd": self.folder, **options})

    def wait(self, request: Request, **options: Any) -> Awaitable[Answer]:
        """Asks a human."""
        return self._engine().wait(request, **options)

    def progress(self, message: str) -> None:
        """Shows a message to the user while the step runs."""
        if self.engine is not None:
            self.engine.progress(message)

    def seen_by(self, view: Tables | None) -> StepContext:
        """Returns the context for conditions, which cannot change the database."""
        # Without the step's own database, a condition that stages a change is refused by the view.
        return replace(self, view=view, database=None)

    def with_result(
        self, result: Any, hint: str | None, others: Mapping[str, Any] | None = None
    ) -> StepContext:
        """Returns the context for conditions about a result.

        `others` are the results of steps that were done together with this one.
        """
        results = {**(others or {}), self.step: result}
        checkpoint = replace(self.checkpoint, own_results=results)
        return replace(self, result=result, hint=hint, checkpoint=checkpoint)

    def values(self, expression: Expression) -> dict[str, Any]:
        """Returns the values of the names that an expression uses; a checkpoint may be large."""
        known: dict[str, Callable[[], Any]] = {
            "ctx": lambda: self._fields(expression),
            "result": lambda: self.result,
            "results": lambda: self.checkpoint.results,
            "checkpoint": lambda: expression_view(self.checkpoint, expression.checkpoint_names),
            "params": lambda: self.params,
            "hint": lambda: self.hint,
        }
        return {name: value() for name, value in known.items() if name in expression.names}

    def _fields(self, expression: Expression) -> dict[str, Any]:
        values: dict[str, Any] = {}
        # Both spellings are filled in, because authors use either: `run_id` and `runId`.
        for name in expression.ctx_names:
            if name == "checkpoint":
                values[name] = expression_view(self.checkpoint, expression.checkpoint_names)
            elif name in CTX_NAMES:
                values[name] = values[CTX_NAMES[name]] = getattr(self, name)
        return values

    def _about(self, takes: Sequence[str]) -> dict[str, Any]:
        """Returns the task as JSON values, for workers outside this process."""
        task = {
            "step": self.step,
            "item": self.item,
            "attempt": self.attempt,
            "feedback": self.feedback or None,
            "must_hold": list(self.must_hold),
            "takes": list(takes),
        }
        return {name: value for name, value in task.items() if value is not None}

    def _engine(self) -> EngineContext:
        if self.engine is None:
            raise UsageError("this context has no engine, so it can perform no effects")
        return self.engine


TOO_LONG = "it took more than {:g} seconds"

KEY = "work"
"""The key of the call that does a step's work."""

VARIABLE = re.compile(r"\{\{\s*(results\.[\w.-]+|[\w.]+)\s*\}\}")
"""A name in a prompt; the name of a step in `results.<step>.<key>` may have hyphens."""
_OUTPUT_KEYS = frozenset({"success", "result", "error", "next_step_hint", "statements"})
_OLD_NAMES = {"nextStepHint": "next_step_hint", "postconditionsPassed": ""}


async def work(step: WorkflowStep, ctx: StepContext) -> StepOutput:
    """Returns the output of a step; raises `StepFailed` if its worker reports a failure."""
    output = await _perform(step, ctx)
    if output.success is not True:
        raise StepFailed(output.error or f"step {step.name!r} failed without giving a reason")
    return output


async def _perform(step: WorkflowStep, ctx: StepContext) -> StepOutput:
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
    result = command(ctx) if is_async(command) else await _on_thread(command, ctx, seconds)
    if not inspect.isawaitable(result):
        return result
    async with time_limit(seconds, TOO_LONG.format(seconds or 0)):
        return await result


async def _on_thread(
    command: Callable[[StepContext], Any], ctx: StepContext, seconds: float | None
) -> Any:
    """Calls an ordinary function in a thread, so that other items, runs and signals continue."""
    engine = ctx.engine
    if engine is not None:
        if engine.port is not None:
            await engine.port.before_plain_code()
        engine = for_thread(engine)
    # The time starts when a thread is free: waiting for one is not the function's fault.
    async with thread_slots(), time_limit(seconds, TOO_LONG.format(seconds or 0)):
        return await on_thread(partial(command, replace(ctx, engine=engine)))


async def _run(argv: list[str], step: WorkflowStep, ctx: StepContext) -> StepOutput:
    # What a human wrote at a gate is in the checkpoint, and no attempt has failed because of it.
    retry = {"error": ctx.feedback, "attempt": ctx.attempt} if ctx.attempt > 1 else None
    values = StepInput(ctx.run_id, step.name, ctx.checkpoint.to_json(), ctx.params, ctx.item, retry)
    stdin = json.dumps(values.to_json(), ensure_ascii=False)
    ended = await ctx.run(argv, key="command", stdin=stdin, timeout=step.timeout)
    if not ended.ok:
        reason = (ended.stderr or ended.stdout).strip()[-2000:] or "no output"
        raise StepFailed(f"{argv[0]} failed with exit code {ended.code}: {reason}")
    if len(ended.stdout.encode()) > KEPT_BYTES:
        # The output was cut off, and a condition might hold or fail because of the missing part.
        raise StepFailed(f"{argv[0]} printed more than {KEPT_BYTES:_} bytes; print a summary")
    return _output_of_text(ended.stdout)


def _output_of_text(text: str) -> StepOutput:
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
        # A function that asks an agent handles statements and hints itself; here nothing else does.
        takes=["statements", "hint"] if ctx.database is not None else ["hint"],
        timeout=step.timeout,
    )
    return as_output(reply.value) if reply.value is not None else _output_of_text(reply.text)


def prompt_of(step: WorkflowStep, ctx: StepContext) -> ProductPrompt:
    """Returns the prompt for a worker: the task, the conditions, and the last attempt's error."""
    parts = [_fill_in(step.prompt, ctx)]
    if ctx.item is not None:
        parts.append(f"Item:\n{json.dumps(ctx.item, ensure_ascii=False, indent=1)}")
    if step.postconditions:
        conditions = "\n".join(f"- {each.description}" for each in step.postconditions)
        parts.append(f"When you are done, these conditions are checked:\n{conditions}")
    instruction = _gate_input(ctx)
    if instruction:
        parts.append(f"A human wrote: {instruction}")
    if ctx.feedback and ctx.feedback != instruction:
        source = "Previous attempt failed" if ctx.attempt > 1 else "A human wrote"
        if previous := ctx.engine.previous_answers.get(KEY) if ctx.engine else None:
            parts.append(enclosed_answer(previous))
        parts.append(f"{source}: {ctx.feedback}")
    # A recorded reply is found again by this material, so its order must not change.
    checks = [
        [each.name, each.error, each.check if isinstance(each.check, str) else ""]
        for each in step.postconditions
    ]
    material = [parts[0], ctx.item, checks, instruction, ctx.feedback]
    return ProductPrompt("\n\n".join(parts), material)


def _gate_input(ctx: StepContext) -> str:
    """Returns what a human wrote at the gate right before the step; every attempt gets it."""
    gate, done = ctx.checkpoint.gate_decision, ctx.checkpoint.completed_steps
    if not gate or not done or done[-1].step != gate.gate.rpartition("+")[2]:
        return ""
    return gate.input


def _fill_in(prompt: str, ctx: StepContext) -> str:
    values = {**ctx.checkpoint.to_json(), **ctx.params, "item": ctx.item}
    shared = getattr(ctx.checkpoint.data, "shared", {}).keys() - ctx.params.keys()

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if is_result_name(name):
            done, found = lookup_result(ctx.checkpoint.results, name)
            if not done:
                # In the first round of a loop, the steps further down have no results yet.
                return ""
        elif (first := name.partition(".")[0]) in shared:
            found = ctx.checkpoint.data[first]
        else:
            found = lookup(values, name)
        if found is None:
            # Only a name without dots can be a parameter. A retry would not find it either.
            remedy = "" if "." in name else f"; start the run with -i {name}=..."
            raise UsageError(f"the prompt of step {ctx.step!r}: unknown name {match[0]}{remedy}")
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return VARIABLE.sub(value, prompt)


def as_output(value: Any) -> StepOutput:
    """Returns the output in what a function, a program or an agent returned.

    `success` that is not true is a failure, whatever the other keys are. If it is true and there
    are other keys than those of an envelope, the mapping itself is the result.
    """
    # Programs and agents return JSON, so an envelope can only be told by its keys. The check is
    # strict: `"success": "true"`, as text, is a failure and never a pass.
    if isinstance(value, StepOutput):
        return value
    if not isinstance(value, Mapping):
        return StepOutput(result=value)
    renamed = {_OLD_NAMES.get(str(key), str(key)): entry for key, entry in value.items()}
    renamed.pop("", None)
    if "success" in renamed:
        if renamed["success"] is not True:
            return StepOutput(success=False, error=_reason(renamed.get("error")))
        if set(renamed) <= _OUTPUT_KEYS:
            return StepOutput(**renamed)
        hint = renamed.pop("next_step_hint", None)
        return StepOutput(result=renamed, next_step_hint=hint, **_statements(renamed))
    if statements := _statements(renamed):
        return StepOutput(result=renamed, **statements)
    return StepOutput(result=value)


def _statements(output: dict[str, Any]) -> dict[str, Any]:
    """Removes the statements from an output and returns them; nothing if it has none."""
    if not isinstance(output.get("statements"), list):
        return {}
    return {"statements": output.pop("statements")}


def _reason(error: Any) -> str | None:
    """Returns what a worker wrote about its failure as text, of whatever type it is."""
    return error if isinstance(error, str | None) else json.dumps(error, default=str)


# Evaluates conditions: whether work was done is checked, never taken on trust.
#
# The engine checks a step without a database, as it does in every workflow, and its transaction
# one that has a database.


CONDITION_SECONDS = 10.0
"""How long one condition may take."""


async def problems_of(conditions: Sequence[Condition], ctx: StepContext) -> list[str]:
    """Returns the messages of all conditions that do not hold, without a database."""
    problems: list[str] = []
    for condition in conditions:
        try:
            if not await evaluate(condition.check, ctx, condition.where):
                problems.append(condition.message)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it does not hold
            problems.append(unmet(condition.name, condition.message, error))
    return problems


def undecided(step: str) -> str:
    """Returns what is wrong if the branch after a step cannot be decided."""
    return f"the branch after {step!r} cannot be decided"


def check_storable(output: dict[str, Any]) -> dict[str, Any]:
    """Returns a step's output if the journal can store it; raises `StepFailed` if not."""
    try:
        freeze(output)
    except NotSerialisable as error:
        raise StepFailed(f"the step's result cannot be stored: {error}") from error
    return output


def is_quick(check: Check | str) -> bool:
    """Whether a condition takes no noticeable time: it is an expression without loops."""
    return isinstance(check, str) and parse_expression(check).is_quick


async def evaluate(
    check: Check | str, ctx: StepContext, where: str = "", seconds: float = CONDITION_SECONDS
) -> bool:
    """Returns whether a condition holds; raises as `holds` does, or `StepFailed` after a while.

    A slow one runs in a thread, so that other runs continue meanwhile. The thread is abandoned
    if it takes too long: there is no other way to end a function that hangs.
    """
    if is_quick(check):
        return holds(check, ctx, where)
    async with time_limit(seconds, f"a condition took more than {seconds:g} seconds"):
        return await on_thread(partial(holds, check, ctx, where))


@asynccontextmanager
async def time_limit(seconds: float | None, message: str) -> AsyncIterator[None]:
    """Ends the block after some seconds and raises `StepFailed`; None sets no limit.

    A `TimeoutError` that the author's own code raises is passed on.
    """
    # The author's code may raise the same error as the limit does, so the limit is asked afterwards
    # whether it was its own.
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        raise StepFailed(message) from None


def holds(check: Check | str, ctx: StepContext, where: str = "") -> bool:
    """Returns whether a condition holds in a context; raises what it raises.

    An author's error says `where` the condition is.
    """
    try:
        if isinstance(check, str):
            expression = parse_expression(check)
            return expression.holds(ctx.values(expression), ctx.checkpoint.own_results)
        return _called(check, ctx)
    except (AmbiguousName, BadExpression) as error:
        raise BadExpression(f"{where}: {error}" if where else str(error)) from error


def _called(check: Check, ctx: StepContext) -> bool:
    value = check(ctx)
    if inspect.isawaitable(value):
        # Functions run in a thread of their own, which has no event loop.
        value = asyncio.run(_await(value))
    # Not truthiness: a function that returns a row or a list by mistake would nearly always hold.
    if not isinstance(value, bool):
        raise TypeError(f"returned {value!r:.80} instead of True or False")
    return value


async def _await(value: Any) -> Any:
    return await value
