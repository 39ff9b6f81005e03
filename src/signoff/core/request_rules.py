"""The transition rules for one request: a checked call, an item of a fan-out, or a whole fan-out.

A step has stages, edges and gates; a request only falls short, raises, or is decided by a human.
What is retried, and for how long, is the rule that steps have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from signoff.core.requests import RETRY
from signoff.core.transitions import Chosen, FellShort, Raised, Retry, Wait, retry
from signoff.errors import EngineError


class RequestPosition(NamedTuple):
    """How far a checked call, an item of a fan-out or a whole fan-out has come."""

    attempt: int
    retries: int
    options: tuple[str, ...] = ()
    """What a human can choose; empty where no human is asked."""


@dataclass(frozen=True, slots=True)
class Accept:
    """Continue with the last answer, or with what the human chose in its place."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Raise it to the caller."""

    problem: str


RequestFact = FellShort | Raised | Chosen
RequestDecision = Retry | Wait | Accept | GiveUp


def decide_request(position: RequestPosition, fact: RequestFact) -> RequestDecision:
    """Says what follows from a fact about one request."""
    return REQUEST_TABLE[type(fact)](position, fact)


def _request_fell_short(position: RequestPosition, fact: FellShort) -> RequestDecision:
    if again := retry(position.attempt, position.retries, fact):
        return again
    if fact.usable:
        return Accept()
    return Wait(fact.problem, position.options) if position.options else GiveUp(fact.problem)


def _request_chosen(position: RequestPosition, fact: Chosen) -> RequestDecision:
    if fact.label not in position.options:
        raise EngineError(f"{fact.label!r} is not one of {', '.join(position.options)}")
    return Retry(fact.text, by_human=True) if fact.label == RETRY else Accept()


REQUEST_TABLE: Mapping[type[RequestFact], Callable[[RequestPosition, Any], RequestDecision]] = {
    FellShort: _request_fell_short,
    Raised: lambda _position, fact: GiveUp(fact.problem),
    Chosen: _request_chosen,
}
