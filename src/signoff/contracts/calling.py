"""Calls a step's function, and leaves it when its time is up."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from signoff.contracts.context import StepContext
from signoff.errors import StepFailed
from signoff.runtime.from_thread import FromThread, on_thread


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
    return await on_thread(partial(command, ctx))
