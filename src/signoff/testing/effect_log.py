"""What was really performed, kept in a file that outlives the process that did it."""

from __future__ import annotations

import os
from pathlib import Path

from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Agent, Call


class EffectLog:
    """A list of effects as the world outside saw them, one line each."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "effects.log"

    def note(self, key: str) -> None:
        """Writes down that an effect is being performed, in one piece."""
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{key}{os.linesep}".encode())

    def keys(self) -> list[str]:
        """Returns everything that was performed, in order."""
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    def watch(self, agent: Agent) -> Agent:
        """Returns the same agent, each of its calls written down by its place in its run."""
        return _Watched(agent, self)


class _Watched:
    def __init__(self, agent: Agent, log: EffectLog) -> None:
        self._agent = agent
        self._log = log

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        place = (call.run, call.step, call.visit, call.step_attempt, call.effect)
        self._log.note("/".join(map(str, place)))
        return await self._agent.ask(request, call)
