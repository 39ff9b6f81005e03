"""An agent on tape: recorded once, replayed without a network, a key or a bill.

It stands around any other agent. Requests are known by their content; what changed on
disk is recorded with the answer and done again on replay. Faults are kept too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from signoff.agents.base import Health, health_of
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest, AgentError, ConfigError, SignoffError
from signoff.runtime.faults import costing, fault_from_json, fault_to_json, usage_of
from signoff.runtime.ports import Agent, Call, Capabilities
from signoff.testing import edits
from signoff.testing.script_rules import ScriptRule
from signoff.testing.tape import Recording, Tape, asked, difference

Mode = Literal["record", "replay", "auto"]
MODES = ("record", "replay", "auto")


class CassetteAgent:
    """Replays an agent's answers, and records them.

    `record` asks the agent every time and replaces what was recorded, `replay` never asks
    it, `auto` asks for what is not recorded yet.
    """

    capabilities = Capabilities(edits_files=True, is_model=False, needs_agents=True)

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
        if mode not in MODES:
            raise ConfigError(f"mode is {mode!r}; it is one of: {', '.join(MODES)}")
        if isinstance(agent, str):
            if agents is None or agent not in agents:
                raise ConfigError(f"there is no agent {agent!r} to record")
            name = agent
            self._agent: Agent = agents[agent].agent
        else:
            self._agent = agent
        self._name = name or "agent"
        self._mode = mode
        self._tape = Tape(Path(file))
        self._left: dict[str, list[Recording]] | None = None
        self._own: list[Recording] = []
        """Everything that was on the tape of this agent."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers from the tape, or asks the agent and records what came of it."""
        try:
            left = self._recorded()
        except ConfigError as error:
            raise AgentBadRequest(str(error)) from error
        found = self._take(left, asked(request), call)
        if found is not None:
            return await _played(found, request, call)
        if self._mode == "replay":
            raise AgentBadRequest(self._not_recorded(request))
        return await self._record(request, call)

    async def health(self) -> Health:
        """Tells what is on the tape, and how the agent is where it may be asked."""
        try:
            number = len([each for each in self._tape.read() if each.agent == self._name])
        except ConfigError as error:
            return Health(False, str(error), "mend the file, or delete it and record anew")
        detail = f"{self._tape.file}, {number} recordings"
        if self._mode == "replay":
            return Health(bool(number), detail, "record it first: mode: record")
        return replace(await health_of(self._agent), detail=detail)

    def _recorded(self) -> dict[str, list[Recording]]:
        if self._left is not None:
            return self._left
        if self._mode == "record":
            self._tape.forget(self._name)
        self._left = defaultdict(list)
        self._own = [each for each in self._tape.read() if each.agent == self._name]
        for each in self._own:
            self._left[each.key].append(each)
        return self._left

    def _take(
        self, left: dict[str, list[Recording]], request: dict[str, Any], call: Call
    ) -> Recording | None:
        """Returns the next answer to a request: the one given in the same place, if there is."""
        if self._mode == "record":
            return None
        same = left[Recording(self._name, request).key]
        if not same:
            return None
        chosen = next((each for each in same if each.place == _place(call)), same[0])
        place = same.index(chosen)
        # A fault that was written in comes first, and the answer is still to come.
        same[place : place + 1] = [] if chosen.fault is None else [replace(chosen, fault=None)]
        return chosen

    async def _record(self, request: AgentRequest, call: Call) -> Reply:
        try:
            # Found out before the agent is asked: its answer would be paid for and lost.
            self._tape.make_room()
        except OSError as error:
            raise AgentBadRequest(f"{self._tape.file} cannot be written: {error}") from error
        changed = await asyncio.to_thread(edits.watch, request)
        recording = Recording(self._name, asked(request), _place(call))
        try:
            reply = await self._agent.ask(request, call)
        except AgentError as error:
            usage = usage_of(error)
            said = {**fault_to_json(error), **({"usage": usage.to_json()} if usage else {})}
            self._tape.add(replace(recording, error=said))
            raise
        files = await asyncio.to_thread(changed)
        self._tape.add(replace(recording, reply=reply.to_json(), files=files))
        return reply

    def _not_recorded(self, request: AgentRequest) -> str:
        wanted = asked(request)
        key = Recording(self._name, wanted).key
        times = [each.key for each in self._own].count(key)
        if times:
            return (
                f"{self._tape.file} holds {times} answers of {self._name!r} to this request, and "
                f"it is asked once more: {request.prompt!r:.200}"
            )
        return (
            f"{self._tape.file} holds no answer of {self._name!r} to this request; record it "
            f"(mode: record or auto), or see what changed:\n{difference(wanted, self._own)}"
        )


async def _played(recording: Recording, request: AgentRequest, call: Call) -> Reply:
    if recording.fault is not None:
        return await _faulty(recording, request)
    if recording.error is not None:
        raise _fault(recording.error)
    reply = Reply.from_json(dict(recording.reply or {"text": ""}))
    await asyncio.to_thread(edits.apply, recording.files, request)
    call.emit(reply.text)
    return reply


async def _faulty(recording: Recording, request: AgentRequest) -> Reply:
    text = (recording.reply or {}).get("text", "")
    said = ScriptRule({}, {"fault": recording.fault, "text": text}).said(request)
    return said if isinstance(said, Reply) else await said


def _fault(recorded: Mapping[str, Any]) -> SignoffError:
    error = fault_from_json(dict(recorded))
    if "usage" in recorded and isinstance(error, AgentError):
        return costing(error, Usage(**recorded["usage"]))
    return error


def _place(call: Call) -> str:
    return f"{call.step}/{call.effect}@{call.attempt}"
