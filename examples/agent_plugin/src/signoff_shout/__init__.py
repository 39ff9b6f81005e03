"""An agent that answers in capitals: everything an agent of your own needs, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentTransient, ConfigError
from signoff.runtime.ports import Call, Capabilities


class ShoutAgent:
    """Repeats the prompt, loudly."""

    capabilities = Capabilities(edits_files=True, streaming=True, reports_price=True)
    """What it can do. Because it edits files, refine steps with `mode: edit` give it one."""

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
        if call.attempt <= self._busy:
            raise AgentTransient("still clearing its throat")
        call.emit("taking a deep breath\n")
        if request.edit and request.workspace is not None:
            await asyncio.to_thread(_edit, Path(request.workspace))
        text = request.prompt.upper() + self._mark
        usage = Usage(tokens_in=len(request.prompt), tokens_out=len(text), usd=0.0, model="shout-1")
        # Refuses an answer that is empty or does not match the schema; its cost still counts.
        return judge(ModelAnswer(text, finish="stop", usage=usage), request.schema)

    async def health(self) -> Health:
        """Tells `signoff doctor` whether it could answer now, without spending anything."""
        return Health(ready=True, detail="has a voice")

    async def models(self) -> list[str]:
        """Lists what `model:` may name."""
        return ["shout-1"]


def _edit(workspace: Path) -> None:
    for file in workspace.rglob("*.md"):
        file.write_text(file.read_text("utf-8").upper(), "utf-8")
