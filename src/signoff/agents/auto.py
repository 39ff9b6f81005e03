"""The best available agent, chosen on first use.

Agents in the settings come first, in their order, then the agents that need no settings.
The first one that is ready is used for as long as the process lives. The choice is reported
together with the agents that were skipped, and why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from signoff.agents.base import Health, health_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentAuth, AgentBadOutput, AgentBadRequest, AgentError, ConfigError
from signoff.core.remedies import CheckSetup, Resume
from signoff.runtime.ports import (
    Agent,
    Call,
    Capabilities,
    capabilities_for,
    capabilities_of,
)

HEALTH_SECONDS = 5.0
"""How long a health check may take."""


@dataclass(frozen=True)
class Candidate:
    """One agent that can be chosen."""

    name: str
    agent: Agent
    configured: bool = False


@dataclass(frozen=True)
class Choice:
    """The chosen agent, and why it was chosen."""

    candidate: Candidate
    health: Health
    skipped: tuple[tuple[str, Health], ...]

    def __str__(self) -> str:
        """Describes the choice in one line."""
        choice = f"auto: {self.candidate.name} ({self.health.detail})"
        skipped = "; ".join(f"{name}: {health.detail}" for name, health in self.skipped)
        return f"{choice}; skipped: {skipped}" if skipped else choice


class AutoAgent:
    """Passes requests to the first agent that is ready."""

    # Requests carry a schema: who answers is known only then, and an agent that cannot hold its
    # model to a schema puts it into the prompt.
    capabilities = Capabilities(is_model=False, needs_agents=True, json_schema=True)

    def __init__(
        self, *, agents: Mapping[str, Candidate], among: Sequence[str] | None = None
    ) -> None:
        """Takes all agents by name; `among` lists those to choose from, best first."""
        unknown = [name for name in among or () if name not in agents]
        if unknown:
            listed = ", ".join(agents)
            raise ConfigError(f"among: unknown agent {unknown[0]!r} (agents: {listed})")
        checks = [name for name in among or () if capabilities_of(agents[name].agent).deterministic]
        if checks:
            raise ConfigError(f"among: {checks[0]!r} only checks and cannot answer other requests")
        self._agents = agents
        self._among = among
        self._choice: Choice | None = None
        self._choosing = asyncio.Lock()
        self._reported = False

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Chooses an agent once, reports the choice, and passes the request on."""
        choice = await self.choose(call.run)
        if not self._reported:
            self._reported = True
            call.emit(f"{choice}\n")
        name = choice.candidate.name
        async with call.slot(name):
            try:
                reply = await choice.candidate.agent.ask(request, call.passed_to(name))
            except AgentBadOutput as error:
                # The text may count all the same, and the record names who wrote it.
                error.agent = error.agent or name
                raise
        return replace(reply, agent=reply.agent or name)

    async def choose(self, run: str = "RUN") -> Choice:
        """Returns the chosen agent; raises `AgentAuth` when no agent is ready.

        The error's remedies name the run.
        """
        # Concurrent first requests wait for one choice instead of checking every agent again.
        async with self._choosing:
            if self._choice is None:
                self._choice = await self._choose(run)
        return self._choice

    async def health(self) -> Health:
        """Reports which agent it would choose."""
        try:
            choice = await self.choose()
        except NoAgentReady as error:
            late = any(health.timed_out for _, health in error.skipped)
            return Health(False, str(error), timed_out=late, absent=True)
        return Health(ready=True, detail=str(choice).removeprefix("auto: "))

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns the capabilities of the chosen agent."""
        choice = await self.choose()
        return await capabilities_for(choice.candidate.agent, model)

    def candidates(self) -> list[Candidate]:
        """Returns the agents to choose from, best first."""
        if self._among is not None:
            return [self._agents[name] for name in self._among]
        models = [each for each in self._agents.values() if _is_eligible(each.agent)]
        configured = [each for each in models if each.configured]
        built_in = {each.name: each for each in models if not each.configured}
        return [*configured, *(built_in[name] for name in WITHOUT_SETTINGS if name in built_in)]

    async def _choose(self, run: str) -> Choice:
        candidates = self.candidates()
        # In parallel: where none is installed, each check would take its full time.
        checks = await asyncio.gather(*(check_health(each.agent) for each in candidates))
        skipped: list[tuple[str, Health]] = []
        # The order of the candidates decides, not which of them was the first to answer.
        for candidate, health in zip(candidates, checks, strict=True):
            if health.ready:
                return Choice(candidate, health, tuple(skipped))
            skipped.append((candidate.name, health))
        unnamed = {} if self._among is not None else self._agents
        others = [
            name
            for name, each in unnamed.items()
            if capabilities_of(each.agent).is_model and not _is_eligible(each.agent)
        ]
        raise NoAgentReady(skipped, others, run)


def _is_eligible(agent: Agent) -> bool:
    """Whether an agent may be chosen without being listed in `among`.

    A model that cannot judge would spend minutes on reviews that are of no use, and a program that
    only reviews would answer a request to write with a review.
    """
    can = capabilities_of(agent)
    return can.is_model and can.judges and not can.named_only


class NoAgentReady(AgentAuth):
    """No agent can answer; you can answer yourself."""

    def __init__(
        self, skipped: Sequence[tuple[str, Health]], others: Sequence[str] = (), run: str = "RUN"
    ) -> None:
        """Takes the agents that are not ready, those that are never chosen, and the run."""
        self.skipped = skipped
        # What somebody began to set up comes first, with the reason; the rest are only names.
        begun = [
            f"{name}: {health.detail}" + (f" ({health.remedy})" if health.remedy else "")
            for name, health in skipped
            if not health.absent
        ]
        absent = [name for name, health in skipped if health.absent]
        names = {"never chosen unless named": others, "not set up here": absent}
        rest = [f"{label}: {', '.join(each)}" for label, each in names.items() if each]
        reasons = "; ".join([*begun, *rest])
        message = f"no agent can review yet ({reasons or 'there are none'})"
        super().__init__(
            message, remedy=(CheckSetup(), Resume(run, agent="auto", instead="manual"))
        )


async def check_health(agent: object) -> Health:
    """Returns an agent's health; takes a few seconds at most and never raises."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            return await health_of(agent)
    except TimeoutError:
        detail = f"did not answer within {HEALTH_SECONDS:g} seconds"
        return Health(False, detail, "check it again", timed_out=True)
    except AgentBadRequest as error:
        return Health(False, str(error), "fix its settings")
    except AgentError as error:
        return Health(False, str(error), "fix that, and check again")
    except Exception as error:  # noqa: BLE001  # agents of other packages may raise anything
        return Health(False, f"{type(error).__name__}: {error}", "fix or remove this agent")
