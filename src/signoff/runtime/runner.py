"""Drives one run: observes a fact, asks the rules what follows, does that, again.

The loop is all there is: no recursion, no decision of its own. An `Attempt` finds out
how things stand at a stage, `decide` (in core) says what follows, `_act` records it. A
suspension anywhere below ends the loop with the run at rest and everything recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from signoff.core import events as ev
from signoff.core.delta import Delta
from signoff.core.edges import ERROR
from signoff.core.effects import EffectKind
from signoff.core.outcome import FINAL, Outcome, Status
from signoff.core.run_state import Stage
from signoff.core.step import StepDef
from signoff.core.stop_reason import ProcessStopped, StepError, StopReason
from signoff.core.transitions import (
    Chosen,
    Decision,
    Fact,
    Finish,
    Lift,
    Limit,
    Move,
    Position,
    Proceed,
    Raised,
    Retry,
    Wait,
    answers,
    decide,
)
from signoff.core.workflow import Workflow
from signoff.errors import UnmappedOutcome
from signoff.runtime.attempt import Attempt
from signoff.runtime.attempt_effects import AttemptEffects
from signoff.runtime.effect_runner import EffectRunner
from signoff.runtime.handler_errors import error_info
from signoff.runtime.handlers import BoundHandler, bound_handler
from signoff.runtime.journal import RunJournal
from signoff.runtime.run_inbox import ApprovedFiles, RunInbox
from signoff.runtime.services import EngineServices
from signoff.runtime.store_port import InboxItem
from signoff.runtime.suspension import Outdated, Suspension

DEAF_SECONDS = 0.1
"""How long a run may go on without looking whether it is asked to stop."""


class Runner:
    """Drives a run until it rests."""

    def __init__(
        self,
        services: EngineServices,
        workflow: Workflow,
        journal: RunJournal,
        inbox: Mapping[str, InboxItem],
    ) -> None:
        self._services = services
        self._workflow = workflow
        self._journal = journal
        self._state = journal.state
        self._effect_runner = EffectRunner(services, journal)
        files = services.performers.files
        approved = None if files is None else ApprovedFiles(services.store, files)
        self._people = RunInbox(journal, services.clock, inbox, approved)
        self._bound_handlers: dict[str, BoundHandler] = {}
        self._attempt = self._new_attempt()
        self._stop_as: tuple[Status, StopReason] | None = None
        self._task: asyncio.Task[Any] | None = None

    async def drive(self) -> None:
        """Goes on until the run rests, with everything recorded and durable."""
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

    def stop(self, status: Status, why: StopReason) -> None:
        """Makes the run stop here: effects under way are ended, the rest is kept."""
        if self._stop_as is not None:
            return
        self._stop_as = (status, why)
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
        heard = clock.monotonic()
        while stage is not None:
            if clock.monotonic() - heard > DEAF_SECONDS:
                await self._hear()
                heard = clock.monotonic()
            if stage is Stage.ENTER and not self._attempt.step.preconditions:
                stage = Stage.WORK
            options = answers(self._position(stage)) if stage is Stage.ESCALATED else ()
            try:
                fact = await self._attempt.observe(stage, options)
            except Outdated:
                stage = await self._begin_anew()
                continue
            try:
                decision = decide(self._position(stage), fact)
            except UnmappedOutcome as error:
                decision = Finish(
                    Status.FAILED, StepError(self._attempt.step.id, error_info(error))
                )
            stage = self._act(decision, fact)

    async def _hear(self) -> None:
        """Lets requests to stop come in: a handler that held the loop kept them from us.

        One turn to tell whoever waits for the run, one to tell the run, and one to obey.
        """
        for _ in range(3):
            await asyncio.sleep(0)

    def _position(self, stage: Stage) -> Position:
        state = self._state
        return Position(
            workflow=self._workflow,
            step=self._attempt.step.id,
            stage=stage,
            attempt=state.attempt - state.replaced,
            iteration=state.iteration,
            counters=state.counters,
            outcome=self._attempt.outcome,
            way=state.pending.way if state.pending is not None else "",
        )

    def _new_attempt(self) -> Attempt:
        found = self._bound_handler(self._workflow[self._state.step or ""])
        visit = AttemptEffects(
            self._services,
            self._journal,
            self._effect_runner,
            self._people,
            found.step.limits,
            self._workflow.roles,
        )
        return Attempt(found, self._journal, self._people, visit)

    def _bound_handler(self, step: StepDef) -> BoundHandler:
        if step.id not in self._bound_handlers:
            self._bound_handlers[step.id] = bound_handler(self._workflow, step, self._state.params)
        return self._bound_handlers[step.id]

    # Doing what was decided

    def _act(self, decision: Decision, fact: Fact) -> Stage | None:
        match decision:
            case Proceed():
                return self._proceed(decision.stage)
            case Retry():
                return self._retry(decision)
            case Wait():
                return self._escalate(decision)
            case Lift():
                self._journal.record(ev.LimitLifted(decision.way))
                self._hold_back()
                return Stage.GATE
            case Move():
                return self._leave(decision, fact)
            case Finish():
                self._finish(decision, fact)
            case Limit():
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
        """Records what the step produced; it counts once the step is left."""
        self._journal.record(ev.StepWorked(self._outcome, self._attempt.delta))

    def _retry(self, decision: Retry) -> Stage:
        self._withdraw()
        self._journal.record(
            ev.AttemptOpened(decision.feedback)
            if decision.by_person
            else ev.AttemptFailed(decision.feedback, decision.late)
        )
        self._attempt.visit.end()
        self._attempt = self._new_attempt()
        return Stage.WORK

    async def _begin_anew(self) -> Stage:
        """Works a step from its top again: what was recorded does not fit what it asks for."""
        await self._attempt.visit.abort()
        if self._journal.error is not None:
            raise self._journal.error
        self._withdraw()
        self._journal.record(ev.AttemptReplaced())
        self._attempt.visit.end()
        self._attempt = self._new_attempt()
        return self._state.stage

    def _escalate(self, wait: Wait) -> Stage:
        attempt = self._attempt
        # Where a loop may not go on, the step that wanted to knows best what is left to do.
        problem = str((wait.way and attempt.reason) or wait.problem)
        # The attempt is over; what it asked of people is asked again, should there be another.
        self._withdraw()
        self._journal.record(ev.Escalated(problem, wait.way, attempt.outcome, attempt.delta))
        return Stage.ESCALATED

    def _leave(self, move: Move, fact: Fact) -> Stage:
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
        self._attempt.visit.end()
        self._attempt = self._new_attempt()
        return Stage.ENTER

    def _finish(self, finish: Finish, fact: Fact) -> None:
        if finish.way is not None:
            self._withdraw()
            delta, outcome = self._result(finish.way.name, fact)
            way, iteration = finish.way, self._state.iteration
            self._journal.record(
                ev.StepFinished(outcome, way.key, None, delta, iteration, way.counted)
            )
        self._come_to_rest(finish.status, finish.reason or self._attempt.reason)

    def _end_at(self, limit: Limit) -> None:
        # A handler that raised has produced nothing; a resume has to work it again.
        if self._attempt.outcome is not None:
            self._hold_back()
        detail = str(self._attempt.reason or "")
        self._come_to_rest(Status.LIMIT, replace(limit.reason, detail=detail))

    def _result(self, way: str, fact: Fact) -> tuple[Delta, Outcome]:
        step = self._attempt.step.id
        if way == ERROR and isinstance(fact, Raised):
            return {"set": {"_error": {"step": step, "message": fact.problem}}}, Outcome.FAIL
        delta = self._attempt.delta
        if isinstance(fact, Chosen) and way.startswith("gate:"):
            chosen = {"step": step, "option": fact.label, "input": fact.text}
            delta = {**delta, "set": {**delta.get("set", {}), "_gate": chosen}}
        return delta, self._outcome

    @property
    def _outcome(self) -> Outcome:
        return self._attempt.outcome or Outcome.OK

    def _withdraw(self) -> None:
        """Closes requests nobody needs answered any more."""
        for known in self._state.effects.values():
            for record in known.values():
                if record.kind is EffectKind.WAIT and not record.done:
                    self._journal.withdraw_items()
                    return

    # Coming to rest

    def _come_to_rest(
        self, status: Status, reason: StopReason | None, due_at: float | None = None
    ) -> None:
        self._attempt.visit.end()
        if status in FINAL:
            self._withdraw()
        self._journal.record(ev.RunStopped.because(status, reason, due_at))
        self._journal.release()

    async def _rest(self, suspension: Suspension) -> None:
        await self._attempt.drain()
        if self._journal.error is not None:
            raise self._journal.error
        self._come_to_rest(suspension.status, suspension.reason, suspension.due_at)

    async def _stopped(self) -> None:
        """Stops on request, or because the program around us is being stopped."""
        status, why = self._stop_as or (Status.INTERRUPTED, ProcessStopped())
        self._effect_runner.close()
        await self._attempt.visit.abort()
        if self._journal.error is None:
            if self._state.status is Status.RUNNING:
                self._come_to_rest(status, why)
            await self._journal.durable()
