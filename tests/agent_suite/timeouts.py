"""Tests that a call ends in time and leaves nothing running."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from signoff.core.errors import AgentTimeout
from tests.agent_harness import Hang, Harness, HarnessBase, ask

TIMEOUT_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
"""Only a call that hangs takes this long, even on a slow test machine."""


@pytest.mark.asyncio
class TimeoutTests(HarnessBase):
    """Timeouts; for agents that have one."""

    @pytest.mark.parametrize("after", ["", "Half of an ans"], ids=["at once", "midway"])
    async def test_a_silent_model_times_out(self, harness: Harness, after: str) -> None:
        """Otherwise one lost connection would block a run forever."""
        await harness.set_behaviors(Hang(after))

        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(AgentTimeout):
                await ask(harness.agent(timeout=TIMEOUT_SECONDS))

        assert await remaining_calls(harness) == 0


@pytest.mark.asyncio
class CancelTests(HarnessBase):
    """Cancellation."""

    @pytest.mark.parametrize("after", ["", "Half of an ans"], ids=["at once", "midway"])
    async def test_a_cancelled_call_leaves_nothing_running(
        self, harness: Harness, after: str
    ) -> None:
        """Work that continues after a cancelled run costs money and changes files."""
        await harness.set_behaviors(Hang(after))
        asking = asyncio.create_task(ask(harness.agent()))
        await wait_for_request(harness)

        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

        assert asking.cancelled()
        assert await remaining_calls(harness) == 0


async def wait_for_request(harness: Harness) -> None:
    """Waits until the model works on a request."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (harness.received_requests() and await harness.active_calls()):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.01)


async def remaining_calls(harness: Harness) -> int:
    """Returns how many calls still run after all ending ones have ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await harness.active_calls():  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.01)
    return await harness.active_calls()
