"""A log of the effects that were really performed, in a file that survives a killed process."""

from __future__ import annotations

import os
from pathlib import Path

from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Agent, Call


class EffectLog:
    """The effects that were really performed, one line each."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "effects.log"

    def note(self, key: str) -> None:
        """Records that an effect is being performed, in one write."""
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{key}{os.linesep}".encode())

    def keys(self) -> list[str]:
        """Returns everything that was performed, in order."""
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    def watch(self, agent: Agent) -> Agent:
        """Returns the agent, wrapped so that each of its calls is recorded."""
        return _WatchedAgent(agent, self)


class _WatchedAgent:
    def __init__(self, agent: Agent, log: EffectLog) -> None:
        self._agent = agent
        self._log = log

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        parts = (call.run, call.step, call.visit, call.step_attempt, call.effect)
        self._log.note("/".join(map(str, parts)))
        return await self._agent.ask(request, call)
