"""What an agent promises about secrets: its key is told to the model's server and nobody else."""

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
    """Secrets; for agents that hold one."""

    @pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
    async def test_a_refusal_does_not_repeat_the_key(
        self, harness: Harness, fault: Fault, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Errors go into the journal, logs and bug reports."""
        caplog.set_level(logging.DEBUG)
        await harness.set_behaviors(Refusal(fault))
        seen: list[str] = []

        with pytest.raises(AgentError) as raised:
            await harness.agent().ask(AgentRequest("Say something."), call_for(seen))

        trace = "".join(traceback.format_exception(raised.value))
        assert harness.secret not in trace
        assert harness.secret not in caplog.text
        assert harness.secret not in "".join(seen)

    async def test_an_answer_does_not_carry_the_key(
        self, harness: Harness, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Replies are stored for good, and shown."""
        caplog.set_level(logging.DEBUG)
        await harness.set_behaviors(TextReply("Yes."))
        seen: list[str] = []
        agent = harness.agent()

        reply = await agent.ask(AgentRequest("Say something."), call_for(seen))

        assert harness.secret not in json.dumps(reply.to_json())
        assert harness.secret not in caplog.text
        assert harness.secret not in "".join(seen)
        assert harness.secret not in repr(agent)
