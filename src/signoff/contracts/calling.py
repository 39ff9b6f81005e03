"""Calls a step's function, and leaves it when its time is up."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from signoff.contracts.context import StepContext
from signoff.errors import StepFailed
from signoff.runtime.from_thread import FromThread


async def call(
    command: Callable[[StepContext], Any], ctx: StepContext, seconds: float | None
) -> Any:
    """Returns what a function gives; raises `StepFailed` when it takes more than its time."""
    if seconds is None:
        _warn_of(command, ctx)
        given = command(ctx)
        return await given if inspect.isawaitable(given) else given
    waits = inspect.iscoroutinefunction(command)
    time = asyncio.timeout(seconds)
    try:
        async with time:
            given = command(ctx) if waits else await _on_a_thread(command, ctx)
            return await given if inspect.isawaitable(given) else given
    except TimeoutError:
        if not time.expired():
            raise
        raise StepFailed(f"it took more than {seconds:g} seconds") from None


def _warn_of(command: Callable[[StepContext], Any], ctx: StepContext) -> None:
    port = ctx.engine.port if ctx.engine is not None else None
    if port is not None and not inspect.iscoroutinefunction(command):
        port.may_block()


async def _on_a_thread(command: Callable[[StepContext], Any], ctx: StepContext) -> Any:
    engine = ctx.engine
    if engine is not None and engine.port is not None:
        port = FromThread(engine.port, asyncio.get_running_loop())
        ctx = replace(ctx, engine=replace(engine, port=port))
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        given, error = None, None
        try:
            given = command(ctx)
        except BaseException as raised:  # noqa: BLE001  # raised again where it is waited for
            error = raised
        # Where the loop has ended, nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_end, ended, given, error)

    # A thread that does not keep the program from ending, unlike those of the loop's own pool.
    threading.Thread(target=work, name="signoff-command", daemon=True).start()
    return await ended


def _end(ended: asyncio.Future[Any], given: Any, error: BaseException | None) -> None:
    if ended.done():
        return
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(given)
