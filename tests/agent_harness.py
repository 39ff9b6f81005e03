"""What `AgentSuite` needs of a kind of agent: the agent itself, and a simulated model.

A test describes how the model behaves; the harness translates that into the model's protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.spend import Usage
from signoff.runtime.ports import Agent, Call

DEFAULT_USAGE = Usage(tokens_in=12, tokens_out=7)


@dataclass(frozen=True)
class TextReply:
    """The model answers; if the request has a schema, the text is the JSON of the value."""

    text: str
    usage: Usage | None = DEFAULT_USAGE
    """What the model's server reports; None if it reports nothing."""


@dataclass(frozen=True)
class TruncatedReply:
    """The model reaches its token limit within the answer, and its server reports that."""

    text: str
    usage: Usage | None = DEFAULT_USAGE


@dataclass(frozen=True)
class BrokenReply:
    """The connection or the program ends in the middle of the answer, without a message."""

    text: str


@dataclass(frozen=True)
class Hang:
    """The model sends this text and then nothing more."""

    after: str = ""


@dataclass(frozen=True)
class Unreachable:
    """No server listens, or the program cannot reach its server."""


class Fault(StrEnum):
    """Why a server refuses a request."""

    AUTH = "the key or login is not accepted"
    QUOTA = "the plan's limit is used up"
    BUSY = "too many requests at the moment"
    DOWN = "the server failed"
    NO_MODEL = "no such model"


@dataclass(frozen=True)
class Refusal:
    """The model's server refuses; if it refuses the key, its message repeats it, as some do."""

    fault: Fault
    seconds: int | None = None
    """After how many seconds to try again, if the server reports that."""


Behavior: TypeAlias = TextReply | TruncatedReply | BrokenReply | Hang | Unreachable | Refusal


@dataclass(frozen=True)
class ReceivedRequest:
    """What the model received."""

    prompt: str
    system: str | None
    model: str | None


class Harness(ABC):
    """One kind of agent, and the model behind it."""

    secret: str
    """The agent's key, if any; it must not appear anywhere."""

    @abstractmethod
    def agent(self, *, timeout: float | None = None) -> Agent:
        """Creates the agent; `timeout` is how long an answer may take, in seconds."""

    @abstractmethod
    async def set_behaviors(self, *behaviors: Behavior) -> None:
        """Sets the behavior of the model call by call; the last one is repeated."""

    @abstractmethod
    def received_requests(self) -> list[ReceivedRequest]:
        """Returns every request that reached the model."""

    @abstractmethod
    async def active_calls(self) -> int:
        """Returns how many calls the model is still working on."""


class HarnessBase:
    """Every part of the suite uses a fixture `harness`, which the agent's author provides."""


async def ask(agent: Agent, prompt: str = "Say something.", **request: Any) -> Reply:
    """Calls an agent the way the engine does."""
    return await agent.ask(AgentRequest(prompt, **request), call_for())


def call_for(chunks: list[str] | None = None) -> Call:
    """Returns the context the engine passes with a call; `chunks` collects streamed text."""
    emit = chunks.append if chunks is not None else lambda _text: None
    return Call("run", EffectId("ask#1"), 1, emit)
