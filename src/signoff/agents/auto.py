"""The best agent there is, found when it is first needed.

What the settings name comes first, in their order; then what signoff can use without any
settings. Whoever is ready first in that order is taken, for as long as the process lives,
and who was passed over is said together with why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from signoff.agents.base import Health, health_of, models_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentAuth, AgentBadRequest, AgentError, ConfigError
from signoff.remedies import CheckSetup, Resume
from signoff.runtime.ports import (
    Agent,
    Call,
    Capabilities,
    ModelChoice,
    capabilities_for,
    capabilities_of,
)

LOOK_SECONDS = 5.0
"""How long an agent may take to say how it is."""


@dataclass(frozen=True)
class Candidate:
    """One agent that could be taken."""

    name: str
    agent: Agent
    model: str | None = None
    """The one its settings name."""
    configured: bool = False


@dataclass(frozen=True)
class Choice:
    """Who was taken, and why."""

    candidate: Candidate
    health: Health
    passed_over: tuple[tuple[str, Health], ...]
    model: str | None = None
    """What to ask it for when a request names no model."""

    def __str__(self) -> str:
        """Reads as one line."""
        chosen = f"auto: {self.candidate.name} ({self.health.detail})"
        before = "; ".join(f"{name}: {health.detail}" for name, health in self.passed_over)
        return f"{chosen}; before it: {before}" if before else chosen


class AutoAgent:
    """Asks whoever is ready."""

    capabilities = Capabilities(is_model=False, needs_agents=True)

    def __init__(
        self, *, agents: Mapping[str, Candidate], among: Sequence[str] | None = None
    ) -> None:
        """Takes all agents by name; `among` names those to choose from, best first."""
        unknown = [name for name in among or () if name not in agents]
        if unknown:
            listed = ", ".join(agents)
            raise ConfigError(f"among: there is no agent {unknown[0]!r} (agents: {listed})")
        self._agents = agents
        self._among = among
        self._choice: Choice | None = None
        self._choosing: asyncio.Lock | None = None
        self._said = False

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Chooses once, says whom, and passes the request on."""
        choice = await self.choose(call.run)
        if not self._said:
            self._said = True
            call.emit(f"{choice}\n")
        if request.model is None and choice.model is not None:
            request = replace(request, model=choice.model)
        name = choice.candidate.name
        async with call.slot(name):
            reply = await choice.candidate.agent.ask(request, call.passed_to(name))
        return replace(reply, agent=reply.agent or name)

    async def choose(self, run: str = "RUN") -> Choice:
        """Returns who is asked; raises `AgentAuth` with everybody's remedy when nobody is ready.

        The remedy names the run.
        """
        if self._choosing is None:
            self._choosing = asyncio.Lock()
        async with self._choosing:
            if self._choice is None:
                self._choice = await self._look(run)
        return self._choice

    async def health(self) -> Health:
        """Tells whom it would take."""
        try:
            choice = await self.choose()
        except AgentError:
            names = ", ".join(each.name for each in self.candidates())
            remedy = f"make one of these ready: {names}"
            return Health(ready=False, detail="no agent is ready", remedy=remedy)
        return Health(ready=True, detail=str(choice).removeprefix("auto: "))

    async def models(self) -> list[str]:
        """Lists the models of whom it would take."""
        return await models_of((await self.choose()).candidate.agent)

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns what the agent it chooses can do."""
        choice = await self.choose()
        return await capabilities_for(choice.candidate.agent, model or choice.model)

    def candidates(self) -> list[Candidate]:
        """Returns who may be taken, best first."""
        if self._among is not None:
            return [self._agents[name] for name in self._among]
        return list(self._by_default())

    def _by_default(self) -> Iterator[Candidate]:
        models = [each for each in self._agents.values() if capabilities_of(each.agent).is_model]
        yield from (each for each in models if each.configured)
        built_in = {each.name: each for each in models if not each.configured}
        yield from (built_in[name] for name in WITHOUT_SETTINGS if name in built_in)

    async def _look(self, run: str) -> Choice:
        candidates = self.candidates()
        # All at once: on a machine with none of them, each would take its full time.
        found = await asyncio.gather(*(_looked(each) for each in candidates))
        passed: list[tuple[str, Health]] = []
        for candidate, (health, model) in zip(candidates, found, strict=True):
            if health.ready:
                return Choice(candidate, health, tuple(passed), model)
            passed.append((candidate.name, health))
        raise AgentAuth(
            f"no agent is ready ({_needs(passed)}); you can answer yourself",
            remedy=(CheckSetup(), Resume(run, agent="auto", instead="manual")),
        )


def _needs(passed: Sequence[tuple[str, Health]]) -> str:
    """Returns what would help: of one agent its remedy, of several where to read theirs."""
    match passed:
        case []:
            return "none is known"
        case [(name, health)]:
            return f"{name}: {health.remedy or health.detail}"
        case _:
            return ", ".join(name for name, _ in passed)


async def check_health(agent: object) -> Health:
    """Asks an agent how it is, for a few seconds at most."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await health_of(agent)
    except TimeoutError:
        return Health(False, f"did not answer within {LOOK_SECONDS:g} seconds", "look at it again")
    except AgentBadRequest as error:
        return Health(False, str(error), "mend its settings")
    except AgentError as error:
        return Health(False, str(error), "see what it says, and look again")
    except Exception as error:  # noqa: BLE001  # whatever another package's agent does
        return Health(False, f"{type(error).__name__}: {error}", "mend or remove this agent")


async def _looked(candidate: Candidate) -> tuple[Health, str | None]:
    """Returns how an agent is, and a model when it needs one and only the machine can tell."""
    choice = capabilities_of(candidate.agent).model_choice
    if choice is ModelChoice.REQUIRED and candidate.model is None:
        wanted = f"agents.{candidate.name}.model"
        return Health(False, "no model is named", f"set {wanted} in the settings"), None
    health = await check_health(candidate.agent)
    if not health.ready or choice is not ModelChoice.INSTALLED or candidate.model is not None:
        return health, None
    try:
        models = await models_of(candidate.agent)
    except AgentError as error:
        return Health(False, str(error), str(error)), None
    if not models:
        return Health(False, "has no model", "ollama pull a model, such as llama3.2"), None
    return replace(health, detail=f"{health.detail}, model {models[0]}"), models[0]
