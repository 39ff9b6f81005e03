"""Keeps a run under its ceilings on calls, tokens and money, fan-outs included.

Every call is reserved before it starts. Calls are exact. For tokens and money the
reservation is what finished calls of this run cost on average; while nothing is known,
calls with such a ceiling go one at a time, so the first bill is seen before the second
call is made.
"""

from __future__ import annotations

import asyncio

from signoff.core.spend import Limits, Spend, reached
from signoff.runtime.suspension import CeilingReached


class Ceilings:
    """The reservations of one run."""

    def __init__(self) -> None:
        self._under_way = 0
        self._changed = asyncio.Event()

    async def fit(self, scopes: list[tuple[str, Limits, Spend]]) -> None:
        """Returns when one more call fits under all ceilings; raises when none ever will."""
        scopes = [scope for scope in scopes if scope[1]]
        while scopes:
            for whose, limits, spend in scopes:
                full = reached(limits, spend, more_calls=1)
                if full:
                    raise CeilingReached(f"the {whose}'s ceiling of {full} is reached")
            if self._under_way == 0 or all(self._fits(lim, sp) for _, lim, sp in scopes):
                break
            self._changed.clear()
            await self._changed.wait()

    def enter(self) -> None:
        """Reserves a call."""
        self._under_way += 1

    def leave(self) -> None:
        """Gives a reservation back when its call has ended, and been counted."""
        self._under_way -= 1
        self._changed.set()

    def _fits(self, limits: Limits, spend: Spend) -> bool:
        """Tells whether what is under way and one more, at the usual price, stay below."""
        more = self._under_way + 1
        finished = spend.calls - self._under_way
        for ceiling, spent in ((limits.usd, spend.known_usd), (limits.tokens, spend.known_tokens)):
            if ceiling is None:
                continue
            if finished <= 0 or spent + more * spent / finished > ceiling:
                return False
        return True
