"""What an agent promises about faults: each is sorted by who must act."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signoff.errors import AgentAuth, AgentBadRequest, AgentError, AgentQuota, AgentTransient
from signoff.testing.agent_harness import (
    Behavior,
    BrokenReply,
    Fault,
    Harness,
    HarnessBase,
    Refusal,
    TextReply,
    Unreachable,
    ask,
)

EXPECTED_ERRORS: dict[str, tuple[Behavior, type[AgentError]]] = {
    "wrong key": (Refusal(Fault.AUTH), AgentAuth),
    "quota": (Refusal(Fault.QUOTA), AgentQuota),
    "busy": (Refusal(Fault.BUSY), AgentTransient),
    "busy for seconds": (Refusal(Fault.BUSY, seconds=3), AgentTransient),
    "down": (Refusal(Fault.DOWN), AgentTransient),
    "no model": (Refusal(Fault.NO_MODEL), AgentBadRequest),
    "breaks off": (BrokenReply("Half of an answer, if that"), AgentTransient),
    "gone": (Unreachable(), AgentTransient),
}


@pytest.mark.asyncio
class FaultTests(HarnessBase):
    """Faults."""

    @pytest.mark.parametrize(
        ("behavior", "error"), EXPECTED_ERRORS.values(), ids=EXPECTED_ERRORS.keys()
    )
    async def test_a_fault_says_who_must_act(
        self, harness: Harness, behavior: Behavior, error: type[AgentError]
    ) -> None:
        """Waiting does not help a wrong key, and a person does not help a busy server."""
        await harness.set_behaviors(behavior)

        with pytest.raises(AgentError) as raised:
            await ask(harness.agent())

        assert isinstance(raised.value, error)
        assert len(str(raised.value).splitlines()) == 1

    async def test_a_quota_that_returns_says_when(self, harness: Harness) -> None:
        """The run is parked until then; without the time it would be woken in vain."""
        await harness.set_behaviors(Refusal(Fault.QUOTA, seconds=7200))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        expected = datetime.now(UTC) + timedelta(seconds=7200)
        assert raised.value.until is not None
        assert abs(raised.value.until - expected) < timedelta(seconds=90)

    async def test_a_quota_without_a_time_has_none(self, harness: Harness) -> None:
        """An invented time would park a run for nothing."""
        await harness.set_behaviors(Refusal(Fault.QUOTA))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        assert raised.value.until is None

    async def test_a_fault_leaves_the_agent_usable(self, harness: Harness) -> None:
        """The engine asks the same agent again."""
        await harness.set_behaviors(Refusal(Fault.DOWN), TextReply("Here I am."))
        agent = harness.agent()

        with pytest.raises(AgentTransient):
            await ask(agent)
        reply = await ask(agent)

        assert reply.text == "Here I am."

    async def test_a_fault_is_met_once(self, harness: Harness) -> None:
        """The engine counts and records attempts; hidden ones would be neither."""
        await harness.set_behaviors(Refusal(Fault.DOWN))

        with pytest.raises(AgentTransient):
            await ask(harness.agent())

        assert len(harness.received_requests()) == 1
