"""What every kind of agent shares: its health, its settings, and how it is found.

An agent is anything with `async ask(request, call) -> Reply` (see `runtime.ports`).
A kind is a factory taking the agent's options by name. It declares its `Capabilities`, and
may report its health and the models it offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Protocol, runtime_checkable

from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.remedies import Remedy
from signoff.runtime.ports import Capabilities, capabilities_of


@dataclass(frozen=True)
class Health:
    """Whether an agent could answer now."""

    ready: bool
    detail: str
    """What was found: a version, an address, a model."""
    remedy: str = ""
    """What to do when it is not ready, in the vendor's own words."""
    remedies: tuple[Remedy, ...] = ()
    """What to do about it in signoff."""


@runtime_checkable
class HasHealth(Protocol):
    """An agent that can tell whether it is ready, without spending anything."""

    async def health(self) -> Health:
        """Looks, for a few seconds at most."""
        ...


@runtime_checkable
class HasModels(Protocol):
    """An agent that can list its models."""

    async def models(self) -> list[str]:
        """Returns their names."""
        ...


@dataclass(frozen=True)
class KnownAgent:
    """What is known of an agent before anything is asked of it: enough to compile a workflow."""

    kind: str
    model: str | None = None
    """The model its settings name."""
    configured: bool = True
    """Whether the settings name it; other agents are there by default and may be missing."""
    declared: Callable[[], Capabilities] = Capabilities
    """Finds its capabilities, which may load the agent's module."""

    @cached_property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return self.declared()


def agents_without_settings() -> dict[str, KnownAgent]:
    """Returns the agents that are there in every project."""
    return {
        name: KnownAgent(name, configured=False, declared=partial(_declared, location))
        for name, location in WITHOUT_SETTINGS.items()
    }


def _declared(location: str) -> Capabilities:
    module, _, name = location.partition(":")
    return capabilities_of(getattr(import_module(module), name))


async def health_of(agent: object) -> Health:
    """Asks any agent how it is; one that cannot tell is believed to be ready."""
    if isinstance(agent, HasHealth):
        return await agent.health()
    return Health(ready=True, detail="does not tell its health")


async def models_of(agent: object) -> list[str]:
    """Lists any agent's models; one that cannot tell lists none."""
    return await agent.models() if isinstance(agent, HasModels) else []
