"""Tests that each fault raises the error of the role that must act, without secrets in it."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime, timedelta

import pytest

from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentAuth, AgentBadRequest, AgentError, AgentQuota, AgentTransient
from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Fault,
    Harness,
    HarnessBase,
    Refusal,
    TextReply,
    Unreachable,
    ask,
    call_for,
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
    """Errors of the model, its server and the connection."""

    @pytest.mark.parametrize(
        ("behavior", "error"), EXPECTED_ERRORS.values(), ids=EXPECTED_ERRORS.keys()
    )
    async def test_each_fault_raises_its_kind_of_error(
        self, harness: Harness, behavior: Behavior, error: type[AgentError]
    ) -> None:
        """Waiting does not fix a wrong key, and a human cannot fix a busy server."""
        await harness.set_behaviors(behavior)

        with pytest.raises(AgentError) as raised:
            await ask(harness.agent())

        assert isinstance(raised.value, error)
        assert len(str(raised.value).splitlines()) == 1

    async def test_a_quota_error_has_the_time_of_the_reset(self, harness: Harness) -> None:
        """The run is parked until then; without the time it would be resumed too early."""
        await harness.set_behaviors(Refusal(Fault.QUOTA, seconds=7200))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        expected = datetime.now(UTC) + timedelta(seconds=7200)
        assert raised.value.until is not None
        assert abs(raised.value.until - expected) < timedelta(seconds=90)

    async def test_a_quota_error_without_a_known_reset_has_no_time(self, harness: Harness) -> None:
        """An invented time would park a run for nothing."""
        await harness.set_behaviors(Refusal(Fault.QUOTA))

        with pytest.raises(AgentQuota) as raised:
            await ask(harness.agent())

        assert raised.value.until is None

    async def test_an_agent_is_usable_after_a_fault(self, harness: Harness) -> None:
        """The engine calls the same agent again."""
        await harness.set_behaviors(Refusal(Fault.DOWN), TextReply("Here I am."))
        agent = harness.agent()

        with pytest.raises(AgentTransient):
            await ask(agent)
        reply = await ask(agent)

        assert reply.text == "Here I am."

    async def test_an_agent_does_not_retry_by_itself(self, harness: Harness) -> None:
        """The engine counts and records attempts; it cannot see hidden ones."""
        await harness.set_behaviors(Refusal(Fault.DOWN))

        with pytest.raises(AgentTransient):
            await ask(harness.agent())

        assert len(harness.received_requests()) == 1


@pytest.mark.asyncio
class SecretTests(HarnessBase):
    """Secrets; for agents that have one."""

    @pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
    async def test_an_error_does_not_contain_the_key(
        self, harness: Harness, fault: Fault, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Errors go into the journal, logs and bug reports."""
        caplog.set_level(logging.DEBUG)
        await harness.set_behaviors(Refusal(fault))
        chunks: list[str] = []

        with pytest.raises(AgentError) as raised:
            await harness.agent().ask(AgentRequest("Say something."), call_for(chunks))

        for text in (*traceback.format_exception(raised.value), caplog.text, "".join(chunks)):
            assert harness.secret not in text

    async def test_an_answer_does_not_contain_the_key(
        self, harness: Harness, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Replies are stored permanently, and displayed."""
        caplog.set_level(logging.DEBUG)
        await harness.set_behaviors(TextReply("Yes."))
        chunks: list[str] = []
        agent = harness.agent()

        reply = await agent.ask(AgentRequest("Say something."), call_for(chunks))

        for text in (json.dumps(reply.to_json()), caplog.text, "".join(chunks), repr(agent)):
            assert harness.secret not in text
