"""What the suite needs of a kind of agent: the agent itself, and a model that plays along.

A test says how the model behaves; the harness acts it out in the words of its protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import pytest

from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.spend import Usage
from signoff.runtime.ports import Agent, Call

DEFAULT_USAGE = Usage(tokens_in=12, tokens_out=7)


@dataclass(frozen=True)
class TextReply:
    """The model answers; with a schema asked for, the text is what stands for the value."""

    text: str
    usage: Usage | None = DEFAULT_USAGE
    """What the model's server reports; None when it reports nothing."""


@dataclass(frozen=True)
class TruncatedReply:
    """The model is stopped in the middle by its limit of tokens, and its server says so."""

    text: str
    usage: Usage | None = DEFAULT_USAGE


@dataclass(frozen=True)
class BrokenReply:
    """The connection, or the program, ends in the middle of the answer without a word."""

    text: str


@dataclass(frozen=True)
class Hang:
    """The model says this much, and then nothing any more."""

    after: str = ""


@dataclass(frozen=True)
class Unreachable:
    """Nobody is there to be asked: no server listens, or the program reaches none."""


class Fault(StrEnum):
    """Why an agent is refused an answer."""

    AUTH = "the key or login is not accepted"
    QUOTA = "the plan's limit is used up"
    BUSY = "too many requests at the moment"
    DOWN = "a failure on the other side"
    NO_MODEL = "no such model"


@dataclass(frozen=True)
class Refusal:
    """The model's server refuses; a refused key is repeated in its words, as some do."""

    fault: Fault
    seconds: int | None = None
    """When to come back, where it says so."""


Behavior: TypeAlias = TextReply | TruncatedReply | BrokenReply | Hang | Unreachable | Refusal


@dataclass(frozen=True)
class ReceivedRequest:
    """What the model got to see."""

    prompt: str
    system: str | None
    model: str | None


class Harness(ABC):
    """One kind of agent, and the model behind it."""

    secret: str
    """The key the agent holds, if any; it must show up nowhere."""

    @abstractmethod
    def agent(self, *, timeout: float | None = None) -> Agent:
        """Makes the agent; `timeout` is how long an answer may take, in seconds."""

    @abstractmethod
    async def set_behaviors(self, *behaviors: Behavior) -> None:
        """Makes the model behave like this, call by call, and as the last one from then on."""

    @abstractmethod
    def received_requests(self) -> list[ReceivedRequest]:
        """Returns every question that reached the model."""

    @abstractmethod
    async def active_calls(self) -> int:
        """Returns how many calls the model's side is still at work on."""


class HarnessBase:
    """What every part of the suite stands on."""

    @pytest.fixture
    def harness(self) -> Harness:
        """Returns the kind under test; the author of an agent provides it."""
        raise NotImplementedError("give your class a fixture `harness` (see AgentSuite)")


async def ask(agent: Agent, prompt: str = "Say something.", **request: Any) -> Reply:
    """Asks an agent as the engine would."""
    return await agent.ask(AgentRequest(prompt, **request), call_for())


def call_for(seen: list[str] | None = None) -> Call:
    """Returns what the engine says about a call; `seen` takes what streams in."""
    emit = seen.append if seen is not None else lambda _text: None
    return Call("run", EffectId("ask#1"), 1, emit)
