"""Tests that an agent sends its key only to the model's server."""

from __future__ import annotations

import json
import logging
import traceback

import pytest

from signoff.core.effects import AgentRequest
from signoff.errors import AgentError
from signoff.testing.agent_harness import (
    Fault,
    Harness,
    HarnessBase,
    Refusal,
    TextReply,
    call_for,
)


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

        trace = "".join(traceback.format_exception(raised.value))
        assert harness.secret not in trace
        assert harness.secret not in caplog.text
        assert harness.secret not in "".join(chunks)

    async def test_an_answer_does_not_contain_the_key(
        self, harness: Harness, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Replies are stored permanently, and displayed."""
        caplog.set_level(logging.DEBUG)
        await harness.set_behaviors(TextReply("Yes."))
        chunks: list[str] = []
        agent = harness.agent()

        reply = await agent.ask(AgentRequest("Say something."), call_for(chunks))

        assert harness.secret not in json.dumps(reply.to_json())
        assert harness.secret not in caplog.text
        assert harness.secret not in "".join(chunks)
        assert harness.secret not in repr(agent)
