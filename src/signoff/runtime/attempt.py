"""One attempt at a step: observes, stage by stage, what happens, and returns it as facts.

Conditions are evaluated, the handler is called within its time limit, and humans are asked at
the gate or when retries are used up. What follows from a fact is decided in `core.transitions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar, assert_never

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.delta import Delta, apply, diff
from signoff.core.effects import EffectId
from signoff.core.outcome import Outcome
from signoff.core.requests import Choice, Option
from signoff.core.run_state import Stage
from signoff.core.spend import Limits, Spend
from signoff.core.step import StepDef
from signoff.core.stop_reason import (
    BudgetReached,
    NotConverging,
    StepDecided,
    StopReason,
    format_limit,
)
from signoff.core.transitions import (
    Chosen,
    ConditionsBroken,
    ConditionsMet,
    Fact,
    FellShort,
    Raised,
    Returned,
)
from signoff.errors import BadHandlerResult
from signoff.remedies import Scope
from signoff.runtime.attempt_effects import AttemptEffects
from signoff.runtime.fanout import FELL_SHORT
from signoff.runtime.handler_errors import error_info
from signoff.runtime.handlers import BoundHandler, check, passes_through, work
from signoff.runtime.journal import RunJournal
from signoff.runtime.run_inbox import RunInbox
from signoff.runtime.suspension import LimitReached

T = TypeVar("T")

REASON = "_reason"
"""A handler can state under this key of its update why the run ends, in case it ends here."""


class OutOfTime(Exception):  # noqa: N818  # named for what it says
    """A step exceeded its timeout; distinct from a `TimeoutError` that its handler raises."""


class Attempt:
    """One attempt at the current step."""

    def __init__(
        self,
        bound_handler: BoundHandler,
        journal: RunJournal,
        inbox: RunInbox,
        effects: AttemptEffects,
    ) -> None:
        self.step: StepDef = bound_handler.step
        self.effects = effects
        self.outcome: Outcome | None = None
        """What the handler returned, once it has."""
        self.delta: Delta = {}
        """What it changed in the state."""
        self.reason: StopReason | None = None
        """The handler's own reason, in case the run ends here."""
        self._update: dict[str, Any] = {}
        """The handler's whole update, for conditions; the delta omits values that were equal."""
        self._bound_handler = bound_handler
        self._journal = journal
        self._state = journal.state
        self._inbox = inbox
        pending = self._state.pending
        if pending is not None:
            # Produced before the run stopped, and held back until a human decides.
            self.outcome, self.delta = pending.outcome, pending.delta

    async def observe(self, stage: Stage, options: tuple[str, ...]) -> Fact:
        """Returns the fact of a stage; `options` are what a human can choose when escalated."""
        match stage:
            case Stage.ENTER:
                return await self._enter()
            case Stage.WORK:
                return await self._work()
            case Stage.CHECK:
                return await self._check()
            case Stage.GATE:
                return self._gate()
            case Stage.ESCALATED:
                return self._escalation(options)
            case _:
                assert_never(stage)

    async def _enter(self) -> Fact:
        fact = await self._conditions("preconditions", self._context())
        if isinstance(fact, ConditionsMet):
            self._journal.record(ev.StepBegun())
        return fact

    async def _work(self) -> Fact:
        if self._bound_handler.plain:
            # An ordinary function can act on the outside world without an effect, so everything
            # before it has to be durable first.
            await self._journal.durable()
            self.effects.may_block()
        try:
            ctx = self._context()
            outcome, update = await self._in_time(
                lambda timed: work(self._bound_handler, ctx, timed)
            )
            self.effects.check_awaited("", self.step.id)
            if REASON in update:
                update, self.reason = _without_reason(self.step.id, update)
            self._journal.refuse_secrets(update, self.step.id)
            self.delta = diff(self._state.state, update)
        except FELL_SHORT as error:
            return await self._after_failure(FellShort(str(error)))
        except OutOfTime as error:
            await self.effects.abort()
            return await self._after_failure(FellShort(str(error), late=True))
        except BaseException as error:  # whatever a handler raises becomes a fact
            if passes_through(error):
                raise
            return await self._after_failure(Raised(error_info(error, self.step.id)))
        self.outcome, self._update = outcome, update
        await self.effects.drain()
        await self._journal.step_durable()
        return Returned(outcome)

    async def _check(self) -> Fact:
        context = replace(
            self._context(),
            step_state=apply(self._state.state, self.delta),
            result=self._update,
            state_before=self._state.state,
        )
        return await self._conditions("postconditions", context)

    async def _conditions(
        self, which: Literal["preconditions", "postconditions"], ctx: StepContext
    ) -> Fact:
        self.effects.may_block()
        conditions = getattr(self.step, which)
        try:
            return await self._in_time(lambda timed: check(conditions, ctx, which, timed))
        except OutOfTime as error:
            await self.effects.abort()
            return ConditionsBroken(f"{which} of step {self.step.id!r} not met: {error}")

    def _gate(self) -> Fact:
        gate = self.step.gate
        if gate is None or self.outcome is not Outcome.OK:
            return ConditionsMet()
        shown = {name: self._lookup(name) for name in gate.context}
        options = [Option(o.label, o.requires_input) for o in gate.options]
        return self._ask("gate", Choice(gate.prompt, options, shown=shown))

    def _escalation(self, options: tuple[str, ...]) -> Fact:
        pending = self._state.pending
        problem, edge_key = (pending.problem, pending.way) if pending else ("", "")
        # One attempt can meet all three, and none may use the answer to another.
        about = {"": "escalation", ev.ROUNDS: "rounds"}.get(edge_key, "limit")
        prompt = f"Step {self.step.id!r} needs a decision: {problem}"
        name = ev.ROUNDS if edge_key == ev.ROUNDS else ""
        shown = {"problem": problem}
        return self._ask(about, Choice(prompt, options, shown=shown, question_id=name))

    def _ask(self, about: str, request: Any) -> Chosen:
        # Handlers cannot use a key that begins with "!", so theirs never clash with these.
        identity = EffectId(f"!{about}#{self._state.attempt}")
        answer = self._inbox.ask(identity, request)
        return Chosen(answer.value, answer.text, answer.by)

    def _context(self) -> StepContext:
        state = self._state
        return StepContext(
            step_id=self.step.id,
            workflow_params=state.params,
            step_state=state.state,
            run=self._journal.name,
            run_key=state.seed,
            visit=state.visit,
            iteration=state.iteration,
            attempt=state.attempt,
            feedback=state.feedback,
            previous_answers=state.previous_answers,
            port=self.effects,
        )

    async def _in_time(self, work: Callable[[bool], Awaitable[T]]) -> T:
        """Runs the handler or the conditions within the step's timeout and the limits on time.

        `work` gets whether any of these apply: only then does it have to be interruptible.
        """
        step, ceiling = self.step, self._time_limit()
        if ceiling is None and step.timeout is None:
            return await work(False)
        room, reason = ceiling or (None, None)
        whole, own = asyncio.timeout(room), asyncio.timeout(step.timeout)
        try:
            async with whole, own:
                if room == 0:
                    # Lets the timeout fire before a handler starts that may never await.
                    await asyncio.sleep(0)
                return await work(True)
        except TimeoutError:
            if whole.expired():
                await self.effects.abort()
                raise LimitReached(reason) from None
            if own.expired():
                most = format_limit("seconds", step.timeout or 0)
                raise OutOfTime(f"step {step.id!r} took longer than {most}") from None
            raise

    def _time_limit(self) -> tuple[float, BudgetReached] | None:
        """Returns the seconds left under the nearest limit on time, and why the run stops there."""
        state = self._state
        if state.limits.seconds is None and self.step.limits.seconds is None:
            return None
        scopes: tuple[tuple[Scope, Limits, Spend], ...] = (
            ("run", state.limits, state.spend),
            ("step", self.step.limits, state.visit_spend),
        )
        rooms = [
            (
                max(0.0, limits.seconds - spend.seconds),
                BudgetReached(scope, "seconds", limits.seconds, self.step.id),
            )
            for scope, limits, spend in scopes
            if limits.seconds is not None
        ]
        return min(rooms, key=lambda room: room[0], default=None)

    async def _after_failure(self, fact: Fact) -> Fact:
        """Waits for effects that a failed handler left in progress, because they are paid for.

        If the journal failed, that is the real cause, whatever the handler raised.
        """
        await self.drain()
        if self._journal.error is not None:
            raise self._journal.error
        return fact

    async def drain(self) -> None:
        """Starts no new effects, and waits for those in progress up to the step's timeout."""
        self.effects.close()
        try:
            async with asyncio.timeout(self.step.timeout):
                await self.effects.drain()
        except TimeoutError:
            await self.effects.abort()

    def _lookup(self, dotted: str) -> Any:
        value: Any = apply(self._state.state, self.delta)
        for part in dotted.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value


def _without_reason(step: str, update: dict[str, Any]) -> tuple[dict[str, Any], StopReason | None]:
    reason = update[REASON]
    if isinstance(reason, str):
        reason = StepDecided(reason) if reason else None
    elif not isinstance(reason, NotConverging):
        raise BadHandlerResult(
            f"the handler of step {step!r} returned a {REASON} of type "
            f"{type(reason).__name__}; it must be a text"
        )
    return {key: value for key, value in update.items() if key != REASON}, reason
