"""What every kind of agent shares: its health, its settings, and how it is found.

An agent is anything with `async ask(request, call) -> Reply` (see `runtime.ports`).
A kind is a factory taking the agent's options by name. Beyond asking, a kind may tell
its health and the models it offers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

EDITING_KINDS = frozenset({"cassette", "claude", "codex", "command", "gemini", "scripted"})
"""Kinds of agent that can change files; a `command` does where `edits: true` trusts it to."""


@dataclass(frozen=True)
class Health:
    """Whether an agent could answer now."""

    ready: bool
    detail: str
    """What was found: a version, an address, a model."""
    remedy: str = ""
    """What to do when it is not ready."""


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


@runtime_checkable
class AnsweredByPerson(Protocol):
    """An agent whose answers come through the inbox; the run waits instead of calling it."""

    by_person: bool


@runtime_checkable
class KnowsPrice(Protocol):
    """An agent that can tell whether the cost of its calls will be known."""

    async def knows_price(self, model: str | None) -> bool:
        """Tells for a model, or for the one it uses by itself."""
        ...


async def health_of(agent: object) -> Health:
    """Asks any agent how it is; one that cannot tell is believed to be ready."""
    if isinstance(agent, HasHealth):
        return await agent.health()
    return Health(ready=True, detail="does not tell its health")


async def models_of(agent: object) -> list[str]:
    """Lists any agent's models; one that cannot tell lists none."""
    return await agent.models() if isinstance(agent, HasModels) else []
