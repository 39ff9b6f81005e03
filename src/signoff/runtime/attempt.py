"""One attempt at a step: observes, stage by stage, what happens, and returns it as facts.

Conditions are evaluated, the handler is called within its time limit, and humans are asked at
the gate or when retries are used up. What follows from a fact is decided in `core.transitions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, assert_never

from signoff.core import events as ev
from signoff.core import transitions
from signoff.core.context import StepContext
from signoff.core.delta import Delta, apply, diff
from signoff.core.edges import as_edge
from signoff.core.effects import EffectId
from signoff.core.outcome import End, Outcome
from signoff.core.questions import Option
from signoff.core.requests import Choice
from signoff.core.run_state import Stage
from signoff.core.step import StepDef
from signoff.core.stop_reason import (
    BudgetReached,
    NotConverging,
    Rejected,
    StepDecided,
    StopReason,
    format_limit,
)
from signoff.errors import AgentError, AuthorError, BadHandlerResult, ItemsFailed, UnknownName
from signoff.runtime.attempt_effects import AttemptEffects
from signoff.runtime.effect_errors import error_info
from signoff.runtime.fanout import FELL_SHORT
from signoff.runtime.handlers import BoundHandler, broken_conditions, passes_through, work
from signoff.runtime.journal import RunJournal
from signoff.runtime.run_inbox import RunInbox
from signoff.runtime.spend_limits import limit_scopes
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
        self._followed = False
        """Whether a worker has followed the step's instructions."""
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

    async def observe(self, stage: Stage, options: tuple[Option, ...]) -> transitions.Fact:
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

    async def _enter(self) -> transitions.Fact:
        fact = await self._conditions("preconditions", self._context())
        if isinstance(fact, transitions.ConditionsMet):
            self._journal.record(ev.StepBegun())
        return fact

    async def _work(self) -> transitions.Fact:
        if self._bound_handler.worker is None:
            await self._before_handler()
        try:
            ctx = self._context()
            outcome, update = await self._in_time(lambda timed: self._perform(ctx, timed))
            self.effects.check_awaited("", self.step.id)
            self._inbox.close("")
            if REASON in update:
                update, self.reason = _without_reason(self.step.id, update)
            self._journal.refuse_secrets(update, self.step.id)
            self.delta = diff(self._state.state, update)
        except FELL_SHORT as error:
            return await self._after_failure(transitions.FellShort(str(error)))
        except OutOfTime as error:
            return await self._after_failure(transitions.FellShort(str(error), late=True))
        except BaseException as error:  # whatever a handler raises becomes a fact
            if passes_through(error):
                raise
            raised = transitions.Raised(error_info(error, self.step.id), self._unfollowed(error))
            return await self._after_failure(raised)
        self.outcome, self._update = outcome, update
        await self.effects.drain()
        await self._journal.step_durable()
        return transitions.Returned(outcome)

    async def _perform(self, ctx: StepContext, timed: bool) -> tuple[Outcome, dict[str, Any]]:
        """Has the step's instructions followed, if it has any, and calls its handler."""
        worker = self._bound_handler.worker
        if worker is None:
            return await work(self._bound_handler, ctx, timed)
        ctx = await worker.work(ctx)
        self._followed = True
        await self._before_handler()
        outcome, update = await work(self._bound_handler, ctx, timed)
        return outcome, {self.step.id: ctx.step_state[self.step.id], **update}

    def _unfollowed(self, error: BaseException) -> bool:
        """Tells whether an error means that no agent has followed the step's instructions."""
        if not self.step.actions:
            return False
        if self._bound_handler.worker is not None:
            return not self._followed
        # A handler object, such as a dispatch, gives the instructions to its own agent.
        unknown = isinstance(error, UnknownName) and error.kind == "agent"
        return unknown or isinstance(error, AgentError | ItemsFailed)

    async def _before_handler(self) -> None:
        if self._bound_handler.plain:
            await self.effects.before_plain_code()

    async def _check(self) -> transitions.Fact:
        context = replace(
            self._context(),
            step_state=apply(self._state.state, self.delta),
            result=self._update,
            state_before=self._state.state,
        )
        return await self._conditions("postconditions", context)

    async def _conditions(
        self, which: Literal["preconditions", "postconditions"], ctx: StepContext
    ) -> transitions.Fact:
        self.effects.may_block()
        conditions = getattr(self.step, which)
        broken = f"{which} of step {self.step.id!r} not met"
        try:
            problem = await self._in_time(lambda timed: broken_conditions(conditions, ctx, timed))
        except OutOfTime as error:
            return transitions.ConditionsBroken(f"{broken}: {error}")
        except AuthorError as error:
            return transitions.Raised(error_info(error, self.step.id))
        if not problem:
            return transitions.ConditionsMet()
        # The problem of a postcondition becomes the feedback of the retry, so it stays bare.
        bare = which == "postconditions"
        return transitions.ConditionsBroken(problem if bare else f"{broken}: {problem}")

    def _gate(self) -> transitions.Fact:
        gate = self.step.gate
        if gate is None or self.outcome is not Outcome.OK:
            return transitions.ConditionsMet()
        state = apply(self._state.state, self.delta)
        look_up = gate.look_up or _look_up
        # A gate that names nothing is about what the step has made.
        named = {name: look_up(state, name) for name in gate.context}
        shown = named if gate.context else self._result()
        options = [Option(o.label, o.requires_input) for o in gate.options]
        # A choice that ends the run as rejected approves nothing.
        approves = tuple(o.label for o in gate.options if as_edge(o.next).to is not End.REJECTED)
        request = Choice(
            gate.prompt, options, shown=shown, approves=approves, presence=gate.presence
        )
        return self._ask("gate", request)

    def _escalation(self, options: tuple[Option, ...]) -> transitions.Fact:
        pending = self._state.pending
        problem, edge_key = (pending.problem, pending.way) if pending else ("", "")
        # One attempt can meet all three, and none may use the answer to another.
        about = {"": "escalation", ev.ROUNDS: "rounds"}.get(edge_key, "limit")
        prompt = f"Step {self.step.id!r} needs a decision: {problem}"
        name = ev.ROUNDS if edge_key == ev.ROUNDS else ""
        shown: dict[str, Any] = {"problem": problem}
        if any(option.label == transitions.ACCEPT for option in options):
            shown |= self._result()
        return self._ask(about, Choice(prompt, options, shown=shown, question_id=name))

    def _result(self) -> dict[str, Any]:
        """Returns what the step has changed in the state, for a human who decides about it."""
        changed = {**self.delta.get("append", {}), **self.delta.get("set", {})}
        result = {name: value for name, value in changed.items() if not name.startswith("_")}
        return {"result": result} if result else {}

    def _ask(self, about: str, request: Any) -> transitions.Chosen:
        # Handlers cannot use a key that begins with "!", so theirs never clash with these.
        identity = EffectId(f"!{about}#{self._state.attempt}")
        answer = self._inbox.ask(identity, request)
        return transitions.Chosen(answer.value, answer.text, answer.by)

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
        nearest = min(self._deadlines(), key=lambda deadline: deadline[0], default=None)
        if nearest is None:
            return await work(False)
        seconds, error = nearest
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                if seconds == 0:
                    # Lets the timeout fire before a handler starts that may never await.
                    await asyncio.sleep(0)
                return await work(True)
        except TimeoutError:
            if not deadline.expired():
                raise
            await self.effects.abort()
            raise error from None

    def _deadlines(self) -> Iterator[tuple[float, BaseException]]:
        """Yields the seconds left under each limit on time, and what to raise when they pass."""
        step = self.step
        for scope, limits, spend in limit_scopes(self._state, step.limits):
            if limits.seconds is not None:
                reason = BudgetReached(scope, "seconds", limits.seconds, step.id)
                yield max(0.0, limits.seconds - spend.seconds), LimitReached(reason)
        if step.timeout is not None:
            most = format_limit("seconds", step.timeout)
            yield step.timeout, OutOfTime(f"step {step.id!r} took longer than {most}")

    async def _after_failure(self, fact: transitions.Fact) -> transitions.Fact:
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


def _look_up(state: Mapping[str, Any], dotted: str) -> Any:
    value: Any = state
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _without_reason(step: str, update: dict[str, Any]) -> tuple[dict[str, Any], StopReason | None]:
    reason = update[REASON]
    if isinstance(reason, str):
        reason = StepDecided(reason) if reason else None
    elif not isinstance(reason, NotConverging | Rejected):
        raise BadHandlerResult(
            f"the handler of step {step!r} returned a {REASON} of type "
            f"{type(reason).__name__}; it must be a text"
        )
    return {key: value for key, value in update.items() if key != REASON}, reason
