"""Performs an effect durably: recorded before it starts and after it ends.

An effect starts only after `effect_started` is committed. So whatever the process does or
dies of, the journal names every call that may have been made, and the next runner can find
out what became of it. Transient errors are retried; each retry is recorded, counted and
charged like the first attempt.

Another process may take the run over while a call is in progress, for example after this
machine was asleep. Its reply can then no longer be recorded here, but it is paid for. It is
stored next to the journal, and the new owner uses it instead of calling the agent again.
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
"""A reply that took longer is committed before its handler continues, so that an expensive
reply is safe even if the handler then blocks. A faster one shares the next commit."""

QUOTA_PAUSE_SECONDS = 900.0
"""How long a run is parked when an agent is out of quota and reports no reset time."""


class EffectCall(NamedTuple):
    """One effect to perform."""

    ctx: StepContext
    id: EffectId
    effect: Effect
    digest: str
    limits: Limits
    """The step's limits; those of the run are in its state."""
    attempt: int = 1


class EffectRunner:
    """Performs the effects of one run."""

    def __init__(self, services: EngineServices, journal: RunJournal) -> None:
        self._services = services
        self._journal = journal
        self._limiter = SpendLimiter()
        self._closed = False

    def close(self) -> None:
        """Starts no more effects: the run is being stopped."""
        self._closed = True

    def perform(self, call: EffectCall) -> Coroutine[Any, Any, Any]:
        """Starts an effect, at once if no limit applies, and returns a coroutine for the rest."""
        gate = self._gate(call.effect)
        if gate is not None:
            return self._in_gate(gate, call)
        if call.limits or self._journal.state.limits:
            return self._with_retries(call)
        # Recorded without awaiting anything, so that it shares the commit of the event before.
        started = self._start(call, call.attempt)
        self._reserve(call)
        return self._with_retries(call, started)

    def _gate(self, effect: Effect) -> AgentGate | None:
        return self._gate_of(effect.payload["agent"]) if effect.kind is EffectKind.ASK else None

    def _gate_of(self, agent: str) -> AgentGate | None:
        gates = self._services.gates
        return gates.get(self._services.performers.agent_for(agent)) if gates else None

    def _slot(self, agent: str) -> AbstractAsyncContextManager[None]:
        gate = self._gate_of(agent)
        return gate.slot() if gate is not None else nullcontext()

    def _attempts(self, effect: Effect) -> int:
        gate = self._gate(effect)
        return (gate.attempts if gate else None) or self._services.backoff.attempts

    async def _in_gate(self, gate: AgentGate, call: EffectCall) -> Any:
        async with gate.slot():
            return await self._with_retries(call)

    async def _with_retries(self, call: EffectCall, started: int | None = None) -> Any:
        """Performs an effect and retries it after transient errors.

        `started` is the number of its start in the journal, if that is recorded already.
        """
        attempt, last = call.attempt, call.attempt + self._attempts(call.effect) - 1
        while True:
            if started is None:
                started = await self._begin(call, attempt)
            try:
                return await self._finish(call, attempt, started)
            except AgentTransient as error:
                if attempt >= last:
                    raise self.record_failure(call, attempt, error) from error
                self._record_attempt_failure(call, error)
                chance = random.random()  # noqa: S311  # jitter
                pause = self._services.backoff.pause(attempt, chance, error.after)
                self._services.notify(Retrying(self._journal.name, call.id, str(error), pause))
            except EFFECT_ERRORS as error:
                raise self.record_failure(call, attempt, error) from error
            finally:
                if call.effect.kind is EffectKind.ASK:
                    self._limiter.release()
            await self._services.clock.sleep(pause)
            if gate := self._gate(call.effect):
                await gate.pace()
            attempt, started = attempt + 1, None

    async def _begin(self, call: EffectCall, attempt: int) -> int:
        state = self._journal.state
        if call.effect.kind is EffectKind.ASK:
            payload = call.effect.payload
            scopes: list[tuple[Scope, Limits, Spend]] = [
                ("run", state.limits, state.spend),
                ("step", call.limits, state.visit_spend),
            ]
            for scope, limits, _ in scopes:
                await check_price(
                    self._services.performers,
                    limits,
                    payload["agent"],
                    payload.get("model", ""),
                    scope,
                )
            await self._limiter.wait_for_room(payload["agent"], call.ctx.step_id, scopes)
        started = self._start(call, attempt)
        self._reserve(call)
        return started

    def _reserve(self, call: EffectCall) -> None:
        # Only agent calls cost money; a running program must not hold one back.
        if call.effect.kind is EffectKind.ASK:
            self._limiter.reserve()

    async def _finish(self, call: EffectCall, attempt: int, started: int) -> Any:
        sent = False
        try:
            await self._journal.durable(started)
            if self._closed:
                raise asyncio.CancelledError
            began = self._services.clock.monotonic()
            attempt_call, sent = self._call(call, attempt), True
            reply, usage = await self._services.performers.perform(call.effect, attempt_call)
        except asyncio.CancelledError:
            # We stopped it ourselves, so it is not in doubt. What the agent has charged until
            # then is unknown, unless the request was never sent: then it is free.
            if (call.effect.kind is EffectKind.ASK or not sent) and self._journal.error is None:
                self.record_failure(
                    call, attempt, with_usage(AgentStopped(), None if sent else FREE)
                )
            raise
        end = ev.EffectFinished(call.id, reply, usage=usage.to_json() if usage else None)
        self._end(call, attempt, end)
        self.note_cost(call.effect, usage)
        if call.effect.kind is EffectKind.ASK:
            self._limiter.note_missing(call.effect.payload["agent"], usage)
        if self._services.clock.monotonic() - began > PROMPT_COMMIT_SECONDS:
            await self._journal.durable()
        return reply_of(call.effect.kind, reply)

    def record_reply(self, call: EffectCall, reply: Reply) -> Any:
        """Records a reply that did not come from a call, such as a human's."""
        self._start(call, call.attempt)
        usage = reply.usage
        data = reply.to_json()
        self._journal.record(
            ev.EffectFinished(call.id, data, usage=usage.to_json() if usage else None)
        )
        self.note_cost(call.effect, usage)
        return reply_of(call.effect.kind, data)

    def record_given_up(self, call: EffectCall, why: str) -> BaseException:
        """Records that an outside worker gave up; returns the error to raise."""
        self._start(call, call.attempt)
        # Bad output, not an agent error: an attempt that knows the reason may do better.
        return self.record_failure(call, call.attempt, with_usage(AgentBadOutput(why), FREE))

    def _start(self, call: EffectCall, attempt: int) -> int:
        effect = call.effect
        payload: dict[str, Any] | None = effect.payload
        if attempt > 1:
            before = self._journal.state.effect(call.id)
            if before is not None and before.agent == effect.payload.get("agent", ""):
                payload = None  # It is in the journal with the first attempt.
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
            self._services.notify(Progress(name, step, call.id, text))

        def started(process: dict[str, Any]) -> None:
            self._journal.record(ev.EffectRunning(call.id, process))

        agent = call.effect.payload.get("agent", "")
        return Call(
            name, call.id, attempt, emit, started, step, agent,
            call.ctx.visit, state.attempt, state.seed, state.folder, self._slot,
            partial(self._earlier, agent),
        )  # fmt: skip

    def _earlier(self, agent: str) -> Iterator[EarlierCall]:
        agent_for = self._services.performers.agent_for
        target = agent_for(agent)
        return earlier_calls(
            self._services.store,
            self._journal.run,
            self._journal.name,
            lambda name: agent_for(name) == target,
        )

    def _record_attempt_failure(self, call: EffectCall, error: AgentTransient) -> None:
        """Charges a failed attempt at once, because calls that wait for a limit must see its cost.

        If it were charged when the retry starts, it would be missing from the totals during the
        pause, and for good if the limit is reached in the meantime and no retry starts.
        """
        usage = usage_of(error)
        cost = usage.to_json() if usage is not None else None
        self._journal.record(ev.EffectAttemptFailed(call.id, error_to_json(error), cost))
        self._note_failure_cost(call.effect, usage)

    def record_failure(self, call: EffectCall, attempt: int, error: SignoffError) -> BaseException:
        """Records a failure and returns the exception to raise in the handler."""
        if isinstance(error, AgentError):
            payload = call.effect.payload
            error.agent = error.agent or payload.get("agent", "")
            error.model = error.model or payload.get("model") or ""
        usage = usage_of(error)
        cost = usage.to_json() if usage is not None else None
        end = ev.EffectFinished(call.id, error=error_to_json(error), usage=cost)
        self._end(call, attempt, end)
        self._note_failure_cost(call.effect, usage)
        if not isinstance(error, AgentQuota):
            return error
        pause = self._services.clock.now() + QUOTA_PAUSE_SECONDS
        until = error.until.timestamp() if error.until else pause
        return ParkedUntil(QuotaExhausted(error_info(error), until), until)

    def note_cost(self, effect: Effect, usage: Usage | None) -> None:
        """Passes the cost of an ended call on to the limits."""
        if effect.kind is EffectKind.ASK:
            self._limiter.note_cost(usage)

    def _note_failure_cost(self, effect: Effect, usage: Usage | None) -> None:
        if effect.kind is not EffectKind.ASK:
            return
        self._limiter.note_cost(usage, failed=True)
        if usage is not None and None in (usage.usd, usage.tokens):
            # It reported its usage incompletely, and its replies will do the same.
            self._limiter.note_missing(effect.payload["agent"], usage)

    def idempotency_key(self, call: EffectCall) -> str:
        """Returns a name for an effect that all attempts at it share, and no other effect has."""
        ctx, attempt = call.ctx, self._journal.state.attempt
        return idempotency_key(self._journal.name, ctx.step_id, ctx.visit, attempt, call.id)

    def _end(self, call: EffectCall, attempt: int, end: ev.EffectFinished) -> None:
        store_late = partial(self._store_late, call, self._journal.state.attempt, attempt, end)
        try:
            self._journal.record(end, store_late)
        except LeaseLost:
            store_late()
            raise

    def _store_late(
        self, call: EffectCall, step_attempt: int, attempt: int, end: ev.EffectFinished
    ) -> None:
        outcome = {"reply": end.reply, "error": end.error, "usage": end.usage}
        ctx = call.ctx
        key = idempotency_key(self._journal.name, ctx.step_id, ctx.visit, step_attempt, call.id)
        # If it cannot be stored, the new owner calls the agent again: expensive, but correct.
        with suppress(StoreError):
            self._services.store.keep_late(self._journal.run, key, attempt, json.dumps(outcome))
