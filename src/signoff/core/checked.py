"""A request whose answer is checked: what to check, and what came of it.

`ctx.ask(..., read=...)` and `ctx.map(..., otherwise=...)` build these values. The transition
rules decide about each answer and the runtime performs the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from signoff.core.effects import Effect, Reply
from signoff.core.requests import Answer, Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checked(Generic[T]):
    """What came of a checked request."""

    value: T | None
    """What `read` returned for the last answer, or the part of it that `read` could use."""
    problems: tuple[str, ...] = ()
    """What is still wrong with it; empty when it was accepted."""
    sent_back: tuple[str, ...] = ()
    """What was wrong with the answer before it."""
    answer: Answer | None = None
    """What a human decided about it, if one was asked."""
    reply: Reply | None = None
    """The last answer as it came, if it was not accepted."""


@dataclass(frozen=True, slots=True)
class Otherwise(Generic[T]):
    """The request to a human when retries did not help.

    The option labeled `retry` sends the request back, with what the human wrote as feedback; any
    other choice ends it.
    """

    request: Callable[[Checked[T]], Request]
    key: str = "otherwise"


@dataclass(frozen=True, slots=True)
class CheckedCall(Generic[T]):
    """One call of `ask` with `read`."""

    effect: Effect
    read: Callable[[Reply], T]
    """Returns the value of an answer, or raises `AgentBadOutput` with every problem."""
    retries: int
    otherwise: Otherwise[T] | None
    salvage: Callable[[str], Sequence[str]] | None = None
    """Keeps what counts of an answer that cannot be read; returns what to tell the agent about it.

    Unlike `read`, it also gets the beginning of an answer that the agent was stopped in.
    """
    show_previous: bool = True
    """Whether a retry shows the previous answer; very small models would copy it."""
