"""Ordinary code of the author's may hold up the event loop; the lease is renewed all the same."""

import threading
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Condition
from signoff.core.workflow import Workflow
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

OK = Outcome.OK
Work = tuple[Outcome, dict[str, Any]]


OTHERS: set[threading.Thread] = set()
"""Threads that existed before the test, of engines that were not closed."""


def beats() -> bool:
    """Tells whether the lease is being renewed while this code is at it."""
    ours = set(threading.enumerate()) - OTHERS
    return any(thread.name == "signoff-heartbeat" for thread in ours)


@pytest.fixture(autouse=True)
def _only_ours() -> None:
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def handler() -> Workflow:
    return one_step(lambda _ctx: (OK, {"beats": beats()}))


def precondition() -> Workflow:
    return one_step(quiet, preconditions=[Condition("beats", lambda _ctx: beats(), "silence")])


def postcondition() -> Workflow:
    return one_step(quiet, postconditions=[Condition("beats", lambda _ctx: beats(), "silence")])


def item() -> Workflow:
    async def work(ctx: StepContext) -> Work:
        (found,) = await ctx.map([1], lambda _ctx, _item: beats())
        return OK, {"beats": found}

    return one_step(work)


async def quiet(_ctx: StepContext) -> Work:
    return OK, {"beats": True}


@pytest.mark.parametrize("kind", [handler, precondition, postcondition, item])
async def test_the_lease_is_renewed_before_ordinary_code_is_called(kind: Any) -> None:
    """It may compute for an hour, and another host would take the run over."""
    bench = EngineFixture()

    result = await bench.start(kind())

    assert result.state == {"beats": True}, result.reason
    await bench.close()


async def test_async_code_needs_no_thread_at_first() -> None:
    """Most resumed runs end before a thread would have started."""
    bench = EngineFixture()

    async def work(_ctx: StepContext) -> Work:
        return OK, {"beats": beats()}

    result = await bench.start(one_step(work))

    assert result.state == {"beats": False}
    await bench.close()
