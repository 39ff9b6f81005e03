"""A human with a chat window, as an agent.

The engine puts the prompt into the inbox and the run waits. The pasted answer is validated
like any agent's answer.
"""

from __future__ import annotations

from signoff.agents.base import Health
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentBadRequest
from signoff.remedies import ShowInbox
from signoff.runtime.ports import Call, Capabilities


class ManualAgent:
    """Answers through the inbox."""

    capabilities = Capabilities(free=True, is_model=False, answered_by_human=True)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:  # noqa: ARG002  # never asked
        """Refuses: the engine asks a human through the inbox instead."""
        # The engine turns such a request into one of the inbox before it gets here.
        raise AgentBadRequest("a manual agent is answered through the inbox", remedy=ShowInbox())

    async def health(self) -> Health:
        """Returns ready: a human can always answer, sooner or later."""
        return Health(ready=True, detail="answered by a human, through the inbox")
