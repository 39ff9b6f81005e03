"""Performs an effect durably: recorded before it starts and after it ends.

Nothing goes outside before its start is committed. Passing faults are met with
patience, each further attempt recorded and counted like the first. A runner that lost
its run while a call was under way keeps the paid reply aside for the new owner.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import Effect, EffectId, EffectKind, Reply
from signoff.core.spend import Limits, Spend, Usage
from signoff.core.stop_reason import QuotaExhausted
from signoff.errors import (
    AgentBadOutput,
    AgentError,
    AgentQuota,
    AgentStopped,
    AgentTransient,
    LeaseLost,
    SignoffError,
    StoreError,
)
from signoff.remedies import Scope
from signoff.runtime.agent_limits import AgentGate
from signoff.runtime.earlier_calls import earlier_calls
from signoff.runtime.effect_errors import EFFECT_ERRORS, FREE, error_to_json, usage_of, with_usage
from signoff.runtime.handler_errors import error_info
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Call, EarlierCall, Progress, Retrying, idempotency_key
from signoff.runtime.services import EngineServices
from signoff.runtime.spend_limits import SpendLimiter, check_price
from signoff.runtime.suspension import ParkedUntil

PROMPT_COMMIT_SECONDS = 0.005
"""A reply that took longer is committed before its handler goes on: what was dear is safe
even if the handler then blocks. A quicker one shares the commit of what follows it."""

QUOTA_PAUSE_SECONDS = 900.0
"""How long a run is parked when an agent is out of quota and does not say until when."""


class EffectCall(NamedTuple):
    """One effect on its way outside."""

    ctx: StepContext
    id: EffectId
    effect: Effect
    digest: str
    limits: Limits
    """Of the step; the run's are in its state."""
    attempt: int = 1


class EffectRunner:
    """The way out of a run."""

    def __init__(self, services: EngineServices, journal: RunJournal) -> None:
        self._services = services
        self._journal = journal
        self._ceilings = SpendLimiter()
        self._closed = False

    def close(self) -> None:
        """Lets nothing more begin: the run is being stopped."""
        self._closed = True

    def perform(self, call: EffectCall) -> Coroutine[Any, Any, Any]:
        """Begins an effect, at once where nothing is in its way, and returns the rest of it."""
        gate = self._gate(call.effect)
        if gate is not None:
            return self._through(gate, call)
        if call.limits or self._journal.state.limits:
            return self._tries(call)
        # Recorded here and now, so that it shares the commit of whatever led to it.
        started = self._start(call, call.attempt)
        self._reserve(call)
        return self._tries(call, started)

    def _gate(self, effect: Effect) -> AgentGate | None:
        return self._gate_of(effect.payload["agent"]) if effect.kind is EffectKind.ASK else None

    def _gate_of(self, agent: str) -> AgentGate | None:
        gates = self._services.gates
        return gates.get(self._services.performers.played_by(agent)) if gates else None

    def _slot(self, agent: str) -> AbstractAsyncContextManager[None]:
        gate = self._gate_of(agent)
        return gate.slot() if gate is not None else nullcontext()

    def _attempts(self, effect: Effect) -> int:
        gate = self._gate(effect)
        return (gate.attempts if gate else None) or self._services.backoff.attempts

    async def _through(self, gate: AgentGate, call: EffectCall) -> Any:
        async with gate.slot():
            return await self._tries(call)

    async def _tries(self, call: EffectCall, started: int | None = None) -> Any:
        """Performs an effect, meeting passing faults with patience.

        `started` is the number of its first start in the journal, if that is recorded already.
        """
        attempt, last = call.attempt, call.attempt + self._attempts(call.effect) - 1
        while True:
            if started is None:
                started = await self._begin(call, attempt)
            try:
                return await self._finish(call, attempt, started)
            except AgentTransient as error:
                if attempt >= last:
                    raise self.failed(call, attempt, error) from error
                self._attempt_failed(call, error)
                chance = random.random()  # noqa: S311  # spread
                pause = self._services.backoff.pause(attempt, chance, error.after)
                self._services.tell(Retrying(self._journal.name, call.id, str(error), pause))
            except EFFECT_ERRORS as error:
                raise self.failed(call, attempt, error) from error
            finally:
                if call.effect.kind is EffectKind.ASK:
                    self._ceilings.leave()
            await self._services.clock.sleep(pause)
            if gate := self._gate(call.effect):
                await gate.pace()
            attempt, started = attempt + 1, None

    async def _begin(self, call: EffectCall, attempt: int) -> int:
        state = self._journal.state
        if call.effect.kind is EffectKind.ASK:
            asked = call.effect.payload
            scopes: list[tuple[Scope, Limits, Spend]] = [
                ("run", state.limits, state.spend),
                ("step", call.limits, state.visit_spend),
            ]
            for scope, limits, _ in scopes:
                await check_price(
                    self._services.performers, limits, asked["agent"], asked.get("model", ""), scope
                )
            await self._ceilings.fit(asked["agent"], call.ctx.step_id, scopes)
        started = self._start(call, attempt)
        self._reserve(call)
        return started

    def _reserve(self, call: EffectCall) -> None:
        # Only calls cost anything; a program under way must not hold one back.
        if call.effect.kind is EffectKind.ASK:
            self._ceilings.enter()

    async def _finish(self, call: EffectCall, attempt: int, started: int) -> Any:
        out = False
        try:
            await self._journal.durable(started)
            if self._closed:
                raise asyncio.CancelledError
            began = self._services.clock.monotonic()
            attempt_call, out = self._call(call, attempt), True
            reply, usage = await self._services.performers.perform(call.effect, attempt_call)
        except asyncio.CancelledError:
            # Ended by us, so nothing is in doubt but the bill; what never went out has none.
            if (call.effect.kind is EffectKind.ASK or not out) and self._journal.error is None:
                self.failed(call, attempt, with_usage(AgentStopped(), None if out else FREE))
            raise
        end = ev.EffectFinished(call.id, reply, usage=usage.to_json() if usage else None)
        self._end(call, attempt, end)
        self.learn(call.effect, usage)
        if call.effect.kind is EffectKind.ASK:
            self._ceilings.heard(call.effect.payload["agent"], usage)
        if self._services.clock.monotonic() - began > PROMPT_COMMIT_SECONDS:
            await self._journal.durable()
        return reply_of(call.effect.kind, reply)

    def given(self, call: EffectCall, reply: Reply) -> Any:
        """Records a reply that came another way, such as from a person."""
        self._start(call, call.attempt)
        usage = reply.usage
        data = reply.to_json()
        self._journal.record(
            ev.EffectFinished(call.id, data, usage=usage.to_json() if usage else None)
        )
        self.learn(call.effect, usage)
        return reply_of(call.effect.kind, data)

    def given_up(self, call: EffectCall, why: str) -> BaseException:
        """Records that whoever works from outside could not do it; returns what to raise."""
        self._start(call, call.attempt)
        # Content that is not there: the next attempt, which knows the reason, may do better.
        return self.failed(call, call.attempt, with_usage(AgentBadOutput(why), FREE))

    def _start(self, call: EffectCall, attempt: int) -> int:
        effect = call.effect
        payload: dict[str, Any] | None = effect.payload
        if attempt > 1:
            before = self._journal.state.effect(call.id)
            if before is not None and before.agent == effect.payload.get("agent", ""):
                payload = None  # recorded with the first try
        return self._journal.record(
            ev.EffectStarted(
                call.id,
                effect.kind,
                call.digest,
                payload,
                attempt,
                effect.on_crash.value,
            )
        )

    def _call(self, call: EffectCall, attempt: int) -> Call:
        name, step = self._journal.name, call.ctx.step_id
        state = self._journal.state

        def emit(text: str) -> None:
            self._services.tell(Progress(name, step, call.id, text))

        def started(process: dict[str, Any]) -> None:
            self._journal.record(ev.EffectRunning(call.id, process))

        asked = call.effect.payload.get("agent", "")
        return Call(
            name, call.id, attempt, emit, started, step, asked,
            call.ctx.visit, state.attempt, state.seed, state.folder, self._slot,
            partial(self._earlier, asked),
        )  # fmt: skip

    def _earlier(self, agent: str) -> Iterator[EarlierCall]:
        played_by = self._services.performers.played_by
        mine = played_by(agent)
        return earlier_calls(
            self._services.store,
            self._journal.run,
            self._journal.name,
            lambda name: played_by(name) == mine,
        )

    def _attempt_failed(self, call: EffectCall, error: AgentTransient) -> None:
        """Charges a failed attempt at once: calls that wait for a limit must see its cost.

        Charged with the retry, it would be missing from the totals during the pause, and for good
        if the limit is reached meanwhile and no retry starts.
        """
        usage = usage_of(error)
        cost = usage.to_json() if usage is not None else None
        self._journal.record(ev.EffectAttemptFailed(call.id, error_to_json(error), cost))
        self._learn_failure(call.effect, usage)

    def failed(self, call: EffectCall, attempt: int, error: SignoffError) -> BaseException:
        """Records a failure and returns what the handler is to see of it."""
        if isinstance(error, AgentError):
            asked = call.effect.payload
            error.agent = error.agent or asked.get("agent", "")
            error.model = error.model or asked.get("model") or ""
        usage = usage_of(error)
        cost = usage.to_json() if usage is not None else None
        end = ev.EffectFinished(call.id, error=error_to_json(error), usage=cost)
        self._end(call, attempt, end)
        self._learn_failure(call.effect, usage)
        if not isinstance(error, AgentQuota):
            return error
        pause = self._services.clock.now() + QUOTA_PAUSE_SECONDS
        until = error.until.timestamp() if error.until else pause
        return ParkedUntil(QuotaExhausted(error_info(error), until), until)

    def learn(self, effect: Effect, usage: Usage | None) -> None:
        """Lets the ceilings know what one ended call cost."""
        if effect.kind is EffectKind.ASK:
            self._ceilings.learn(usage)

    def _learn_failure(self, effect: Effect, usage: Usage | None) -> None:
        if effect.kind is not EffectKind.ASK:
            return
        self._ceilings.learn(usage, failed=True)
        if usage is not None and None in (usage.usd, usage.tokens):
            # It sent a bill with something missing, as its answers would.
            self._ceilings.heard(effect.payload["agent"], usage)

    def key(self, call: EffectCall) -> str:
        """Names an effect for good: the same in every attempt at it, and in no other place."""
        ctx, attempt = call.ctx, self._journal.state.attempt
        return idempotency_key(self._journal.name, ctx.step_id, ctx.visit, attempt, call.id)

    def _end(self, call: EffectCall, attempt: int, end: ev.EffectFinished) -> None:
        keep = partial(self._keep_late, call, self._journal.state.attempt, attempt, end)
        try:
            self._journal.record(end, keep)
        except LeaseLost:
            keep()
            raise

    def _keep_late(
        self, call: EffectCall, step_attempt: int, attempt: int, end: ev.EffectFinished
    ) -> None:
        kept = {"reply": end.reply, "error": end.error, "usage": end.usage}
        place = (call.ctx.step_id, call.ctx.visit, step_attempt, call.id)
        key = idempotency_key(self._journal.name, *place)
        # What cannot be kept is asked for again: dear, but not wrong.
        with suppress(StoreError):
            self._services.store.keep_late(self._journal.run, key, attempt, json.dumps(kept))
