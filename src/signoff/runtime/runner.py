"""Drives one run: observes a fact, asks the rules what follows, does that, again.

The loop is all there is: no recursion, no decision of its own. `_observe` finds out how
things stand at a stage, `decide` (in core) says what follows, `_act` records it. A
suspension anywhere below ends the loop with the run at rest and everything recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.delta import Delta, diff, merged
from signoff.core.edges import ERROR
from signoff.core.fold import Stage
from signoff.core.frozen import freeze
from signoff.core.outcome import FINAL, Outcome, Status
from signoff.core.requests import Choice, Option
from signoff.core.step import StepDef
from signoff.core.transitions import (
    Chosen,
    Decision,
    Fact,
    FellShort,
    Finish,
    Held,
    Lift,
    Limit,
    Move,
    Position,
    Proceed,
    Raised,
    Retry,
    Returned,
    Wait,
    answers,
    decide,
)
from signoff.core.workflow import Workflow
from signoff.errors import NotSerialisable, SignoffError, StoreError, UnmappedOutcome
from signoff.runtime.fanout import FELL_SHORT
from signoff.runtime.handlers import callees, check, work
from signoff.runtime.journal import RunJournal
from signoff.runtime.outside import Outside
from signoff.runtime.people import People
from signoff.runtime.ports import InboxItem
from signoff.runtime.surroundings import Surroundings
from signoff.runtime.suspension import CeilingReached, Suspension
from signoff.runtime.visit import Visit


class OutOfTime(Exception):  # noqa: N818  # named for what it says
    """A step's own time is up; apart from time-outs its handler may raise."""


class Runner:
    """Drives a run until it rests."""

    def __init__(
        self,
        around: Surroundings,
        workflow: Workflow,
        journal: RunJournal,
        inbox: Mapping[str, InboxItem],
    ) -> None:
        self._around = around
        self._workflow = workflow
        self._journal = journal
        self._state = journal.state
        self._outside = Outside(around, journal)
        self._people = People(journal, around.clock, inbox)
        self._callees = callees(workflow)
        self._step = workflow[journal.state.step or ""]
        self._visit: Visit | None = None
        self._outcome: Outcome | None = None
        self._delta: Delta = {}
        self._update: dict[str, Any] = {}
        """As the handler returned it, for conditions; the delta lacks what was there before."""
        self._stop_as: tuple[Status, str] | None = None
        self._task: asyncio.Task[Any] | None = None

    async def drive(self) -> None:
        """Goes on until the run rests, with everything recorded and durable."""
        self._task = asyncio.current_task()
        try:
            await self._loop()
        except Suspension as suspension:
            await self._rest(suspension)
        except asyncio.CancelledError:
            await self._stopped()
            if self._stop_as is None:
                raise
        await self._journal.durable()

    def stop(self, status: Status, why: str) -> None:
        """Makes the run stop here: effects under way are ended, the rest is kept."""
        if self._stop_as is None and self._task is not None:
            self._stop_as = (status, why)
            self._task.cancel()

    async def _loop(self) -> None:
        stage: Stage | None = self._state.stage
        self._recall()
        while stage is not None:
            self._step = self._workflow[self._state.step or ""]
            fact = await self._observe(stage)
            try:
                decision = decide(self._position(stage), fact)
            except UnmappedOutcome as error:
                decision = Finish(Status.FAILED, str(error))
            stage = self._act(decision, fact)

    def _recall(self) -> None:
        """Takes up what a step had produced when the run came to rest."""
        pending = self._state.pending
        if pending is not None:
            self._outcome, self._delta = pending.outcome, pending.delta

    def _position(self, stage: Stage) -> Position:
        state = self._state
        return Position(
            workflow=self._workflow,
            step=self._step.id,
            stage=stage,
            attempt=state.attempt,
            iteration=state.iteration,
            counters=state.counters,
            outcome=self._outcome,
            way=state.pending.way if state.pending is not None else "",
        )

    # Finding out how things stand

    async def _observe(self, stage: Stage) -> Fact:
        match stage:
            case Stage.ENTER:
                return await self._enter()
            case Stage.WORK:
                return await self._work()
            case Stage.CHECK:
                return await self._check()
            case Stage.GATE:
                return await self._gate()
            case Stage.ESCALATED:
                return await self._escalation()
            case _:
                assert_never(stage)

    async def _enter(self) -> Fact:
        self._visit = None
        self._outcome, self._delta = None, {}
        step = self._step
        if not step.preconditions:
            return Held()
        fact = await check(step.preconditions, self._context(), "preconditions")
        if isinstance(fact, Held):
            self._journal.record(ev.StepBegun())
        return fact

    async def _work(self) -> Fact:
        callee = self._callees[self._step.id]
        if callee.plain:
            await self._journal.durable()
        context = self._context()
        try:
            outcome, update = await self._within_time(callee.step, work(callee, context))
            self._outcome, self._update, self._delta = outcome, update, self._diff(update)
            self._update = update
        except FELL_SHORT as error:
            return FellShort(await self._after_failure(str(error)))
        except OutOfTime as error:
            await self._this_visit().abort()
            return FellShort(await self._after_failure(str(error)))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a handler raises becomes a fact
            return Raised(await self._after_failure(_said(callee.step.id, error)))
        await self._this_visit().drain()
        await self._journal.step_durable()
        return Returned(outcome)

    async def _check(self) -> Fact:
        step = self._step
        if not step.postconditions:
            return Held()
        context = replace(
            self._context(),
            step_state=freeze(merged(self._state.state, self._delta)),
            result=self._update,
        )
        return await check(step.postconditions, context, "postconditions")

    async def _gate(self) -> Fact:
        gate = self._step.gate
        if gate is None or self._outcome is not Outcome.OK:
            return Held()
        shown = {name: self._lookup(name) for name in gate.context}
        options = [Option(o.label, o.requires_input) for o in gate.options]
        request = Choice(gate.prompt, options, shown=shown)
        answer = self._people.ask(_engine_effect("gate", self._state.attempt), request)
        return Chosen(answer.value, answer.text)

    async def _escalation(self) -> Fact:
        pending = self._state.pending
        problem, way = (pending.problem, pending.way) if pending else ("", "")
        request = Choice(
            f"Step {self._step.id!r} needs a decision: {problem}",
            answers(self._position(Stage.ESCALATED)),
            shown={"problem": problem},
        )
        # One attempt can meet all three; none may take the answer to another for its own.
        about = {"": "escalation", ev.ROUNDS: "rounds"}.get(way, "limit")
        key = _engine_effect(about, self._state.attempt)
        answer = self._people.ask(key, request)
        return Chosen(answer.value, answer.text)

    def _context(self) -> StepContext:
        state = self._state
        return StepContext(
            step_id=self._step.id,
            workflow_params=state.params,
            step_state=state.state,
            run=self._journal.name,
            visit=state.visit,
            iteration=state.iteration,
            attempt=state.attempt,
            feedback=state.feedback,
            port=self._this_visit(),
        )

    def _this_visit(self) -> Visit:
        if self._visit is None:
            self._visit = Visit(
                self._around, self._journal, self._outside, self._people, self._step.limits
            )
        return self._visit

    async def _within_time(self, step: StepDef, working: Any) -> Any:
        """Gives a handler its time, and the run and step their ceilings on it."""
        room = _room(self._state.limits.seconds, self._state.spend.seconds)
        step_room = _room(step.limits.seconds, self._state.visit_spend.seconds)
        ceiling = min((r for r in (room, step_room) if r is not None), default=None)
        if ceiling is None and step.timeout is None:
            return await working
        whole, own = asyncio.timeout(ceiling), asyncio.timeout(step.timeout)
        try:
            async with whole, own:
                return await working
        except TimeoutError:
            if whole.expired():
                await self._this_visit().abort()
                seconds = self._state.limits.seconds or step.limits.seconds
                raise CeilingReached(f"the ceiling of {seconds:g} seconds is reached") from None
            if own.expired():
                raise OutOfTime(
                    f"step {step.id!r} took longer than {step.timeout:g} seconds"
                ) from None
            raise

    async def _after_failure(self, problem: str) -> str:
        """Waits for what a failed handler left under way, for it is paid for.

        A journal that broke is the real reason, whatever the handler made of it.
        """
        visit = self._this_visit()
        visit.close()
        await visit.drain()
        if self._journal.error is not None:
            raise self._journal.error
        return problem

    def _diff(self, update: dict[str, Any]) -> Delta:
        try:
            return diff(self._state.state, update)
        except TypeError as error:
            raise NotSerialisable(f"step {self._step.id!r}: {error}") from error

    def _lookup(self, dotted: str) -> Any:
        found: Any = merged(self._state.state, self._delta)
        for part in dotted.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return found

    # Doing what was decided

    def _act(self, decision: Decision, fact: Fact) -> Stage | None:
        match decision:
            case Proceed(stage=Stage.GATE):
                if self._step.gate is not None or self._state.pending is not None:
                    self._journal.record(ev.StepWorked(self._the_outcome(), self._delta))
                return Stage.GATE
            case Proceed():
                return decision.stage
            case Retry():
                return self._retry(decision)
            case Wait():
                self._journal.record(
                    ev.Escalated(decision.problem, decision.way, self._outcome, self._delta)
                )
                return Stage.ESCALATED
            case Lift():
                self._journal.record(ev.LimitLifted(decision.way))
                self._journal.record(ev.StepWorked(self._the_outcome(), self._delta))
                return Stage.GATE
            case Move():
                self._leave(decision, fact)
                return Stage.ENTER
            case Finish():
                self._finish(decision, fact)
                return None
            case Limit():
                self._end_at(decision)
                return None
            case _:
                assert_never(decision)

    def _retry(self, decision: Retry) -> Stage:
        self._withdraw()
        opened = ev.AttemptOpened if decision.by_person else ev.AttemptFailed
        self._journal.record(opened(decision.feedback))
        self._visit = None
        self._outcome, self._delta = None, {}
        return Stage.WORK

    def _leave(self, move: Move, fact: Fact) -> None:
        self._withdraw()
        delta, outcome = self._result(move.way.name, fact)
        self._journal.record(
            ev.StepFinished(
                outcome,
                move.way.key,
                move.to,
                delta,
                move.iteration,
                move.way.counted,
                move.resets,
                move.feedback,
            )
        )

    def _finish(self, finish: Finish, fact: Fact) -> None:
        if finish.way is not None:
            delta, outcome = self._result(finish.way.name, fact)
            self._journal.record(
                ev.StepFinished(
                    outcome, finish.way.key, None, delta, self._state.iteration, finish.way.counted
                )
            )
        self._come_to_rest(finish.status, finish.reason)

    def _end_at(self, limit: Limit) -> None:
        # A handler that raised has produced nothing; a resume has to work it again.
        if self._outcome is not None:
            self._journal.record(ev.StepWorked(self._outcome, self._delta))
        self._come_to_rest(Status.LIMIT, limit.reason)

    def _result(self, way: str, fact: Fact) -> tuple[Delta, Outcome]:
        if way == ERROR and isinstance(fact, Raised):
            return {
                "set": {"_error": {"step": self._step.id, "message": fact.problem}}
            }, Outcome.FAIL
        delta = dict(self._delta)
        if isinstance(fact, Chosen) and way.startswith("gate:"):
            chosen = {"step": self._step.id, "option": fact.label, "input": fact.text}
            delta["set"] = {**delta.get("set", {}), "_gate": chosen}
        return delta, self._the_outcome()

    def _the_outcome(self) -> Outcome:
        return self._outcome or Outcome.OK

    def _withdraw(self) -> None:
        """Closes requests nobody needs answered any more."""
        waiting = any(
            record.kind.value == "wait" and not record.done
            for known in self._state.effects.values()
            for record in known.values()
        )
        if waiting:
            self._journal.withdraw_items()

    # Coming to rest

    def _come_to_rest(self, status: Status, reason: str, due_at: float | None = None) -> None:
        if status in FINAL:
            self._withdraw()
        self._journal.record(ev.RunStopped(status, reason, due_at))
        self._journal.release()

    async def _rest(self, suspension: Suspension) -> None:
        visit = self._this_visit()
        visit.close()
        await visit.drain()
        if self._journal.error is not None:
            raise self._journal.error
        self._come_to_rest(suspension.status, suspension.reason, suspension.due_at)

    async def _stopped(self) -> None:
        """Stops on request, or because the program around us is being stopped."""
        status, why = self._stop_as or (Status.INTERRUPTED, "interrupted")
        if self._visit is not None:
            await self._visit.abort()
        if self._journal.error is None:
            self._come_to_rest(status, why)
            await self._journal.durable()


def _engine_effect(key: str, attempt: int) -> Any:
    """Names a request of the engine's own, apart from any key a handler can use."""
    return f"!{key}#{attempt}"


def _room(ceiling: float | None, spent: float) -> float | None:
    return None if ceiling is None else max(0.0, ceiling - spent)


def _said(step: str, error: Exception) -> str:
    if isinstance(error, SignoffError):
        return str(error)
    return f"the handler of step {step!r} raised {type(error).__name__}: {error}"
