"""What an agent promises about time: it ends when it should, and nothing goes on after it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from signoff.errors import AgentTimeout
from signoff.testing.agent_harness import Hang, Harness, HarnessBase, ask

TIMEOUT_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
"""Only a call that hangs takes this long, on the slowest of test machines too."""


@pytest.mark.asyncio
class TimeoutTests(HarnessBase):
    """Time; for agents with a clock of their own."""

    @pytest.mark.parametrize("after", ["", "Half of an ans"], ids=["at once", "midway"])
    async def test_a_model_that_goes_silent_is_given_up(self, harness: Harness, after: str) -> None:
        """One lost connection would hold a run for ever."""
        await harness.set_behaviors(Hang(after))

        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(AgentTimeout):
                await ask(harness.agent(timeout=TIMEOUT_SECONDS))

        assert await remaining_calls(harness) == 0


@pytest.mark.asyncio
class CancelTests(HarnessBase):
    """Being cancelled."""

    @pytest.mark.parametrize("after", ["", "Half of an ans"], ids=["at once", "midway"])
    async def test_a_cancelled_call_leaves_nothing_running(
        self, harness: Harness, after: str
    ) -> None:
        """What goes on behind a cancelled run costs money and changes files."""
        await harness.set_behaviors(Hang(after))
        asking = asyncio.create_task(ask(harness.agent()))
        await wait_for_request(harness)

        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

        assert asking.cancelled()
        assert await remaining_calls(harness) == 0


async def wait_for_request(harness: Harness) -> None:
    """Waits until the model is at work on a question."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (harness.received_requests() and await harness.active_calls()):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.01)


async def remaining_calls(harness: Harness) -> int:
    """Returns how much is left running once what is ending has ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await harness.active_calls():  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.01)
    return await harness.active_calls()
