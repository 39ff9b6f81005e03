"""What an agent promises about faults: each is sorted by who must act."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signoff.errors import AgentAuth, AgentBadRequest, AgentError, AgentQuota, AgentTransient
from signoff.testing.agent_harness import (
    Behaviour,
    BreaksOff,
    Fault,
    Gone,
    Harness,
    Harnessed,
    Refuses,
    Says,
    ask,
)

MEANT: dict[str, tuple[Behaviour, type[AgentError]]] = {
    "wrong key": (Refuses(Fault.AUTH), AgentAuth),
    "quota": (Refuses(Fault.QUOTA), AgentQuota),
    "busy": (Refuses(Fault.BUSY), AgentTransient),
    "busy for seconds": (Refuses(Fault.BUSY, seconds=3), AgentTransient),
    "down": (Refuses(Fault.DOWN), AgentTransient),
    "no model": (Refuses(Fault.NO_MODEL), AgentBadRequest),
    "breaks off": (BreaksOff("Half of an answer, if that"), AgentTransient),
    "gone": (Gone(), AgentTransient),
}


@pytest.mark.asyncio
class FaultPromises(Harnessed):
    """Faults."""

    @pytest.mark.parametrize(("behaviour", "error"), MEANT.values(), ids=MEANT.keys())
    async def test_a_fault_says_who_must_act(
        self, harness: Harness, behaviour: Behaviour, error: type[AgentError]
    ) -> None:
        """Waiting does not help a wrong key, and a person does not help a busy server."""
        await harness.act(behaviour)

        with pytest.raises(AgentError) as raised:
            await ask(harness.agent())

        assert isinstance(raised.value, error)
        assert len(str(raised.value).splitlines()) == 1

    async def test_a_quota_that_returns_says_when(self, harness: Harness) -> None:
        """The run is parked until then; without the time it would be woken in vain."""
        await harness.act(Refuses(Fault.QUOTA, seconds=7200))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        expected = datetime.now(UTC) + timedelta(seconds=7200)
        assert raised.value.until is not None
        assert abs(raised.value.until - expected) < timedelta(seconds=90)

    async def test_a_quota_without_a_time_has_none(self, harness: Harness) -> None:
        """An invented time would park a run for nothing."""
        await harness.act(Refuses(Fault.QUOTA))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        assert raised.value.until is None

    async def test_a_fault_leaves_the_agent_usable(self, harness: Harness) -> None:
        """The engine asks the same agent again."""
        await harness.act(Refuses(Fault.DOWN), Says("Here I am."))
        agent = harness.agent()

        with pytest.raises(AgentTransient):
            await ask(agent)
        reply = await ask(agent)

        assert reply.text == "Here I am."

    async def test_a_fault_is_met_once(self, harness: Harness) -> None:
        """The engine counts and records attempts; hidden ones would be neither."""
        await harness.act(Refuses(Fault.DOWN))

        with pytest.raises(AgentTransient):
            await ask(harness.agent())

        assert len(harness.asked()) == 1
