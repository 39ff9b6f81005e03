"""Drives one run in a loop: observe a fact, decide what follows, record it, repeat.

The runner makes no decisions. An `Attempt` observes what happens at a stage, `decide` (in core)
returns what follows, and `_act` records it as events. There is no recursion, so a run may have
any number of steps. A suspension raised anywhere below (a wait for a human, a reached limit, a
quota) ends the loop: the effects in progress are awaited, the reason is recorded, and the lease
is given up. The next process continues from the recorded stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar, assert_never

from signoff.core import errors, stop_reason, transitions
from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.delta import Delta, apply, diff
from signoff.core.edges import ERROR, as_edge
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import FINAL, End, Outcome, Status
from signoff.core.questions import Option
from signoff.core.requests import Choice
from signoff.core.run_state import Stage
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime import handlers
from signoff.runtime.attempt_effects import AttemptEffects
from signoff.runtime.effect_errors import error_info
from signoff.runtime.effect_runner import EffectRunner, limit_scopes
from signoff.runtime.fanout import FELL_SHORT
from signoff.runtime.journal import RunJournal
from signoff.runtime.run_inbox import ApprovedFiles, RunInbox
from signoff.runtime.services import EngineServices
from signoff.runtime.store_port import InboxItem
from signoff.runtime.suspension import LimitReached, Outdated, Suspension

# One attempt at a step: observes, stage by stage, what happens, and returns it as facts.
#
# Conditions are evaluated, the handler is called within its time limit, and humans are asked at
# the gate or when retries are used up. What follows from a fact is decided in `core.transitions`.


T = TypeVar("T")

REASON = "_reason"
"""A handler can state under this key of its update why the run ends, in case it ends here."""


class OutOfTime(Exception):  # noqa: N818  # named for what it says
    """A step exceeded its timeout; distinct from a `TimeoutError` that its handler raises."""


class Attempt:
    """One attempt at the current step."""

    def __init__(
        self,
        bound_handler: handlers.BoundHandler,
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
        self.reason: stop_reason.StopReason | None = None
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
            if handlers.passes_through(error):
                raise
            raised = transitions.Raised(error_info(error, self.step.id), self._unfollowed(error))
            return await self._after_failure(raised)
        self.outcome, self._update = outcome, update
        await self.effects.drain()
        await self._journal.durable(self._journal.last_step)
        return transitions.Returned(outcome)

    async def _perform(self, ctx: StepContext, timed: bool) -> tuple[Outcome, dict[str, Any]]:
        """Has the step's instructions followed, if it has any, and calls its handler."""
        worker = self._bound_handler.worker
        if worker is None:
            return await handlers.work(self._bound_handler, ctx, timed)
        ctx = await worker.work(ctx)
        self._followed = True
        await self._before_handler()
        outcome, update = await handlers.work(self._bound_handler, ctx, timed)
        return outcome, {self.step.id: ctx.step_state[self.step.id], **update}

    def _unfollowed(self, error: BaseException) -> bool:
        """Tells whether an error means that no agent has followed the step's instructions."""
        if not self.step.actions:
            return False
        if self._bound_handler.worker is not None:
            return not self._followed
        # A handler object, such as a dispatch, gives the instructions to its own agent.
        unknown = isinstance(error, errors.UnknownName) and error.kind == "agent"
        return unknown or isinstance(error, errors.AgentError | errors.ItemsFailed)

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
        conditions = getattr(self.step, which)
        broken = f"{which} of step {self.step.id!r} not met"
        try:
            problem = await self._in_time(partial(handlers.broken_conditions, conditions, ctx))
        except OutOfTime as error:
            return transitions.ConditionsBroken(f"{broken}: {error}")
        except errors.AuthorError as error:
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
                reason = stop_reason.BudgetReached(scope, "seconds", limits.seconds, step.id)
                yield max(0.0, limits.seconds - spend.seconds), LimitReached(reason)
        if step.timeout is not None:
            most = stop_reason.format_limit("seconds", step.timeout)
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


def _without_reason(
    step: str, update: dict[str, Any]
) -> tuple[dict[str, Any], stop_reason.StopReason | None]:
    reason = update[REASON]
    if isinstance(reason, str):
        reason = stop_reason.StepDecided(reason) if reason else None
    elif not isinstance(reason, stop_reason.NotConverging | stop_reason.Rejected):
        raise errors.BadHandlerResult(
            f"the handler of step {step!r} returned a {REASON} of type "
            f"{type(reason).__name__}; it must be a text"
        )
    return {key: value for key, value in update.items() if key != REASON}, reason


STOP_POLL_SECONDS = 0.1
"""How long a run may continue before it lets the event loop deliver requests to stop."""


class Runner:
    """Drives a run until it stops: at its end, or to wait."""

    def __init__(
        self,
        services: EngineServices,
        workflow: Workflow,
        journal: RunJournal,
        items: Mapping[str, InboxItem],
    ) -> None:
        self._services = services
        self._workflow = workflow
        self._journal = journal
        self._state = journal.state
        self._effect_runner = EffectRunner(services, journal)
        files = services.performers.files
        approved = None if files is None else ApprovedFiles(services.store, files)
        self._inbox = RunInbox(journal, services.clock, items, approved, services.presence)
        self._roles = services.roles_of(workflow)
        self._bound_handlers: dict[str, handlers.BoundHandler] = {}
        self._attempt = self._new_attempt()
        self._stop_as: tuple[Status, stop_reason.StopReason] | None = None
        self._task: asyncio.Task[Any] | None = None

    async def drive(self) -> None:
        """Drives the run until it stops and everything is durable."""
        self._task = asyncio.current_task()
        if self._stop_as is not None and self._task is not None:
            self._task.cancel()
        try:
            await self._to_rest()
        except asyncio.CancelledError:
            await self._stopped()
            if self._stop_as is None:
                raise
            await self._journal.durable()

    def stop(self, status: Status, why: stop_reason.StopReason) -> None:
        """Stops the run: effects in progress are ended, and nothing recorded is lost."""
        if self._stop_as is not None:
            return
        self._stop_as = (status, why)
        # At once: the cancellation takes a tick to arrive, and a program could start in that tick.
        self._effect_runner.close()
        if self._task is not None:
            self._task.cancel()

    async def _to_rest(self) -> None:
        try:
            await self._loop()
        except Suspension as suspension:
            await self._rest(suspension)
        await self._journal.durable()

    async def _loop(self) -> None:
        stage: Stage | None = self._state.stage
        clock = self._services.clock
        last_poll = clock.monotonic()
        while stage is not None:
            if clock.monotonic() - last_poll > STOP_POLL_SECONDS:
                # Handlers that never await keep requests to stop out. It takes three ticks: one
                # delivers the request, one cancels the task, one raises in it.
                for _ in range(3):
                    await asyncio.sleep(0)
                last_poll = clock.monotonic()
            # Most steps have no preconditions, and an event less per step is worth a shortcut.
            if stage is Stage.ENTER and not self._attempt.step.preconditions:
                stage = Stage.WORK
            escalated = self._position(stage) if stage is Stage.ESCALATED else None
            options = transitions.escalation_options(escalated) if escalated else ()
            try:
                fact = await self._attempt.observe(stage, options)
            except Outdated:
                # A definition that the user adopted makes other requests than the recorded ones.
                stage = await self._restart_attempt()
                continue
            try:
                decision = transitions.decide(self._position(stage), fact)
            except errors.UnmappedOutcome as error:
                decision = transitions.Finish(
                    Status.FAILED, stop_reason.StepError(self._attempt.step.id, error_info(error))
                )
            stage = self._act(decision, fact)

    def _position(self, stage: Stage) -> transitions.Position:
        state = self._state
        return transitions.Position(
            workflow=self._workflow,
            step=self._attempt.step.id,
            stage=stage,
            attempt=state.attempt - state.replaced,
            iteration=state.iteration,
            counters=state.counters,
            outcome=self._attempt.outcome,
            edge_key=state.pending.way if state.pending is not None else "",
            problem=state.pending.problem if state.pending is not None else "",
        )

    def _new_attempt(self) -> Attempt:
        step = self._workflow[self._state.step or ""]
        bound = self._bound_handlers.get(step.id)
        if bound is None:
            bound = handlers.bound_handler(self._workflow, step, self._state.params)
            self._bound_handlers[step.id] = bound
        effects = AttemptEffects(
            self._services,
            self._journal,
            self._effect_runner,
            self._inbox,
            bound.step.limits,
            self._roles,
        )
        return Attempt(bound, self._journal, self._inbox, effects)

    def _next_attempt(self, event: ev.Event) -> None:
        """Ends the attempt, records why, and starts the next one."""
        self._withdraw()
        self._journal.record(event)
        self._attempt.effects.end()
        self._attempt = self._new_attempt()

    # Performing decisions

    def _act(self, decision: transitions.Decision, fact: transitions.Fact) -> Stage | None:
        match decision:
            case transitions.Proceed():
                return self._proceed(decision.stage)
            case transitions.Retry():
                return self._retry(decision)
            case transitions.Wait():
                return self._escalate(decision)
            case transitions.Lift():
                self._journal.record(ev.LimitLifted(decision.edge_key))
                self._hold_back()
                return Stage.GATE
            case transitions.Move():
                return self._leave(decision, fact)
            case transitions.Finish():
                self._finish(decision, fact)
            case transitions.Limit():
                self._end_at(decision)
            case _:
                assert_never(decision)
        return None

    def _proceed(self, stage: Stage) -> Stage:
        gated = self._attempt.step.gate is not None or self._state.pending is not None
        if stage is Stage.GATE and gated:
            self._hold_back()
        return stage

    def _hold_back(self) -> None:
        """Records the step's result, which becomes part of the state when the step is left."""
        self._journal.record(
            ev.StepWorked(self._attempt.outcome or Outcome.OK, self._attempt.delta)
        )

    def _retry(self, decision: transitions.Retry) -> Stage:
        self._next_attempt(
            ev.AttemptOpened(decision.feedback)
            if decision.by_human
            else ev.AttemptFailed(decision.feedback, decision.late)
        )
        return Stage.WORK

    async def _restart_attempt(self) -> Stage:
        """Starts the step over, because it no longer makes the requests that were recorded."""
        await self._attempt.effects.abort()
        if self._journal.error is not None:
            raise self._journal.error
        self._next_attempt(ev.AttemptReplaced())
        return self._state.stage

    def _escalate(self, wait: transitions.Wait) -> Stage:
        attempt = self._attempt
        # At a loop's limit, the step's own reason says best what is still to do.
        problem = str((wait.edge_key and attempt.reason) or wait.problem)
        # The attempt is over. If there is another one, it asks its humans again.
        self._withdraw()
        self._journal.record(ev.Escalated(problem, wait.edge_key, attempt.outcome, attempt.delta))
        return Stage.ESCALATED

    def _leave(self, move: transitions.Move, fact: transitions.Fact) -> Stage:
        delta, outcome = self._result(move.edge.name, fact)
        edge, iteration = move.edge, move.iteration
        finished = ev.StepFinished(
            outcome, edge.key, move.to, delta, iteration, edge.counted, move.resets, move.feedback
        )
        self._next_attempt(finished)
        return Stage.ENTER

    def _finish(self, finish: transitions.Finish, fact: transitions.Fact) -> None:
        # Looked up before the end of the step makes the run forget its effects.
        rejection = self._state.last_rejection if finish.status is Status.REJECTED else None
        if finish.edge is not None:
            self._withdraw()
            delta, outcome = self._result(finish.edge.name, fact)
            edge, iteration = finish.edge, self._state.iteration
            self._journal.record(
                ev.StepFinished(outcome, edge.key, None, delta, iteration, edge.counted)
            )
        self._come_to_rest(finish.status, finish.reason or self._attempt.reason or rejection)

    def _end_at(self, limit: transitions.Limit) -> None:
        # A handler that raised has no result to hold back; a resume runs it again.
        if self._attempt.outcome is not None:
            self._hold_back()
        detail = str(self._attempt.reason or "")
        self._come_to_rest(Status.LIMIT, replace(limit.reason, detail=detail))

    def _result(self, edge_name: str, fact: transitions.Fact) -> tuple[Delta, Outcome]:
        step = self._attempt.step.id
        if edge_name == ERROR and isinstance(fact, transitions.Raised):
            return {"set": {"_error": {"step": step, "message": fact.problem}}}, Outcome.FAIL
        delta = self._attempt.delta
        if isinstance(fact, transitions.Chosen) and edge_name.startswith("gate:"):
            chosen = {"step": step, "option": fact.label, "input": fact.text}
            delta = {**delta, "set": {**delta.get("set", {}), "_gate": chosen}}
        return delta, self._attempt.outcome or Outcome.OK

    def _withdraw(self) -> None:
        """Closes open requests whose answers are no longer needed."""
        for records in self._state.effects.values():
            for record in records.values():
                if record.kind is EffectKind.WAIT and not record.done:
                    self._journal.withdraw_items()
                    return

    # Stopping

    def _come_to_rest(
        self, status: Status, reason: stop_reason.StopReason | None, due_at: float | None = None
    ) -> None:
        self._attempt.effects.end()
        if status in FINAL:
            self._withdraw()
        self._journal.record(ev.RunStopped.because(status, reason, due_at))
        self._journal.release()

    async def _rest(self, suspension: Suspension) -> None:
        # Calls in progress are paid for, so their replies are recorded before the run stops.
        await self._attempt.drain()
        if self._journal.error is not None:
            raise self._journal.error
        self._come_to_rest(suspension.status, suspension.reason, suspension.due_at)

    async def _stopped(self) -> None:
        """Records that the run was stopped, on request or because the program ends."""
        status, why = self._stop_as or (Status.INTERRUPTED, stop_reason.ProcessStopped())
        # Effects whose start is recorded but not yet committed must not start anymore.
        self._effect_runner.close()
        await self._attempt.effects.abort()
        if self._journal.error is None:
            if self._state.status is Status.RUNNING:
                self._come_to_rest(status, why)
            await self._journal.durable()
