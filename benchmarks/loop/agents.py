"""The simulated agents of a signoff run: they read prompts, and answer at the stated rates."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path

from benchmarks.loop import reading
from benchmarks.loop.meter import Meter
from benchmarks.loop.replies import conform, critique, dumps, verdict
from benchmarks.loop.simulation import Alarm, Simulation
from signoff import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.runtime.ports import Agent, Call, Capabilities

CAPABILITIES = Capabilities(
    edits_files=True,
    json_schema=True,
    system_prompt=True,
    streaming=True,
    prompt_caching=True,
    free=True,
)
"""What the best real agents declare, so that every saving of the engine is used."""


def agents_of(simulation: Simulation, meter: Meter) -> dict[str, Agent]:
    """Returns the four agents of a flow, by name."""
    kinds = (Author, Critic, Judge, Fixer)
    return {kind.name: kind(simulation, meter) for kind in kinds}


class SimulatedAgent(ABC):
    """An agent that takes time, counts tokens and answers by simulation."""

    capabilities = CAPABILITIES
    name = ""

    def __init__(self, simulation: Simulation, meter: Meter) -> None:
        self._simulation = simulation
        self._meter = meter

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers after some virtual time."""
        reply = self._answer(request, call)
        sent = "\n".join(_sent(request))
        await self._meter.call(self.name, call.visit, sent, reply.text, call.emit)
        if _files(request):
            self._edit(request, call)
        return Reply(reply.text, reply.value, usage=Usage(tokens_in=0, tokens_out=0, usd=0.0))

    @abstractmethod
    def _answer(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the reply to a request."""

    def _edit(self, _request: AgentRequest, _call: Call) -> None:
        """Changes the working copy; an agent without one does nothing."""
        return


class Author(SimulatedAgent):
    """Writes the artifact with its planted defects."""

    name = "author"

    def _answer(self, _request: AgentRequest, _call: Call) -> Reply:
        return Reply(self._simulation.artifact.text)


class Critic(SimulatedAgent):
    """Reviews the artifact in its prompt against the constraints that it is asked about."""

    name = "critic"

    def _answer(self, request: AgentRequest, call: Call) -> Reply:
        text = reading.material(request.prompt, "ARTIFACT") or ""
        # The key of the request has the constraints' ids: `critics[2]/accuracy+tone#1`.
        constraints = call.effect.rpartition("/")[2].partition("#")[0].split("+")
        assert self._simulation.artifact.constraints.keys() >= set(constraints), call.effect
        found = {
            each: self._with_memory(request.prompt, text, each, call.visit, len(constraints))
            for each in constraints
        }
        for alarms in found.values():
            self._simulation.reported(alarms)
        answer = critique(found)
        if not any("impact" in part for part in _sent(request)):
            for issue in answer["issues"]:
                del issue["impact"]
        return _structured(request, answer) or Reply(dumps(answer))

    def _with_memory(
        self, prompt: str, text: str, constraint: str, round_number: int, constraints: int
    ) -> list[Alarm]:
        """Returns what the critic sees in the text, and what the prompt reminds it of."""
        alarms = self._simulation.review(text, constraint, round_number, several=constraints > 1)
        seen = {each.ref: each for each in alarms}
        for alarm in self._simulation.alarms.values():
            if alarm.constraint != constraint or alarm.quote not in text:
                continue
            status = reading.known(prompt, alarm.ref, alarm.quote)
            if status == reading.DISMISSED:
                seen.pop(alarm.ref, None)
            elif status == reading.OPEN:
                seen[alarm.ref] = alarm
        return list(seen.values())


class Judge(SimulatedAgent):
    """Decides about the findings in its prompt, and sticks to decisions that it is shown."""

    name = "judge"

    def _answer(self, request: AgentRequest, call: Call) -> Reply:
        if claim := reading.material(request.prompt, "CLAIM"):
            return self._confirm(request, claim, call.visit)
        shown = reading.issues(reading.critiques(request.prompt))
        decisions = [
            (name, alarm, not self._dismisses(request.prompt, alarm, call.visit))
            for ref, name in shown.items()
            if (alarm := self._simulation.alarms.get(ref)) is not None
        ]
        answer, work_order = verdict(decisions, self._simulation.literal_edits(shown, call.visit))
        structured = _structured(request, {**answer, "bill_of_work": work_order})
        text = f"=== ADJUDICATION ===\n{dumps(answer)}\n=== BILL_OF_WORK ===\n{work_order}\n"
        return structured or Reply(text)

    def _confirm(self, request: AgentRequest, claim: str, round_number: int) -> Reply:
        """Says whether one finding is true, at the same rates as in a verdict but independently."""
        (ref,) = reading.issues(claim)
        confirmed = not self._simulation.rejects(ref, round_number)
        answer = {"reason": f"I looked at {ref} again.", "confirmed": confirmed}
        return _structured(request, answer) or Reply(dumps(answer))

    def _dismisses(self, prompt: str, alarm: Alarm, round_number: int) -> bool:
        if reading.known(prompt, alarm.ref, alarm.quote) == reading.DISMISSED:
            return True
        return self._simulation.dismisses(alarm.ref, round_number)


class Fixer(SimulatedAgent):
    """Edits the working copy according to the findings in its prompt."""

    name = "fixer"

    def _answer(self, request: AgentRequest, _call: Call) -> Reply:
        alarms = [self._simulation.alarms[ref] for ref in self._work(request)]
        edits = "".join(f"{each.quote}\n{each.fix}\n" for each in alarms)
        # What it writes is its edits, each with the old and the new passage.
        return Reply(f"{edits}Worked on {len(alarms)} findings.")

    def _edit(self, request: AgentRequest, call: Call) -> None:
        (path,) = _files(request)
        text = path.read_text(encoding="utf-8")
        fixed = self._simulation.fix(text, self._work(request), call.visit)
        path.write_text(fixed, encoding="utf-8")

    def _work(self, request: AgentRequest) -> list[str]:
        """Returns the findings it is asked to fix: those described, and those quoted as edits."""
        order = reading.material(request.prompt, "BILL_OF_WORK") or ""
        described = reading.work(request.prompt)
        alarms = self._simulation.alarms
        return [ref for ref in alarms if ref in described or alarms[ref].quote in order]


def _sent(request: AgentRequest) -> list[str]:
    """Returns everything that the model reads and that is paid for."""
    # A schema is sent along with the prompt, and a file that is edited has to be read first.
    schema = [json.dumps(request.schema)] if request.schema else []
    files = [path.read_text(encoding="utf-8") for path in _files(request)]
    return [request.system or "", *schema, request.prompt, *files]


def _files(request: AgentRequest) -> list[Path]:
    """Returns the files of the working copy that the agent may edit."""
    return sorted(Path(request.workspace).iterdir()) if request.workspace and request.edit else []


def _structured(request: AgentRequest, answer: object) -> Reply | None:
    """Returns a reply with a value that matches the request's schema; None without a schema."""
    if request.schema is None:
        return None
    value = conform(answer, request.schema)
    return Reply(json.dumps(value, ensure_ascii=False), value)
