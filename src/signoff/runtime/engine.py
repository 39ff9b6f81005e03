"""The engine: starts, resumes and cancels runs on one store.

It owns what the runs of a process share: the group writer, the heartbeat, the agents
and their limits. Use it as `async with Engine(store) as engine: ...`.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Self

from signoff.core import errors, stop_reason
from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.digest import SHORT
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import PassOption, Resume, ShowRun
from signoff.core.requests import ItemState, default_answer
from signoff.core.run_state import RunState
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.runtime import ports
from signoff.runtime import store_port as port
from signoff.runtime.effect_errors import error_info
from signoff.runtime.effect_runner import check_prices
from signoff.runtime.environment import Secrets
from signoff.runtime.error_text import describe_error
from signoff.runtime.journal import GroupWriter, RunJournal
from signoff.runtime.owner import Heartbeat, is_alive, this_process
from signoff.runtime.paths import checked_name, current_folder, fresh_name
from signoff.runtime.performers import Performers
from signoff.runtime.process import end_processes
from signoff.runtime.result import RunResult
from signoff.runtime.runner import Runner
from signoff.runtime.services import AgentGate, Backoff, EngineServices
from signoff.runtime.store_port import folded_state

# Changes to a run that its user requests when it continues.


@dataclass(frozen=True)
class RunChanges:
    """How a run continues otherwise than it was started."""

    limits: Limits | None = None
    adopt: bool = False
    """Whether a changed definition is accepted."""
    switch: Mapping[str, str] = field(default_factory=dict)
    """Agents, and those that answer in their place from here on."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Corrections of parameters that no finished step has used."""

    @property
    def are_decisions(self) -> bool:
        """Whether they change what the run does, and not only how much it may cost."""
        return bool(self.adopt or self.switch or self.params)


def check_switch(services: EngineServices, switch: Mapping[str, str]) -> None:
    """Raises `UnknownName` if an agent is to be replaced by one that does not exist."""
    for to in switch.values():
        services.performers.agent(to)


def record_switch(journal: RunJournal, switch: Mapping[str, str]) -> None:
    """Records which agents answer in place of others from here on."""
    for agent, to in switch.items():
        journal.record(ev.AgentSwitched(agent, to))


def record_changes(
    store: port.Store,
    journal: RunJournal,
    row: port.RunRow,
    workflow: Workflow,
    changes: RunChanges,
) -> None:
    """Records changes of a run that was taken; `row` is from before that."""
    if row.definition != workflow.digest:
        store.adopt(journal.run, workflow.digest, workflow.definition_json)
        journal.record(ev.DefinitionAdopted(workflow.digest))
    if changes.params:
        journal.record(ev.ParamsCorrected(workflow.correct(changes.params, journal.state)))
    if changes.limits is not None:
        journal.record(ev.LimitsChanged(changes.limits.over(journal.state.limits).to_json()))
    record_switch(journal, changes.switch)


CANCEL_PATIENCE_SECONDS = 20.0
"""How long `cancel` waits for the process that drives a run to stop it."""

CANCEL_POLL_SECONDS = 0.05


class Engine:
    """Runs workflows durably."""

    def __init__(
        self,
        store: port.Store,
        *,
        agents: Mapping[str, ports.Agent] = ports.NO_AGENTS,
        clock: ports.Clock | None = None,
        observers: Sequence[ports.Observer] = (),
        files: ports.FilePort | None = None,
        agent_limits: Mapping[str, ports.AgentLimits] | None = None,
        limits: Limits | None = None,
        roles: Mapping[str, str] | None = None,
        default_roles: Mapping[str, str] | None = None,
        backoff: Backoff | None = None,
        pass_env: Sequence[str] = (),
        secrets: Secrets | None = None,
        presence: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock or ports.SystemClock()
        self._limits = limits or Limits()
        gates = {n: AgentGate(each, self._clock) for n, each in (agent_limits or {}).items()}
        self._owner = this_process()
        self._heartbeat = Heartbeat(store, self._owner, self._clock, self._cancel_asked)
        secrets = Secrets.of(os.environ) if secrets is None else secrets
        self._services = EngineServices(
            store=store,
            clock=self._clock,
            performers=Performers(agents, roles or {}, files, pass_env, secrets),
            gates=gates,
            observers=tuple(observers),
            backoff=backoff or Backoff(),
            default_roles=default_roles or {},
            presence=presence,
        )
        self._writer = GroupWriter(store, self._clock)
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Returns the engine."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Closes the engine."""
        await self.close()

    async def close(self) -> None:
        """Waits for the last commit and ends the heartbeat; it does not stop runs."""
        await self._writer.close()
        self._heartbeat.stop()

    async def start(
        self,
        workflow: Workflow,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        limits: Limits | None = None,
        target: str = "",
        switch: Mapping[str, str] | None = None,
        needs: Sequence[str] | None = None,
    ) -> RunResult:
        """Starts a run and drives it to its end or its next wait.

        `switch` maps agents to those that answer in their place in this run. With `needs`, it is
        not driven here but queued for a worker that can do all of that.
        """
        services = self._services_for(workflow)
        values = workflow.bind(params or {})
        check_switch(services, switch or {})
        # The limits of the run go before those of the workflow, and these before the settings.
        effective = (limits or Limits()).over(workflow.limits).over(self._limits)
        await check_prices(services, workflow, effective, switch or {})
        values |= prepared_params(workflow, values, services.performers.secrets)
        self._heartbeat.start()
        new = port.NewRun(
            name=checked_name(name) if name is not None else fresh_name(workflow.name),
            workflow=workflow.name,
            target=target,
            definition=workflow.digest,
            description=workflow.definition_json,
            created_at=self._clock.now(),
            owner=self._owner.id,
            needs=None if needs is None else tuple(needs),
        )
        journal = self._journal(new.name, new)
        entry, spend_limits = workflow.entry_point, effective.to_json()
        started = ev.RunStarted(
            new.workflow,
            new.definition,
            entry,
            values,
            spend_limits,
            token_hex(8),
            current_folder(),
        )
        journal.record(started)
        record_switch(journal, switch or {})
        if needs is not None:
            await _stop(journal, Status.QUEUED, None)
            return self._result(journal.name, journal.state)
        await journal.durable()
        return await self._drive(workflow, journal, {})

    async def resume(
        self,
        name: str,
        workflow: Workflow,
        *,
        limits: Limits | None = None,
        adopt: bool = False,
        switch: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        token: port.DispatchToken | None = None,
    ) -> RunResult:
        """Resumes a run where it stopped and drives it on; a finished one returns its result.

        `switch` maps agents to those that answer in their place from here on; `params` corrects
        parameters that no finished step has used. `token` is the attempt of a dispatcher.
        """
        row = self._store.row(name)
        self.store_late_replies(row)
        if row.status in FINAL:
            return self._result(name, self._stored_state(name))
        changes = RunChanges(limits, adopt, switch or {}, params or {})
        journal = self._take_changed(row, workflow, changes, token)
        if journal.state.status in FINAL:
            # Another process finished it after we read the row and before we took the lease.
            return self._result(name, journal.state)
        await end_processes(journal.state)
        record_changes(self._store, journal, row, workflow, changes)
        items = self._live_items(name)
        journal.record(ev.RunResumed(ready_at(row, items.values(), self._clock.now())))
        return await self._drive(workflow, journal, items)

    async def change(self, name: str, workflow: Workflow, changes: RunChanges) -> None:
        """Records how a run is to continue, without driving it."""
        row = self._store.row(name)
        journal = self._take_changed(row, workflow, changes)
        record_changes(self._store, journal, row, workflow, changes)
        journal.release()
        await journal.durable()

    async def fail(self, name: str, error: errors.SignoffError) -> None:
        """Records that a run cannot continue; a resume tries again."""
        journal = self._take(self._store.row(name))
        if journal.state.status not in FINAL:
            why = stop_reason.StepError(journal.state.step or "", error_info(error))
            await _stop(journal, Status.FAILED, why)

    async def hold(self, name: str, why: str) -> None:
        """Records that a run rests until a human has done something outside of it."""
        journal = self._take(self._store.row(name))
        if journal.state.status not in FINAL:
            await _stop(journal, Status.INTERRUPTED, stop_reason.ProcessStopped(why))

    async def cancel(self, name: str, why: str = "") -> Status:
        """Cancels a run; returns after all its processes have ended."""
        until = time.monotonic() + CANCEL_PATIENCE_SECONDS
        while (row := self._store.row(name)).status not in FINAL:
            if name in self._tasks:
                self._cancel_asked(name, why)
                await asyncio.wait({self._tasks[name]})
                continue
            try:
                journal = self._take(row)
            except errors.RunBusy:
                await self._ask_to_cancel(row, why, until)
                continue
            if journal.state.status in FINAL:
                # It ended after we read the row and before we took the lease.
                return journal.state.status
            await end_processes(journal.state)
            journal.withdraw_items()
            await _stop(journal, Status.CANCELLED, stop_reason.Cancelled(why))
            return Status.CANCELLED
        return row.status

    def interrupt(self, why: str = "", status: Status = Status.INTERRUPTED) -> set[str]:
        """Stops every run of this process and returns their names.

        Each can be resumed; with the status queued, a worker does that.
        """
        for runner in self._runners.values():
            runner.stop(status, stop_reason.ProcessStopped(why))
        return {*self._runners}

    # Working for others

    def register(self, slots: int, capabilities: Iterable[str]) -> int:
        """Lists this process as a worker until the engine is closed; returns its number."""
        number = self._store.register(self._owner, slots, capabilities)
        self._heartbeat.start(announce=False)
        return number

    def claim(self, capabilities: Iterable[str], limit: int) -> list[port.RunRow]:
        """Returns runs that were handed over and now belong to this process; resume each."""
        return self._store.claim(self._owner, capabilities, is_alive, limit)

    def store_late_replies(self, row: port.RunRow) -> None:
        """Stores replies that arrived here while the store could not be written."""
        self._services.late_replies.move_to(self._store, row.id)

    def owns(self, row: port.RunRow) -> bool:
        """Tells whether a run belongs to this process, as far as the store knows."""
        return row.owner == self._owner.id

    def _services_for(self, workflow: Workflow) -> EngineServices:
        """Returns the services for the runs of a workflow, which may bring agents of its own."""
        if not workflow.agents:
            return self._services
        performers = self._services.performers
        agents = {**workflow.agents, **performers.agents}
        return replace(self._services, performers=replace(performers, agents=agents))

    def _take_changed(
        self,
        row: port.RunRow,
        workflow: Workflow,
        changes: RunChanges,
        token: port.DispatchToken | None = None,
    ) -> RunJournal:
        """Takes a run that continues with some changes.

        Wrong options are refused before the run is taken: a mistake must not touch it.
        """
        if row.name in self._tasks:
            raise errors.RunBusy(f"run {row.name!r} is already being driven by this process")
        check_definition(row, workflow, adopt=changes.adopt)
        if changes.params:
            workflow.correct(changes.params, self._stored_state(row.name))
        check_switch(self._services_for(workflow), changes.switch)
        return self._take(row, token)

    # Driving

    async def _drive(
        self, workflow: Workflow, journal: RunJournal, inbox: Mapping[str, port.InboxItem]
    ) -> RunResult:
        services = self._services_for(workflow)
        while True:
            runner = Runner(services, workflow, journal, inbox)
            task = asyncio.get_running_loop().create_task(runner.drive())
            self._runners[journal.name], self._tasks[journal.name] = runner, task
            try:
                await task
            finally:
                del self._runners[journal.name], self._tasks[journal.name]
            if not journal.wake:
                return self._result(journal.name, journal.state)
            # An answer arrived while the run was about to wait. The commit that would have parked
            # the run saw it and did not give up the lease, so that the answer is used right away.
            journal.wake = False
            previous, inbox = _answered(inbox), self._live_items(journal.name)
            if _answered(inbox) <= previous:
                # There is no new answer: the step ignores those it has, and would loop forever.
                unused = tuple(sorted(_answered(inbox)))
                why = stop_reason.AnswersUnused(journal.state.step or "", unused)
                await _stop(journal, Status.FAILED, why)
                return self._result(journal.name, journal.state)
            journal.record(ev.RunResumed())

    def _take(self, row: port.RunRow, token: port.DispatchToken | None = None) -> RunJournal:
        # From here on the store refuses commits of the previous owner, which have a lower fence.
        # Only what is loaded now counts: that owner could write until this moment.
        fence = self._store.take(row.id, self._owner, is_alive, token=token)
        self._heartbeat.start(announce=False)
        journal = self._journal(row.name)
        journal.continue_from(self._store.load(row.name), fence, self._store.blob)
        return journal

    def _stored_state(self, name: str) -> RunState:
        return folded_state(self._store.load(name), self._store.blob)

    def _journal(self, name: str, new: port.NewRun | None = None) -> RunJournal:
        secrets = self._services.performers.secrets
        journal = RunJournal(name, self._writer, self._clock, secrets, new)
        if self._services.observers:
            notify = self._services.notify
            journal.notify = lambda seq, events: notify(ports.Recorded(name, events, seq))
        return journal

    def _live_items(self, name: str) -> dict[str, port.InboxItem]:
        """Returns a run's open and answered requests, with defaults for passed deadlines."""
        items = {}
        now = self._clock.now()
        for item in self._store.items(name, state=(ItemState.OPEN, ItemState.ANSWERED)):
            if item.state == ItemState.OPEN and item.deadline is not None and item.deadline <= now:
                form = decode(item.form, self._store.blob)
                answer = json.dumps(default_answer(form))
                # If a human has answered in the last moment, that answer counts.
                with suppress(errors.InvalidAnswer):
                    self._store.answer(item.id, answer, "deadline", now, item.digest)
                item = self._store.item(item.id)
            items[item.effect] = item
        return items

    def _result(self, name: str, state: RunState) -> RunResult:
        waiting = self._store.items(name) if state.status is Status.WAITING else []
        return RunResult.of(name, state, waiting)

    # Cancelling

    def _cancel_asked(self, run: str, why: str) -> None:
        runner = self._runners.get(run)
        if runner is not None:
            runner.stop(Status.CANCELLED, stop_reason.Cancelled(why))

    async def _ask_to_cancel(self, row: port.RunRow, why: str, until: float) -> None:
        """Requests the process that drives a run to stop it, and waits a moment."""
        if row.cancel is None:
            self._store.ask_cancel(row.id, why)
        if time.monotonic() > until:
            raise errors.RunBusy(
                f"run {row.name!r} was asked to stop, but its process has not done so yet",
                remedy=ShowRun(row.name),
            )
        await asyncio.sleep(CANCEL_POLL_SECONDS)


async def _stop(journal: RunJournal, status: Status, why: stop_reason.StopReason | None) -> None:
    """Records that a run stopped, and gives up its lease."""
    journal.record(ev.RunStopped.because(status, why))
    journal.release()
    await journal.durable()


def _answered(inbox: Mapping[str, port.InboxItem]) -> Set[int]:
    return {item.id for item in inbox.values() if item.state == ItemState.ANSWERED}


def ready_at(row: port.RunRow, items: Iterable[port.InboxItem], now: float) -> float | None:
    """Returns when a run began to wait for a worker; None if it did not wait for one.

    A run that a dead process left behind has no such time: when it died is unknown.
    """
    if row.needs is None:
        return None
    match row.status:
        case Status.QUEUED:
            return row.updated_at
        case Status.PARKED | Status.WAITING:
            times = [item.answered_at for item in items if item.answered_at is not None]
            if row.due_at is not None and row.due_at <= now:
                times.append(row.due_at)
            return min(times, default=None)
        case _:
            return None


def check_definition(row: port.RunRow, workflow: Workflow, *, adopt: bool) -> None:
    """Refuses to continue a run with a changed definition, unless the user adopts it."""
    name = row.name
    if row.definition != workflow.digest and not adopt:
        if workflow.name != row.workflow:
            raise errors.DefinitionChanged(
                f"run {name!r} belongs to workflow {row.workflow!r}, not to {workflow.name!r}; "
                "to resume it with that one anyway, adopt it",
                remedy=PassOption("adopt"),
            )
        raise errors.DefinitionChanged(
            f"run {name!r} was started with definition {row.definition[:SHORT]}, and "
            f"{workflow.name!r} is now {workflow.digest[:SHORT]}",
            remedy=Resume(name, adopt=True),
        )
    if row.step is not None and row.step not in workflow.steps:
        raise errors.DefinitionChanged(
            f"run {name!r} is in step {row.step!r}, which {workflow.name!r} no longer has; "
            "restore that step, or start a new run"
        )


# Calls a workflow's `prepare` before a run starts.
#
# Whatever goes wrong in it is raised while nothing of the run exists: no journal, no directory and
# no request. So a run is either started with everything it needs, or not at all.


def prepared_params(
    workflow: Workflow, params: Mapping[str, Any], secrets: Secrets
) -> dict[str, Any]:
    """Returns what a workflow prepares for a run, to be recorded with the run's parameters."""
    if workflow.prepare is None:
        return {}
    try:
        prepared: Any = workflow.prepare(params)
    except errors.SignoffError:
        raise
    except Exception as error:
        # The author's own code may raise anything.
        what = f"preparing workflow {workflow.name!r} raised {describe_error(error)}"
        raise errors.HandlerFailed(what) from error
    if not isinstance(prepared, Mapping):
        kind = type(prepared).__name__
        raise errors.BadHandlerResult(
            f"prepare of workflow {workflow.name!r} returned a {kind}, not a dict"
        )
    # A parameter that was left open, without a value of its own, may be prepared.
    if taken := sorted(name for name in prepared if params.get(name) is not None):
        raise errors.BadHandlerResult(
            f"prepare of workflow {workflow.name!r} returned parameters that the run has already: "
            f"{', '.join(taken)}"
        )
    for name, value in prepared.items():
        if variable := secrets.name_in(value):
            raise errors.UsageError(
                f"{name} contains the value of {variable}, which would be stored; take it out"
            )
    return dict(prepared)
