"""Keeps a run within its limits on calls, tokens and money, fan-outs included.

The cost of a call is known only after it has ended, but a limit must hold before. With a
fan-out of 300 items, checking the total before each call is useless: all 300 start before the
first one is charged. So every call is reserved before it starts:

- A limit on calls is exact, because the number of calls is known in advance.
- For tokens and money, each call in progress reserves the cost of the most expensive call so
  far. A new call waits until the total, the reservations and its own reservation fit.
- Before the first cost is known there is nothing to reserve. So no more calls are in progress
  at once than have been charged: the first call runs alone, then two, then four. The fan-out
  doubles its width as costs come in, and a cheap first call cannot let 300 expensive ones in.

A limit is therefore exceeded by about one call at most. When no call is in progress and the
total is below the limit, the next call always starts: otherwise a run whose calls got more
expensive would stop with money left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from signoff.core.events import ANY_AGENT
from signoff.core.run_state import RunState
from signoff.core.spend import Limits, Spend, Usage, reached
from signoff.core.stop_reason import BudgetReached
from signoff.core.workflow import Workflow
from signoff.errors import NotAllowed
from signoff.remedies import PassOption, Scope
from signoff.runtime.performers import Performers
from signoff.runtime.services import EngineServices
from signoff.runtime.suspension import LimitReached

_LIMIT_CALLS = PassOption("limit", "calls=NUMBER")


LimitScopes = list[tuple[Scope, Limits, Spend]]


def limit_scopes(state: RunState, step_limits: Limits) -> LimitScopes:
    """Returns the limits of the run and of its current step, each with what was spent."""
    return [("run", state.limits, state.spend), ("step", step_limits, state.visit_spend)]


async def check_price(
    performers: Performers, limits: Limits, agent: str, model: str = "", scope: Scope = "run"
) -> None:
    """Refuses a limit on money if the agent's cost is unknown, because it could not be enforced."""
    if limits.usd is None or limits.calls is not None or limits.tokens is not None:
        return
    if not await performers.reports_price(agent, model or None):
        raise NotAllowed(
            f"the price of a call of {agent!r} is unknown, so the {scope}'s limit of "
            f"${limits.usd:g} cannot be enforced; limit calls or tokens of the {scope} too, "
            "or give the agent a `price:` in the settings",
            remedy=_LIMIT_CALLS if scope == "run" else (),
        )


async def check_prices(
    services: EngineServices, workflow: Workflow, limits: Limits, switch: Mapping[str, str]
) -> None:
    """Checks the agents of a workflow that are known in advance, before anything is spent.

    `switch` maps agents to those that answer in their place.
    """
    performers, roles = services.performers, services.roles_of(workflow)
    for step in workflow.steps.values():
        if step.agent:
            role = switch.get(step.agent) or switch.get(ANY_AGENT, step.agent)
            agent = role if performers.has_agent(role) else roles.get(role, role)
            await check_price(performers, limits, agent)


class SpendLimiter:
    """The reservations of one run."""

    def __init__(self) -> None:
        self._in_progress = 0
        self._charged = 0
        """Calls whose cost this process has learned."""
        self._highest_usd = 0.0
        """What the most expensive of them cost."""
        self._highest_tokens = 0
        self._unreported: dict[str, set[str]] = {}
        """The amounts that no reply of an agent has reported so far."""
        self._changed = asyncio.Event()

    async def wait_for_room(self, agent: str, step: str, scopes: LimitScopes) -> None:
        """Returns when a call fits within all limits; raises when a limit is reached."""
        scopes = [scope for scope in scopes if scope[1]]
        while scopes:
            for scope, limits, spend in scopes:
                full = reached(limits, spend)
                if full:
                    amount = getattr(limits, full)
                    raise LimitReached(BudgetReached(scope, full, amount, step, agent))
                self._check_reported(agent, scope, limits)
            if self._in_progress == 0 or all(self._fits(lim, sp) for _, lim, sp in scopes):
                break
            # Every call that ends changes the totals or the highest cost, so look again then.
            self._changed.clear()
            await self._changed.wait()

    def note_cost(self, usage: Usage | None, *, failed: bool = False) -> None:
        """Learns from the cost of an ended call; an unknown cost changes nothing."""
        billed = usage is not None and bool(usage.usd or usage.tokens)
        if failed and not billed:
            # A call that was refused says nothing about the cost of an answer.
            return
        self._charged += 1
        if usage is not None:
            self._highest_usd = max(self._highest_usd, usage.usd or 0.0)
            self._highest_tokens = max(self._highest_tokens, usage.tokens or 0)

    def note_missing(self, agent: str, usage: Usage | None) -> None:
        """Remembers which amounts an agent does not report; its next replies will not either."""
        amounts = {"usd": usage.usd, "tokens": usage.tokens} if usage is not None else {}
        missing = {name for name in ("usd", "tokens") if amounts.get(name) is None}
        self._unreported[agent] = self._unreported.get(agent, missing) & missing

    def reserve(self) -> None:
        """Reserves a call."""
        self._in_progress += 1

    def release(self) -> None:
        """Releases a reservation after its call has ended and its cost is in the totals."""
        self._in_progress -= 1
        self._changed.set()

    def _check_reported(self, agent: str, scope: Scope, limits: Limits) -> None:
        """Refuses to continue if the agent reports none of the limited amounts."""
        limited = [name for name in ("usd", "tokens") if getattr(limits, name) is not None]
        unreported = self._unreported.get(agent, set())
        if limits.calls is None and limited and unreported.issuperset(limited):
            raise NotAllowed(
                f"answers of {agent!r} do not report their {' or '.join(limited)}, so the "
                f"{scope}'s limit cannot be enforced; limit calls of the {scope} too",
                remedy=_LIMIT_CALLS if scope == "run" else (),
            )

    def _fits(self, limits: Limits, spend: Spend) -> bool:
        """Tells whether the calls in progress and one more fit, each at the highest cost."""
        calls = self._in_progress + 1
        finished = max(1, spend.calls - self._in_progress)
        for limit, spent, highest in (
            (limits.usd, spend.known_usd, self._highest_usd),
            (limits.tokens, spend.known_tokens, self._highest_tokens),
        ):
            if limit is None:
                continue
            # Calls before a resume were charged in another process. Only their average is
            # known here, so it serves as a lower bound of the highest cost.
            if calls > self._charged or spent + calls * max(highest, spent / finished) > limit:
                return False
        return True
