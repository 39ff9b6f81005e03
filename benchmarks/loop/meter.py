"""Counts calls and tokens, and what a provider's prompt cache would have saved.

A token is four characters. A call finds the beginning of its prompt in the cache if an earlier
call to the same agent in the same run had begun to answer by the time this one started. As with
most providers, a beginning of less than 1,024 tokens is not cached; longer ones in steps of 128.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

CHARS_PER_TOKEN = 4
LEAST_CACHED = 1024
"""Tokens of the smallest beginning that is cached."""
CACHE_STEP = 128
FIRST_TOKEN_SECONDS = 2.0
TOKENS_PER_SECOND = 60.0


@dataclass(frozen=True)
class CallRecord:
    """One call to a simulated agent."""

    agent: str
    round_number: int
    tokens_in: int
    """All input, with the part that was cached."""
    cached: int
    tokens_out: int


@dataclass
class Meter:
    """Performs the calls of one run in virtual time and counts them."""

    calls: list[CallRecord] = field(default_factory=list)
    _warm: dict[str, list[str]] = field(default_factory=dict)

    async def call(
        self,
        agent: str,
        round_number: int,
        prompt: str,
        answer: str,
        emit: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Lets the time of a call pass; `prompt` is everything the model reads."""
        warm = self._warm.setdefault(agent, [])
        shared = max((common_prefix(prompt, each) for each in warm), default=0)
        cached = tokens(shared) // CACHE_STEP * CACHE_STEP
        cached = cached if cached >= LEAST_CACHED else 0
        out = tokens(len(answer))
        self.calls.append(CallRecord(agent, round_number, tokens(len(prompt)), cached, out))
        await asyncio.sleep(FIRST_TOKEN_SECONDS)
        warm.append(prompt)
        emit(answer[:CHARS_PER_TOKEN])
        await asyncio.sleep(out / TOKENS_PER_SECOND)


def tokens(chars: int) -> int:
    """Returns how many tokens a number of characters has."""
    return -(-chars // CHARS_PER_TOKEN)


def common_prefix(first: str, second: str) -> int:
    """Returns the length of the beginning that two texts share."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
