"""Calls handlers and conditions, and turns their results and errors into facts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Condition, HandlerObject, StepDef
from signoff.core.workflow import Workflow, checked_result
from signoff.error_text import unmet
from signoff.runtime.from_thread import for_thread, on_thread
from signoff.runtime.suspension import Suspension, cause_of
from signoff.runtime.worker import Worker, worker_of

Work = tuple[Outcome, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BoundHandler:
    """A step's handler, ready to be called."""

    step: StepDef
    call: Callable[..., Any]
    names: tuple[str, ...]
    """The parameters it takes by name."""
    plain: bool
    """Whether it is an ordinary function, which can act without requesting effects."""
    worker: Worker | None = None
    """Who follows the step's instructions before the handler is called."""


def bound_handler(workflow: Workflow, step: StepDef, params: Mapping[str, Any]) -> BoundHandler:
    """Prepares a step's handler for a run with these parameters."""
    handler = step.handler
    if isinstance(handler, HandlerObject):
        return BoundHandler(step, handler.function(step), (), plain=False)
    worker = worker_of(workflow, step)
    if handler is None:
        return BoundHandler(step, _do_nothing, (), plain=False, worker=worker)
    # Reading a signature is slow, and a run without parameters has none to pass.
    names = tuple(workflow.params[step.id]) if params or worker else ()
    return BoundHandler(step, handler, names, plain=not is_async(handler), worker=worker)


async def _do_nothing(_ctx: StepContext) -> Work:
    return Outcome.OK, {}


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether a function, or an object that is called like one, is a coroutine function."""
    if inspect.iscoroutinefunction(handler):
        return True
    bare = inspect.unwrap(getattr(handler, "func", handler))
    return inspect.iscoroutinefunction(bare) or inspect.iscoroutinefunction(
        getattr(bare, "__call__", None)  # noqa: B004  # asks what kind, not whether
    )


async def work(bound_handler: BoundHandler, ctx: StepContext, timed: bool = False) -> Work:
    """Calls a handler and returns its outcome and update; its exceptions pass through.

    With `timed`, an ordinary function runs in a thread, because it could not be interrupted
    otherwise.
    """
    arguments = {n: ctx.workflow_params[n] for n in bound_handler.names if n in ctx.workflow_params}
    if bound_handler.plain and timed:
        returned = await _in_thread(bound_handler.call, ctx, **arguments)
    else:
        returned = bound_handler.call(ctx, **arguments)
    return checked_result(bound_handler.step.id, await awaited(returned))


async def _in_thread(call: Callable[..., Any], ctx: StepContext, /, **arguments: Any) -> Any:
    """Calls an ordinary function in a thread, which can be abandoned when its time is up."""
    return await on_thread(partial(call, for_thread(ctx), **arguments))


async def awaited(returned: Any) -> Any:
    """Awaits a handler's return value if needed; unwraps the cause of a failed task group."""
    if not inspect.isawaitable(returned):
        return returned
    try:
        return await returned
    except BaseExceptionGroup as group:
        raise cause_of(group) from group


def passes_through(error: BaseException) -> bool:
    """Tells whether an exception from a handler is meant for the engine or the whole program.

    Everything else is a failure of the handler: `sys.exit()` in a handler must not end the
    program as if the run had succeeded, and a task that the handler cancelled itself must not
    look like a run that was stopped.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, Suspension | KeyboardInterrupt | GeneratorExit)


async def broken_conditions(
    conditions: Sequence[Condition], ctx: StepContext, timed: bool = False
) -> str:
    """Returns the problems of conditions that do not hold; one that raises does not hold."""
    problems = [await _problem(condition, ctx, timed) for condition in conditions]
    return "; ".join(filter(None, problems))


async def _problem(condition: Condition, ctx: StepContext, timed: bool) -> str:
    # An empty text would read as "no problem", and the condition would count as met.
    message = condition.error or f"{condition.name} is not met"
    try:
        if timed and not is_async(condition.check):
            holds = await _in_thread(condition.check, ctx)
        else:
            holds = condition.check(ctx)
        if inspect.isawaitable(holds):
            holds = await holds
    except BaseException as error:  # a check that fails to run has not passed
        if passes_through(error):
            raise
        return unmet(condition.name, message, error)
    return "" if holds is True else message
