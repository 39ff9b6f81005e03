"""An agent that is recorded once, and replayed without a network, a key or a cost.

It wraps any other agent. Requests are identified by their content. File changes are recorded
with the answer and applied again on replay. Errors are recorded too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from signoff.agents.answer_file import (
    AnswerEntry,
    append,
    call_location,
    describe_difference,
    portable_request,
    read_entries,
    rewrite,
    take_answer,
    watch_edits,
)
from signoff.agents.base import Health, health_of
from signoff.agents.options import one_of
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentBadRequest, AgentError, ConfigError
from signoff.runtime.effect_errors import error_to_json, usage_of
from signoff.runtime.ports import Agent, Call, Capabilities

Mode = Literal["record", "replay", "auto"]
MODES = ("record", "replay", "auto")


class CassetteAgent:
    """Records an agent's answers and replays them.

    `record` always asks the agent and replaces its recordings, `replay` never asks it,
    `auto` asks for answers that are not recorded yet.
    """

    capabilities = Capabilities(
        edits_files=True, is_model=False, needs_agents=True, path_options=("file",)
    )

    def __init__(
        self,
        *,
        file: str | Path,
        agent: str | Agent,
        mode: Mode = "auto",
        name: str = "",
        agents: Mapping[str, Any] | None = None,
    ) -> None:
        """Takes the agent itself, or the name of one of `agents`."""
        one_of("mode", mode, MODES)
        if isinstance(agent, str):
            if agents is None or agent not in agents:
                raise ConfigError(f"unknown agent {agent!r} (the one to record)")
            name = agent
            self._agent: Agent = agents[agent].agent
        else:
            self._agent = agent
        self._name = name or "agent"
        self._mode = mode
        self._file = Path(file)
        self._entries: list[AnswerEntry] | None = None
        self._used: Counter[int] = Counter()

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers from the file, or asks the agent and records the outcome."""
        try:
            entries = self._read()
        except ConfigError as error:
            raise AgentBadRequest(str(error)) from error
        if self._mode != "record":
            answer = take_answer(entries, request, call, self._name, self._used)
            if answer is not None:
                reply = await answer(request)
                call.emit(reply.text)
                return reply
        if self._mode == "replay":
            raise AgentBadRequest(self._not_recorded(entries, portable_request(request)))
        return await self._record(request, call)

    async def health(self) -> Health:
        """Reports the recordings, and the agent's health unless it is only replayed."""
        try:
            number = len(self._split_entries()[0])
        except ConfigError as error:
            return Health(False, str(error), "fix the file, or delete it and record again")
        detail = f"{self._file}, {number} recordings"
        if self._mode == "replay":
            return Health(bool(number), detail, "record it first: mode: record")
        return replace(await health_of(self._agent), detail=detail)

    def _read(self) -> list[AnswerEntry]:
        if self._entries is None:
            own, others = self._split_entries()
            if self._mode == "record" and self._file.exists():
                rewrite(self._file, others)
                own = []
            self._entries = own
        return self._entries

    def _split_entries(self) -> tuple[list[AnswerEntry], list[AnswerEntry]]:
        """Returns the entries of this agent, and those of others in the same file."""
        own: list[AnswerEntry] = []
        others: list[AnswerEntry] = []
        # Agents may share a file, so that a test has one cassette. Each touches its own entries
        # only.
        for entry in read_entries(self._file) if self._file.exists() else ():
            (own if entry.data.get("agent", self._name) == self._name else others).append(entry)
        return own, others

    async def _record(self, request: AgentRequest, call: Call) -> Reply:
        try:
            # Checked before the agent is asked: its answer would be paid for and lost.
            append(self._file, {})
        except OSError as error:
            raise AgentBadRequest(f"{self._file} cannot be written: {error}") from error
        changed = await asyncio.to_thread(watch_edits, request)
        plain = portable_request(request)
        entry = {"agent": self._name, "place": call_location(call), "request": plain}
        try:
            reply = await self._agent.ask(request, call)
        except AgentError as error:
            usage = usage_of(error)
            fault = {**error_to_json(error), **({"usage": usage.to_json()} if usage else {})}
            append(self._file, {**entry, "error": fault})
            raise
        files = await asyncio.to_thread(changed)
        append(self._file, {**entry, "reply": reply.to_json(), "files": files})
        return reply

    def _not_recorded(self, entries: list[AnswerEntry], plain: dict[str, Any]) -> str:
        times = [each.data.get("request") for each in entries].count(plain)
        if times:
            return (
                f"{self._file} holds {times} answers of {self._name!r} to this request, and all "
                f"are used: {plain['prompt']!r:.200}"
            )
        return (
            f"{self._file} holds no answer of {self._name!r} to this request; record it "
            f"(mode: record or auto), or see what changed:\n{describe_difference(plain, entries)}"
        )
