"""An agent that answers in capitals: everything an agent of your own needs, and nothing else."""

from __future__ import annotations

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest, AgentTransient, ConfigError
from signoff.runtime.ports import Call


class ShoutAgent:
    """Repeats the prompt, loudly."""

    def __init__(self, *, mark: str = "!", busy: int = 0) -> None:
        """Takes the options under the agent's name in the settings.

        Nothing is opened or looked for here: an agent that is never asked costs nothing.
        `busy` is how many attempts fail first, as a model's server might.
        """
        if not isinstance(mark, str):
            raise ConfigError(f"mark is {mark!r}; it is a text")
        self._mark = mark
        self._busy = busy

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, or raises one of the `AgentError` family, sorted by who must act."""
        if request.edit:
            raise AgentBadRequest("shout cannot edit files; ask another agent")
        if call.attempt <= self._busy:
            raise AgentTransient("still clearing its throat")
        call.emit("taking a deep breath\n")
        text = request.prompt.upper() + self._mark
        usage = Usage(tokens_in=len(request.prompt), tokens_out=len(text), usd=0.0, model="shout-1")
        # Refuses an answer that is empty or does not fit the schema, with its cost kept.
        return judge(ModelAnswer(text, finish="stop", usage=usage), request.schema)

    async def health(self) -> Health:
        """Tells `signoff doctor` whether it could answer now, without spending anything."""
        return Health(ready=True, detail="has a voice")

    async def models(self) -> list[str]:
        """Lists what `model:` may name."""
        return ["shout-1"]
