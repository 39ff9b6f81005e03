"""What every kind of agent shares: health, models, capabilities, and the checks of its options.

An agent is any object with `async ask(request, call) -> Reply` (see `runtime.ports`). A
kind is a factory that takes the agent's options by name. It declares its `Capabilities`,
and may report its health and its models.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, ConfigError
from signoff.core.remedies import Remedy, ShowInbox
from signoff.runtime.ports import Call, Capabilities, capabilities_of


@dataclass(frozen=True)
class Health:
    """Whether an agent can answer now."""

    ready: bool
    detail: str
    """Details, such as a version, an address or a model."""
    remedy: str = ""
    """What to do when it is not ready, such as a vendor's command."""
    remedies: tuple[Remedy, ...] = ()
    """What to do in signoff when it is not ready."""
    timed_out: bool = False
    """Whether the check took too long: on a busy machine the agent may still answer."""
    absent: bool = False
    """Whether it was never set up here: there is no program, no key and no server."""
    unfit: bool = False
    """Whether it can never do what it would be asked for, however ready it is."""


@runtime_checkable
class HasHealth(Protocol):
    """An agent that can check whether it is ready, at no cost."""

    async def health(self) -> Health:
        """Checks the agent, for a few seconds at most."""
        ...


@dataclass(frozen=True)
class KnownAgent:
    """What is known about an agent before its first call: enough to compile a workflow."""

    kind: str
    model: str | None = None
    """The model in its settings."""
    configured: bool = True
    """Whether the settings name it; default agents may be missing on this machine."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of its kind in its settings."""
    declared: Callable[[], Capabilities] = Capabilities
    """Returns its capabilities; this may import the agent's module."""

    @cached_property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return self.declared()


def agents_without_settings() -> dict[str, KnownAgent]:
    """Returns the agents that every project has."""
    # Their modules are imported when somebody asks what they can do: a list of agents must not load
    # the clients of all vendors.
    return {
        name: KnownAgent(name, configured=False, declared=partial(_load_capabilities, location))
        for name, location in WITHOUT_SETTINGS.items()
    }


def _load_capabilities(location: str) -> Capabilities:
    module, _, name = location.partition(":")
    return capabilities_of(getattr(import_module(module), name))


async def health_of(agent: object) -> Health:
    """Returns an agent's health; an agent that does not report it counts as ready."""
    if isinstance(agent, HasHealth):
        return await agent.health()
    return Health(ready=True, detail="does not report its health")


class ManualAgent:
    """A human with a chat window, who answers through the inbox.

    The engine puts the prompt into the inbox and the run waits. The pasted answer is validated
    like any agent's answer.
    """

    capabilities = Capabilities(free=True, is_model=False, answered_by_human=True)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:  # noqa: ARG002  # never asked
        """Refuses: the engine asks a human through the inbox instead."""
        # The engine turns such a request into one of the inbox before it gets here.
        raise AgentBadRequest("a manual agent is answered through the inbox", remedy=ShowInbox())

    async def health(self) -> Health:
        """Returns ready: a human can always answer, sooner or later."""
        return Health(ready=True, detail="answered by a human, through the inbox")


def positive_seconds(name: str, value: float) -> float:
    """Returns a time in seconds; raises `ConfigError` unless it is a number above 0."""
    # Not `value <= 0`: a comparison with NaN is always false, and NaN must be refused.
    if not _is_number(value) or not value > 0:
        raise ConfigError(f"{name} must be a number of seconds above 0, not {value!r}")
    return float(value)


def non_negative(name: str, value: float) -> float:
    """Returns a number of at least 0; raises `ConfigError` otherwise."""
    if not _is_number(value) or not 0 <= value < math.inf:
        raise ConfigError(f"{name} must be a number of at least 0, not {value!r}")
    return float(value)


def whole_number(name: str, value: int, *, minimum: int = 1) -> int:
    """Returns a whole number of at least `minimum`; raises `ConfigError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    return value


def one_of(name: str, value: str, choices: Collection[str]) -> str:
    """Returns one of the choices; raises `ConfigError` that lists them otherwise."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of: {', '.join(choices)}, not {value!r}")
    return value


def option_names(kind: Any) -> list[str] | None:
    """Returns the options that a kind of agent takes; None if it takes any, or if nobody knows."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [each.name for each in parameters if each.kind in by_name]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
