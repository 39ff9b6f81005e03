"""Performs an effect durably: recorded before it starts and after it ends.

Nothing goes outside before its start is committed. Passing faults are met with
patience, each further attempt recorded and counted like the first. A runner that lost
its run while a call was under way keeps the paid reply aside for the new owner.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import Effect, EffectId, Kind, Reply
from signoff.core.spend import Limits, Usage
from signoff.errors import (
    AgentBadOutput,
    AgentQuota,
    AgentStopped,
    AgentTransient,
    Fenced,
    SignoffError,
    StoreError,
)
from signoff.runtime.agent_limits import AgentGate
from signoff.runtime.ceilings import Ceilings, check_price
from signoff.runtime.faults import EFFECT_ERRORS, FREE, costing, fault_to_json, usage_of
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Call, Progress, Retrying, idempotency_key
from signoff.runtime.surroundings import Surroundings
from signoff.runtime.suspension import ParkedUntil

PROMPT_COMMIT_SECONDS = 0.005
"""A reply that took longer is committed before its handler goes on: what was dear is safe
even if the handler then blocks. A quicker one shares the commit of what follows it."""

QUOTA_PAUSE_SECONDS = 900.0
"""How long a run is parked when an agent is out of quota and does not say until when."""


class Errand(NamedTuple):
    """One effect on its way outside."""

    ctx: StepContext
    id: EffectId
    effect: Effect
    digest: str
    limits: Limits
    """Of the step; the run's are in its state."""
    attempt: int = 1


class Outside:
    """The way out of a run."""

    def __init__(self, around: Surroundings, journal: RunJournal) -> None:
        self._around = around
        self._journal = journal
        self._ceilings = Ceilings()
        self._closed = False

    def close(self) -> None:
        """Lets nothing more begin: the run is being stopped."""
        self._closed = True

    def perform(self, errand: Errand) -> Coroutine[Any, Any, Any]:
        """Begins an effect, at once where nothing is in its way, and returns the rest of it."""
        gate = self._gate(errand.effect)
        if gate is not None:
            return self._through(gate, errand)
        if errand.limits or self._journal.state.limits:
            return self._tries(errand)
        # Recorded here and now, so that it shares the commit of whatever led to it.
        started = self._start(errand, errand.attempt, None)
        self._reserve(errand)
        return self._tries(errand, started)

    def _gate(self, effect: Effect) -> AgentGate | None:
        return self._gate_of(effect.payload["agent"]) if effect.kind is Kind.ASK else None

    def _gate_of(self, agent: str) -> AgentGate | None:
        gates = self._around.gates
        return gates.get(self._around.performers.played_by(agent)) if gates else None

    def _slot(self, agent: str) -> AbstractAsyncContextManager[None]:
        gate = self._gate_of(agent)
        return gate.slot() if gate is not None else nullcontext()

    def _attempts(self, effect: Effect) -> int:
        gate = self._gate(effect)
        return (gate.attempts if gate else None) or self._around.backoff.attempts

    async def _through(self, gate: AgentGate, errand: Errand) -> Any:
        async with gate.slot():
            return await self._tries(errand)

    async def _tries(self, errand: Errand, started: int | None = None) -> Any:
        """Performs an effect, meeting passing faults with patience.

        `started` is the number of its first start in the journal, if that is recorded already.
        """
        lost: Usage | None = None
        attempt, last = errand.attempt, errand.attempt + self._attempts(errand.effect) - 1
        while True:
            if started is None:
                started = await self._begin(errand, attempt, lost)
            try:
                return await self._finish(errand, attempt, started)
            except AgentTransient as error:
                if attempt >= last:
                    raise self.failed(errand, attempt, error) from error
                lost = usage_of(error)
                chance = random.random()  # noqa: S311  # spread
                pause = self._around.backoff.pause(attempt, chance, error.after)
                self._around.tell(Retrying(self._journal.name, errand.id, str(error), pause))
            except EFFECT_ERRORS as error:
                raise self.failed(errand, attempt, error) from error
            finally:
                if errand.effect.kind is Kind.ASK:
                    self._ceilings.leave()
            await self._around.clock.sleep(pause)
            if gate := self._gate(errand.effect):
                await gate.pace()
            attempt, started = attempt + 1, None

    async def _begin(self, errand: Errand, attempt: int, lost: Usage | None) -> int:
        state = self._journal.state
        if errand.effect.kind is Kind.ASK:
            asked = errand.effect.payload
            for whose, limits in (("run", state.limits), ("step", errand.limits)):
                await check_price(
                    self._around.performers, limits, asked["agent"], asked.get("model", ""), whose
                )
            await self._ceilings.fit(
                asked["agent"],
                [("run", state.limits, state.spend), ("step", errand.limits, state.visit_spend)],
            )
        started = self._start(errand, attempt, lost)
        self._reserve(errand)
        return started

    def _reserve(self, errand: Errand) -> None:
        # Only calls cost anything; a program under way must not hold one back.
        if errand.effect.kind is Kind.ASK:
            self._ceilings.enter()

    async def _finish(self, errand: Errand, attempt: int, started: int) -> Any:
        out = False
        try:
            await self._journal.durable(started)
            if self._closed:
                raise asyncio.CancelledError
            began = self._around.clock.monotonic()
            call, out = self._call(errand, attempt), True
            reply, usage = await self._around.performers.perform(errand.effect, call)
        except asyncio.CancelledError:
            # Ended by us, so nothing is in doubt but the bill; what never went out has none.
            if (errand.effect.kind is Kind.ASK or not out) and self._journal.error is None:
                self.failed(errand, attempt, costing(AgentStopped(), None if out else FREE))
            raise
        end = ev.EffectFinished(errand.id, reply, usage=usage.to_json() if usage else None)
        self._end(errand, attempt, end)
        self.learn(errand.effect, usage)
        if errand.effect.kind is Kind.ASK:
            self._ceilings.heard(errand.effect.payload["agent"], usage)
        if self._around.clock.monotonic() - began > PROMPT_COMMIT_SECONDS:
            await self._journal.durable()
        return reply_of(errand.effect.kind, reply)

    def given(self, errand: Errand, reply: Reply) -> Any:
        """Records a reply that came another way, such as from a person."""
        self._start(errand, errand.attempt, None)
        usage = reply.usage
        data = reply.to_json()
        self._journal.record(
            ev.EffectFinished(errand.id, data, usage=usage.to_json() if usage else None)
        )
        self.learn(errand.effect, usage)
        return reply_of(errand.effect.kind, data)

    def given_up(self, errand: Errand, why: str) -> BaseException:
        """Records that whoever works from outside could not do it; returns what to raise."""
        self._start(errand, errand.attempt, None)
        # Content that is not there: the next attempt, which knows the reason, may do better.
        return self.failed(errand, errand.attempt, costing(AgentBadOutput(why), FREE))

    def _start(self, errand: Errand, attempt: int, lost: Usage | None) -> int:
        effect = errand.effect
        payload: dict[str, Any] | None = effect.payload
        if attempt > 1:
            self.learn(effect, lost)
            before = self._journal.state.effect(errand.id)
            if before is not None and before.agent == effect.payload.get("agent", ""):
                payload = None  # recorded with the first try
        return self._journal.record(
            ev.EffectStarted(
                errand.id,
                effect.kind,
                errand.digest,
                payload,
                attempt,
                effect.on_crash.value,
                lost.to_json() if lost is not None else None,
            )
        )

    def _call(self, errand: Errand, attempt: int) -> Call:
        name, step = self._journal.name, errand.ctx.step_id
        state = self._journal.state

        def emit(text: str) -> None:
            self._around.tell(Progress(name, step, errand.id, text))

        def started(process: dict[str, Any]) -> None:
            self._journal.record(ev.EffectRunning(errand.id, process))

        asked = errand.effect.payload.get("agent", "")
        return Call(
            name, errand.id, attempt, emit, started, step, asked,
            errand.ctx.visit, state.attempt, state.seed, state.folder, self._slot,
        )  # fmt: skip

    def failed(self, errand: Errand, attempt: int, error: SignoffError) -> BaseException:
        """Records a failure and returns what the handler is to see of it."""
        usage = usage_of(error)
        cost = usage.to_json() if usage is not None else None
        end = ev.EffectFinished(errand.id, error=fault_to_json(error), usage=cost)
        self._end(errand, attempt, end)
        self.learn(errand.effect, usage)
        if not isinstance(error, AgentQuota):
            return error
        pause = self._around.clock.now() + QUOTA_PAUSE_SECONDS
        until = error.until.timestamp() if error.until else pause
        return ParkedUntil(f"out of quota: {error}", until)

    def learn(self, effect: Effect, usage: Usage | None) -> None:
        """Lets the ceilings know what one ended call cost."""
        if effect.kind is Kind.ASK:
            self._ceilings.learn(usage)

    def key(self, errand: Errand) -> str:
        """Names an effect for good: the same in every attempt at it, and in no other place."""
        ctx, attempt = errand.ctx, self._journal.state.attempt
        return idempotency_key(self._journal.name, ctx.step_id, ctx.visit, attempt, errand.id)

    def _end(self, errand: Errand, attempt: int, end: ev.EffectFinished) -> None:
        keep = partial(self._keep_late, errand, self._journal.state.attempt, attempt, end)
        try:
            self._journal.record(end, keep)
        except Fenced:
            keep()
            raise

    def _keep_late(
        self, errand: Errand, step_attempt: int, attempt: int, end: ev.EffectFinished
    ) -> None:
        kept = {"reply": end.reply, "error": end.error, "usage": end.usage}
        place = (errand.ctx.step_id, errand.ctx.visit, step_attempt, errand.id)
        key = idempotency_key(self._journal.name, *place)
        # What cannot be kept is asked for again: dear, but not wrong.
        with suppress(StoreError):
            self._around.store.keep_late(self._journal.run, key, attempt, json.dumps(kept))
