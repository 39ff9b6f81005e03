"""Keeps a run under its ceilings on calls, tokens and money, fan-outs included.

Every call is reserved before it starts. Calls are exact. For tokens and money the
reservation is what the dearest call so far cost, and no more calls are under way at once
than have been paid for: the first goes alone, and a fan-out doubles as its bills come in.
So a ceiling is overshot by about one call, however cheap the first one was.
"""

from __future__ import annotations

import asyncio

from signoff.core.spend import Limits, Spend, Usage, reached
from signoff.core.step import Dispatch
from signoff.core.stop_reason import BudgetReached
from signoff.core.workflow import Workflow
from signoff.errors import NotAllowed
from signoff.remedies import PassOption, Scope
from signoff.runtime.performers import Performers
from signoff.runtime.suspension import LimitReached

_LIMIT_CALLS = PassOption("limit", "calls=NUMBER")


async def check_price(
    performers: Performers, limits: Limits, agent: str, model: str = "", scope: Scope = "run"
) -> None:
    """Refuses a ceiling on money that a call could overrun without anybody noticing."""
    if limits.usd is None or limits.calls is not None or limits.tokens is not None:
        return
    if not await performers.reports_price(agent, model or None):
        raise NotAllowed(
            f"the price of a call of {agent!r} is unknown, so the {scope}'s limit of "
            f"${limits.usd:g} cannot be enforced; limit calls or tokens of the {scope} too, "
            "or give the agent a `price:` in the settings",
            remedy=_LIMIT_CALLS if scope == "run" else (),
        )


async def check_prices(performers: Performers, workflow: Workflow, limits: Limits) -> None:
    """Refuses such a ceiling before anything is spent, where it is known who will be asked."""
    for step in workflow.steps.values():
        if isinstance(step.handler, Dispatch):
            role = str(step.handler.agent)
            agent = role if performers.knows(role) else workflow.roles.get(role, role)
            await check_price(performers, limits, agent)


class SpendLimiter:
    """The reservations of one run."""

    def __init__(self) -> None:
        self._under_way = 0
        self._seen = 0
        """Calls whose bill this process has seen."""
        self._usd = 0.0
        """What the dearest of them cost."""
        self._tokens = 0
        self._silent: dict[str, set[str]] = {}
        """What no answer of an agent has reported so far."""
        self._changed = asyncio.Event()

    async def fit(self, agent: str, step: str, scopes: list[tuple[Scope, Limits, Spend]]) -> None:
        """Returns when a call of an agent fits under all ceilings; raises when none ever will."""
        scopes = [each for each in scopes if each[1]]
        while scopes:
            for scope, limits, spend in scopes:
                full = reached(limits, spend, more_calls=1)
                if full:
                    amount = getattr(limits, full)
                    raise LimitReached(BudgetReached(scope, full, amount, step, agent))
                self._check_measured(agent, scope, limits)
            if self._under_way == 0 or all(self._fits(lim, sp) for _, lim, sp in scopes):
                break
            self._changed.clear()
            await self._changed.wait()

    def learn(self, usage: Usage | None, *, failed: bool = False) -> None:
        """Takes note of what one ended call cost; an unknown price teaches nothing."""
        billed = usage is not None and bool(usage.usd or usage.tokens)
        if failed and not billed:
            return  # A call that was turned away says nothing about the price of an answer.
        self._seen += 1
        if usage is not None:
            self._usd = max(self._usd, usage.usd or 0.0)
            self._tokens = max(self._tokens, usage.tokens or 0)

    def heard(self, agent: str, usage: Usage | None) -> None:
        """Takes note of what an agent's answer did not report: its next will hardly say more."""
        told = {"usd": usage.usd, "tokens": usage.tokens} if usage is not None else {}
        missing = {name for name in ("usd", "tokens") if told.get(name) is None}
        self._silent[agent] = self._silent.get(agent, missing) & missing

    def enter(self) -> None:
        """Reserves a call."""
        self._under_way += 1

    def leave(self) -> None:
        """Gives a reservation back when its call has ended, and been counted."""
        self._under_way -= 1
        self._changed.set()

    def _check_measured(self, agent: str, scope: Scope, limits: Limits) -> None:
        """Refuses to go on where an agent reports nothing that is limited."""
        limited = [name for name in ("usd", "tokens") if getattr(limits, name) is not None]
        silent = self._silent.get(agent, set())
        if limits.calls is None and limited and silent.issuperset(limited):
            raise NotAllowed(
                f"answers of {agent!r} do not report their {' or '.join(limited)}, so the "
                f"{scope}'s limit cannot be enforced; limit calls of the {scope} too",
                remedy=_LIMIT_CALLS if scope == "run" else (),
            )

    def _fits(self, limits: Limits, spend: Spend) -> bool:
        """Tells whether what is under way and one more, at the dearest price, stay below."""
        more = self._under_way + 1
        finished = max(1, spend.calls - self._under_way)
        for ceiling, spent, dearest in (
            (limits.usd, spend.known_usd, self._usd),
            (limits.tokens, spend.known_tokens, self._tokens),
        ):
            if ceiling is None:
                continue
            # The average stands in for what earlier processes saw and this one did not.
            if more > self._seen or spent + more * max(dearest, spent / finished) > ceiling:
                return False
        return True
