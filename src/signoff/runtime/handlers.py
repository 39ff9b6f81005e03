"""Calls handlers and conditions, and turns their results and errors into facts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from signoff.core.context import Chance, EffectPort, StepContext
from signoff.core.outcome import Outcome
from signoff.core.spend import Spend
from signoff.core.step import Condition, HandlerObject, StepDef
from signoff.core.workflow import Workflow, checked_result
from signoff.error_text import unmet
from signoff.idle_threads import in_idle_thread
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


# Runs handlers in a thread of their own, and performs their requests on the event loop.
#
# The journal, the writer and the runner are used on the event loop only. So a request that a
# handler makes in another thread is performed on the loop while the thread waits.


T = TypeVar("T")


MOST_THREADS = 100
"""How many functions of a fan-out run at once; each needs a thread of its own."""

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def thread_slots() -> asyncio.Semaphore:
    """Returns what limits the number of threads of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _slots:
        _slots[loop] = asyncio.Semaphore(MOST_THREADS)
    return _slots[loop]


async def on_thread(call: Callable[[], T]) -> T:
    """Runs a call in a thread that can be abandoned, and returns its result.

    Unlike a thread of the loop's pool, it does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    # The thread hands its result directly to the loop: a future of `concurrent.futures` in between
    # would make the hand-over cost half as much again.
    done: asyncio.Future[T] = loop.create_future()
    in_idle_thread(partial(_report, loop, done, partial(copy_context().run, call)))
    return await done


def _report(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], call: Callable[[], T]
) -> None:
    """Makes a call in this thread and passes its result or error on to the event loop."""
    ended = _outcome(call)
    # A loop that is closed by now has abandoned the call.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, done, *ended)


def for_thread(ctx: StepContext) -> StepContext:
    """Returns a context with which a handler can make requests in a thread of its own."""
    if ctx.port is None:
        return ctx
    return replace(ctx, port=FromThread(ctx.port, asyncio.get_running_loop()))


def _outcome(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """Makes a call and returns its result, or its error."""
    try:
        return call(), None
    except StopIteration:
        # An asyncio future cannot carry it, and the handler would wait forever.
        return None, RuntimeError("StopIteration was raised")
    except BaseException as error:  # noqa: BLE001  # raised again where the result is awaited
        return None, error


def _settle(
    done: Future[T] | asyncio.Future[T], result: T | None, error: BaseException | None
) -> None:
    """Passes on how a call ended, unless it was abandoned."""
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(cast("T", result))


class FromThread:
    """The effect port for a handler that runs in a thread."""

    def __init__(self, port: EffectPort, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop
        # These only build an awaitable. An ordinary function may return it, and it is then awaited
        # on the loop.
        self.perform, self.ask_checked = port.perform, port.ask_checked
        self.map, self.park = port.map, port.park
        self.before_plain_code = port.before_plain_code

    def was_requested(self, ctx: StepContext, key: str) -> bool:
        """Whether the journal has a request with this key: the handler is being replayed."""
        return self._on_loop(lambda: self._port.was_requested(ctx, key))

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        return self._on_loop(lambda: self._port.now(ctx))

    def random(self, ctx: StepContext) -> Chance:
        """Returns a random number generator that yields the same on every replay."""
        return self._on_loop(lambda: self._port.random(ctx))

    def spend(self) -> Spend:
        """Returns what the run has cost so far."""
        return self._on_loop(self._port.spend)

    def progress(self, ctx: StepContext, message: str) -> None:
        """Passes a message on to the observers."""
        self._on_loop(lambda: self._port.progress(ctx, message))

    def log(self, ctx: StepContext, text: str) -> None:
        """Records a line of the run's log."""
        self._on_loop(lambda: self._port.log(ctx, text))

    def _on_loop(self, call: Callable[[], T]) -> T:
        if loop_here() is self._loop:
            # The loop awaits what the function returned. Waiting for the loop here would deadlock.
            return call()
        done: Future[T] = Future()
        self._loop.call_soon_threadsafe(lambda: _settle(done, *_outcome(call)))
        return done.result()


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Returns the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
