"""Drives one run in a loop: observe a fact, decide what follows, record it, repeat.

The runner makes no decisions. An `Attempt` observes what happens at a stage, `decide` (in core)
returns what follows, and `_act` records it as events. There is no recursion, so a run may have
any number of steps. A suspension raised anywhere below (a wait for a human, a reached limit, a
quota) ends the loop: the effects in progress are awaited, the reason is recorded, and the lease
is given up. The next process continues from the recorded stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from signoff.core import events as ev
from signoff.core import transitions
from signoff.core.delta import Delta
from signoff.core.edges import ERROR
from signoff.core.effects import EffectKind
from signoff.core.outcome import FINAL, Outcome, Status
from signoff.core.run_state import Stage
from signoff.core.stop_reason import ProcessStopped, StepError, StopReason
from signoff.core.workflow import Workflow
from signoff.errors import UnmappedOutcome
from signoff.runtime.attempt import Attempt
from signoff.runtime.attempt_effects import AttemptEffects
from signoff.runtime.effect_errors import error_info
from signoff.runtime.effect_runner import EffectRunner
from signoff.runtime.handlers import BoundHandler, bound_handler
from signoff.runtime.journal import RunJournal
from signoff.runtime.run_inbox import ApprovedFiles, RunInbox
from signoff.runtime.services import EngineServices
from signoff.runtime.store_port import InboxItem
from signoff.runtime.suspension import Outdated, Suspension

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
        self._bound_handlers: dict[str, BoundHandler] = {}
        self._attempt = self._new_attempt()
        self._stop_as: tuple[Status, StopReason] | None = None
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

    def stop(self, status: Status, why: StopReason) -> None:
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
                await self._poll_stop_requests()
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
            except UnmappedOutcome as error:
                decision = transitions.Finish(
                    Status.FAILED, StepError(self._attempt.step.id, error_info(error))
                )
            stage = self._act(decision, fact)

    async def _poll_stop_requests(self) -> None:
        """Lets requests to stop arrive: handlers that never await keep them out.

        It takes three ticks: one delivers the request, one cancels the task, one raises in it.
        """
        for _ in range(3):
            await asyncio.sleep(0)

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
            bound = bound_handler(self._workflow, step, self._state.params)
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
        self, status: Status, reason: StopReason | None, due_at: float | None = None
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
        status, why = self._stop_as or (Status.INTERRUPTED, ProcessStopped())
        # Effects whose start is recorded but not yet committed must not start anymore.
        self._effect_runner.close()
        await self._attempt.effects.abort()
        if self._journal.error is None:
            if self._state.status is Status.RUNNING:
                self._come_to_rest(status, why)
            await self._journal.durable()
