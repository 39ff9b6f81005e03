"""Performs an effect durably: recorded before it starts and after it ends.

An effect starts only after `effect_started` is committed. So whatever the process does or
dies of, the journal names every call that may have been made, and the next runner can find
out what became of it. Transient errors are retried; each retry is recorded, counted and
charged like the first attempt.

Another process may take the run over while a call is in progress, for example after this
machine was asleep. Its reply can then no longer be recorded here, but it is paid for. It is
stored next to the journal, and the new owner uses it instead of calling the agent again. The
same happens if the store could not be written for a while, once it can be.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from signoff.core import errors
from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Effect, EffectId, EffectKind, OnCrash
from signoff.core.errors import AgentError, NotAllowed
from signoff.core.events import ANY_AGENT
from signoff.core.one_line import cut
from signoff.core.remedies import PassOption, Scope
from signoff.core.requests import Answer, Choice
from signoff.core.run_state import EffectRecord, RunState
from signoff.core.spend import Limits, Spend, Usage, reached
from signoff.core.stop_reason import BudgetReached, QuotaExhausted
from signoff.core.workflow import Workflow
from signoff.runtime import effect_errors
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import Performers, reply_of
from signoff.runtime.ports import Call, EarlierCall, Progress, Retrying, idempotency_key
from signoff.runtime.run_inbox import RunInbox
from signoff.runtime.services import AgentGate, EngineServices, LateReply
from signoff.runtime.store_port import events_in
from signoff.runtime.suspension import LimitReached, ParkedUntil

# Keeps a run within its limits on calls, tokens and money, fan-outs included.
#
# The cost of a call is known only after it has ended, but a limit must hold before. With a
# fan-out of 300 items, checking the total before each call is useless: all 300 start before the
# first one is charged. So every call is reserved before it starts:
#
# - A limit on calls is exact, because the number of calls is known in advance.
# - For tokens and money, each call in progress reserves the cost of the most expensive call so
#   far. A new call waits until the total, the reservations and its own reservation fit.
# - Before the first cost is known there is nothing to reserve. So no more calls are in progress
#   at once than have been charged: the first call runs alone, then two, then four. The fan-out
#   doubles its width as costs come in, and a cheap first call cannot let 300 expensive ones in.
#
# A limit is therefore exceeded by about one call at most. When no call is in progress and the
# total is below the limit, the next call always starts: otherwise a run whose calls got more
# expensive would stop with money left.


_LIMIT_CALLS = PassOption("limit", "calls=NUMBER")


LimitScopes = list[tuple[Scope, Limits, Spend]]


def limit_scopes(state: RunState, step_limits: Limits) -> LimitScopes:
    """Returns the limits of the run and of its current step, each with what was spent."""
    return [("run", state.limits, state.spend), ("step", step_limits, state.visit_spend)]


async def check_price(
    performers: Performers, limits: Limits, agent: str, model: str = "", scope: Scope = "run"
) -> None:
    """Refuses a limit on money if the agent's cost is unknown, because it could not be enforced."""
    if limits.usd is None or limits.calls is not None or limits.tokens is not None:
        return
    if not await performers.reports_price(agent, model or None):
        raise NotAllowed(
            f"the price of a call of {agent!r} is unknown, so the {scope}'s limit of "
            f"${limits.usd:g} cannot be enforced; limit calls or tokens of the {scope} too, "
            "or give the agent a `price:` in the settings",
            remedy=_LIMIT_CALLS if scope == "run" else (),
        )


async def check_prices(
    services: EngineServices, workflow: Workflow, limits: Limits, switch: Mapping[str, str]
) -> None:
    """Checks the agents of a workflow that are known in advance, before anything is spent.

    `switch` maps agents to those that answer in their place.
    """
    performers, roles = services.performers, services.roles_of(workflow)
    for step in workflow.steps.values():
        if step.agent:
            role = switch.get(step.agent) or switch.get(ANY_AGENT, step.agent)
            agent = role if performers.has_agent(role) else roles.get(role, role)
            await check_price(performers, limits, agent)


class SpendLimiter:
    """The reservations of one run."""

    def __init__(self) -> None:
        self._in_progress = 0
        self._charged = 0
        """Calls whose cost this process has learned."""
        self._highest_usd = 0.0
        """What the most expensive of them cost."""
        self._highest_tokens = 0
        self._unreported: dict[str, set[str]] = {}
        """The amounts that no reply of an agent has reported so far."""
        self._changed = asyncio.Event()

    async def wait_for_room(self, agent: str, step: str, scopes: LimitScopes) -> None:
        """Returns when a call fits within all limits; raises when a limit is reached."""
        scopes = [scope for scope in scopes if scope[1]]
        while scopes:
            for scope, limits, spend in scopes:
                full = reached(limits, spend)
                if full:
                    amount = getattr(limits, full)
                    raise LimitReached(BudgetReached(scope, full, amount, step, agent))
                self._check_reported(agent, scope, limits)
            if self._in_progress == 0 or all(self._fits(lim, sp) for _, lim, sp in scopes):
                break
            # Every call that ends changes the totals or the highest cost, so look again then.
            self._changed.clear()
            await self._changed.wait()

    def note_cost(self, usage: Usage | None, *, failed: bool = False) -> None:
        """Learns from the cost of an ended call; an unknown cost changes nothing."""
        billed = usage is not None and bool(usage.usd or usage.tokens)
        if failed and not billed:
            # A call that was refused says nothing about the cost of an answer.
            return
        self._charged += 1
        if usage is not None:
            self._highest_usd = max(self._highest_usd, usage.usd or 0.0)
            self._highest_tokens = max(self._highest_tokens, usage.tokens or 0)

    def note_missing(self, agent: str, usage: Usage | None) -> None:
        """Remembers which amounts an agent does not report; its next replies will not either."""
        amounts = {"usd": usage.usd, "tokens": usage.tokens} if usage is not None else {}
        missing = {name for name in ("usd", "tokens") if amounts.get(name) is None}
        self._unreported[agent] = self._unreported.get(agent, missing) & missing

    def reserve(self) -> None:
        """Reserves a call."""
        self._in_progress += 1

    def release(self) -> None:
        """Releases a reservation after its call has ended and its cost is in the totals."""
        self._in_progress -= 1
        self._changed.set()

    def _check_reported(self, agent: str, scope: Scope, limits: Limits) -> None:
        """Refuses to continue if the agent reports none of the limited amounts."""
        limited = [name for name in ("usd", "tokens") if getattr(limits, name) is not None]
        unreported = self._unreported.get(agent, set())
        if limits.calls is None and limited and unreported.issuperset(limited):
            raise NotAllowed(
                f"answers of {agent!r} do not report their {' or '.join(limited)}, so the "
                f"{scope}'s limit cannot be enforced; limit calls of the {scope} too",
                remedy=_LIMIT_CALLS if scope == "run" else (),
            )

    def _fits(self, limits: Limits, spend: Spend) -> bool:
        """Tells whether the calls in progress and one more fit, each at the highest cost."""
        calls = self._in_progress + 1
        finished = max(1, spend.calls - self._in_progress)
        for limit, spent, highest in (
            (limits.usd, spend.known_usd, self._highest_usd),
            (limits.tokens, spend.known_tokens, self._highest_tokens),
        ):
            if limit is None:
                continue
            # Calls before a resume were charged in another process. Only their average is
            # known here, so it serves as a lower bound of the highest cost.
            if calls > self._charged or spent + calls * max(highest, spent / finished) > limit:
                return False
        return True


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
    agent: str
    """The agent or role that is asked; empty for other effects."""
    attempt: int = 1
    answering: Callable[[], object] = lambda: None
    """Called when the agent begins to answer, and when an attempt ends in any other way."""


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
        gate = self._gate(call.agent)
        if gate is not None:
            return self._in_gate(gate, call)
        if call.limits or self._journal.state.limits:
            return self._with_retries(call)
        # Recorded without awaiting anything, so that it shares the commit of the event before.
        return self._with_retries(call, self._start(call))

    def _gate(self, agent: str) -> AgentGate | None:
        gates = self._services.gates
        return gates.get(self._services.performers.agent_for(agent)) if gates else None

    def _slot(self, agent: str) -> AbstractAsyncContextManager[None]:
        gate = self._gate(agent)
        return gate.slot() if gate is not None else nullcontext()

    async def _in_gate(self, gate: AgentGate, call: EffectCall) -> Any:
        async with gate.slot():
            return await self._with_retries(call)

    async def _with_retries(self, call: EffectCall, started: int | None = None) -> Any:
        """Performs an effect and retries it after transient errors.

        `started` is the number of its start in the journal, if that is recorded already.
        """
        gate, backoff = self._gate(call.agent), self._services.backoff
        attempts = (gate.attempts if gate else None) or backoff.attempts
        last = call.attempt + attempts - 1
        while True:
            if started is None:
                await self._wait_for_room(call)
                started = self._start(call)
            try:
                return await self._finish(call, started)
            except errors.AgentTransient as error:
                if call.attempt >= last:
                    raise self.record_failure(call, error) from error
                self._record_attempt_failure(call, error)
                chance = random.random()  # noqa: S311  # jitter
                pause = backoff.pause(call.attempt, chance, error.after)
                self._services.notify(Retrying(self._journal.name, call.id, str(error), pause))
            except effect_errors.EFFECT_ERRORS as error:
                raise self.record_failure(call, error) from error
            finally:
                if call.effect.kind is EffectKind.ASK:
                    self._limiter.release()
            await self._services.clock.sleep(pause)
            if gate is not None:
                await gate.pace()
            call, started = call._replace(attempt=call.attempt + 1), None

    async def _wait_for_room(self, call: EffectCall) -> None:
        """Returns when the limits of the run and of the step allow an agent call."""
        if call.effect.kind is not EffectKind.ASK:
            return
        state, model = self._journal.state, call.effect.payload.get("model", "")
        scopes = limit_scopes(state, call.limits)
        for scope, limits, _ in scopes:
            await check_price(self._services.performers, limits, call.agent, model, scope)
        await self._limiter.wait_for_room(call.agent, call.ctx.step_id, scopes)

    async def _finish(self, call: EffectCall, started: int) -> Any:
        sent = False
        try:
            await self._journal.durable(started)
            if self._closed:
                raise asyncio.CancelledError
            began = self._services.clock.monotonic()
            agent_call, sent = self._call(call), True
            try:
                reply, usage = await self._services.performers.perform(call.effect, agent_call)
            finally:
                call.answering()
        except asyncio.CancelledError:
            # We stopped it ourselves, so it is not in doubt. What the agent has charged until
            # then is unknown, unless the request was never sent: then it is free.
            if (call.effect.kind is EffectKind.ASK or not sent) and self._journal.error is None:
                cost = None if sent else effect_errors.FREE
                self.record_failure(call, effect_errors.with_usage(errors.AgentStopped(), cost))
            raise
        self._end(call, usage, reply)
        if call.effect.kind is EffectKind.ASK:
            self._limiter.note_cost(usage)
            self._limiter.note_missing(call.agent, usage)
        if self._services.clock.monotonic() - began > PROMPT_COMMIT_SECONDS:
            await self._journal.durable()
        return reply_of(call.effect.kind, reply)

    def record_reply(self, call: EffectCall, reply: dict[str, Any], usage: Usage | None) -> Any:
        """Records a reply that did not come from a call, such as a human's, and returns it."""
        self._end(call, usage, reply)
        if call.effect.kind is EffectKind.ASK:
            self._limiter.note_cost(usage)
        return reply_of(call.effect.kind, reply)

    def record_start(self, call: EffectCall) -> int:
        """Records that an effect starts, and returns the number of that event."""
        effect = call.effect
        payload: dict[str, Any] | None = effect.payload
        if call.attempt > 1:
            before = self._journal.state.effect(call.id)
            if before is not None and before.agent == call.agent:
                payload = None  # It is in the journal with the first attempt.
        kind, on_crash = effect.kind, effect.on_crash.value
        start = ev.EffectStarted(call.id, kind, call.digest, payload, call.attempt, on_crash)
        if kind is EffectKind.ASK:
            declared = self._services.performers.capabilities(call.agent)
            start.provider, start.chat = declared.provider, declared.chat
        return self._journal.record(start)

    def _start(self, call: EffectCall) -> int:
        started = self.record_start(call)
        # Only agent calls cost money; a running program must not hold one back.
        if call.effect.kind is EffectKind.ASK:
            self._limiter.reserve()
        return started

    def _call(self, call: EffectCall) -> Call:
        name, step = self._journal.name, call.ctx.step_id
        state = self._journal.state

        def emit(text: str) -> None:
            call.answering()
            if text:
                self._services.notify(Progress(name, step, call.id, text))

        def started(process: dict[str, Any]) -> None:
            self._journal.record(ev.EffectRunning(call.id, process))

        return Call(
            name, call.id, call.attempt, emit, started, step, call.agent,
            call.ctx.visit, state.attempt, state.seed, state.folder,
            slot=self._slot, earlier=partial(self._earlier, call.agent),
        )  # fmt: skip

    def _earlier(self, agent: str) -> Iterator[EarlierCall]:
        """Yields the attempts at calls to an agent that have ended, in order.

        Those of earlier processes are included. An attempt that a crash interrupted has no end, so
        it is not included: it is made again.
        """
        agent_for, store = self._services.performers.agent_for, self._services.store
        step = ""
        started: dict[EffectId, tuple[dict[str, Any], Call]] = {}
        for event in events_in(store.journal(self._journal.run), store.blob):
            match event:
                case ev.RunStarted():
                    step = event.entry
                case ev.StepFinished():
                    step = event.to or ""
                    started.clear()
                case ev.EffectStarted(id=effect, kind=EffectKind.ASK):
                    # Only the first attempt holds the payload.
                    payload = event.payload or started[effect][0]
                    name, asked = self._journal.name, payload["agent"]
                    call = Call(name, effect, event.attempt, step=step, agent=asked)
                    started[effect] = (payload, call)
                case ev.EffectAttemptFailed() | ev.EffectFinished() if event.id in started:
                    payload, call = started[event.id]
                    if agent_for(call.agent) == agent_for(agent):
                        yield _earlier_call(payload, call, event)

    def _record_attempt_failure(self, call: EffectCall, error: errors.AgentTransient) -> None:
        """Charges a failed attempt at once, because calls that wait for a limit must see its cost.

        If it were charged when the retry starts, it would be missing from the totals during the
        pause, and for good if the limit is reached in the meantime and no retry starts.
        """
        usage = effect_errors.usage_of(error)
        cost = usage.to_json() if usage is not None else None
        self._journal.record(
            ev.EffectAttemptFailed(call.id, effect_errors.error_to_json(error), cost)
        )
        self._note_failure_cost(call, usage)

    def record_failure(self, call: EffectCall, error: errors.SignoffError) -> BaseException:
        """Records a failure and returns the exception to raise in the handler."""
        if isinstance(error, errors.AgentError):
            error.agent = error.agent or call.agent
            error.model = error.model or call.effect.payload.get("model") or ""
        usage = effect_errors.usage_of(error)
        self._end(call, usage, error=effect_errors.error_to_json(error))
        self._note_failure_cost(call, usage)
        if not isinstance(error, errors.AgentQuota):
            return error
        pause = self._services.clock.now() + QUOTA_PAUSE_SECONDS
        until = error.until.timestamp() if error.until else pause
        return ParkedUntil(QuotaExhausted(effect_errors.error_info(error), until), until)

    def _note_failure_cost(self, call: EffectCall, usage: Usage | None) -> None:
        if call.effect.kind is not EffectKind.ASK:
            return
        self._limiter.note_cost(usage, failed=True)
        if usage is not None and None in (usage.usd, usage.tokens):
            # It reported its usage incompletely, and its replies will do the same.
            self._limiter.note_missing(call.agent, usage)

    def late_reply(self, call: EffectCall) -> dict[str, Any] | None:
        """Returns what an earlier runner got for this attempt and could not record."""
        key = self._late_key(call, self._journal.state.attempt)
        try:
            outcome = self._services.store.late(self._journal.run).get(key)
        except errors.StoreError as error:
            # The step has not failed: the run stops here and can be resumed, as after a commit
            # that failed.
            self._journal.fail(error)
            raise
        return json.loads(outcome) if outcome is not None else None

    def _end(
        self,
        call: EffectCall,
        usage: Usage | None,
        reply: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        cost = usage.to_json() if usage is not None else None
        end = ev.EffectFinished(call.id, reply, error, cost)
        self._journal.record(end, partial(self._rescue, call, self._journal.state.attempt, end))

    def _rescue(self, call: EffectCall, step_attempt: int, end: ev.EffectFinished) -> None:
        if end.error is not None and end.error["type"] == errors.AgentStopped.__name__:
            # We stopped it ourselves. That is no reply: as one it would fail the resumed run.
            return
        outcome = json.dumps({"reply": end.reply, "error": end.error, "usage": end.usage})
        run, late = self._journal.run, self._services.late_replies
        late.add(run, LateReply(*self._late_key(call, step_attempt), outcome))
        # A store that cannot be written is not tried: waiting for it would block the event loop.
        if isinstance(self._journal.error, errors.LeaseLost):
            # If it cannot be stored, the new owner calls the agent again: expensive, but correct.
            with suppress(errors.StoreError):
                late.move_to(self._services.store, run)

    def _late_key(self, call: EffectCall, step_attempt: int) -> tuple[str, int]:
        name, ctx = self._journal.name, call.ctx
        key = idempotency_key(name, ctx.step_id, ctx.visit, step_attempt, call.id)
        return key, call.attempt


def _earlier_call(payload: dict[str, Any], call: Call, end: ev.Event) -> EarlierCall:
    request = AgentRequest(**{name: value for name, value in payload.items() if name != "agent"})
    reply = end.reply if isinstance(end, ev.EffectFinished) else None
    return EarlierCall(request, call, (reply or {}).get("agent") or "")


# Recovers effects in doubt: the journal has their start, and no end.
#
# The process that started such an effect died, or lost the run. Nothing in the journal tells
# whether the effect happened. A model may have answered and charged for it; a command may have
# changed files, completely or halfway. What is left of the old process and its children is gone
# by now: `Engine.resume` ends it before anything else, so that it cannot act while or after the
# effect is repeated. Recovery then takes two steps:
#
# 1. Look for a late reply: a runner that got its reply but could not record it, because it had lost
#    its run or the store, has stored it since.
# 2. Follow the effect's `on_crash` rule: run it again (the default for model calls, which change
#    nothing), count it as failed, or ask a human (the default for commands and file edits).
#
# A repeated effect has the next attempt number and the same idempotency key. The attempt before
# it is charged at unknown cost, never at zero.


RERUN, DONE, FAILED = "rerun", "done", "failed"

_INTERRUPTED = "was interrupted by a stop or a crash"


async def settle(
    runner: EffectRunner, inbox: RunInbox, call: EffectCall, record: EffectRecord
) -> Any:
    """Returns the reply of an effect in doubt, running it again if that is its rule."""
    again = call._replace(attempt=record.attempt + 1)
    if record.ended:
        # The last attempt failed and is charged; only the retry is missing.
        return await runner.perform(again)
    call = call._replace(attempt=record.attempt)
    late = runner.late_reply(call)
    if late is not None:
        return _use_late(runner, call, late)
    if record.on_crash == OnCrash.FAIL.value:
        error = AgentError(f"this {_INTERRUPTED}, and its result is unknown")
        raise runner.record_failure(call, error)
    if record.on_crash == OnCrash.ASK.value:
        answer = _ask(inbox, call)
        if answer.value != RERUN:
            return _use_answer(runner, call, answer)
    return await runner.perform(again)


def _use_late(runner: EffectRunner, call: EffectCall, late: dict[str, Any]) -> Any:
    """Records a reply or an error that the previous runner could not record."""
    usage = Usage(**late["usage"]) if late["usage"] is not None else None
    if late["error"] is not None:
        raise runner.record_failure(
            call, effect_errors.with_usage(effect_errors.error_from_json(late["error"]), usage)
        )
    return runner.record_reply(call, late["reply"], usage)


def _ask(inbox: RunInbox, call: EffectCall) -> Answer:
    what = call.effect.payload.get("argv") or call.agent
    prompt = str(call.effect.payload.get("prompt") or "")
    question = Choice(
        f"{call.effect.kind.value} {what!r} {_INTERRUPTED}, and it is unknown whether it "
        "completed. Run it again, or count it as done or failed?",
        [RERUN, DONE, FAILED],
        shown={"prompt": cut(prompt)} if prompt else {},
    )
    return inbox.ask(EffectId(f"{call.id}?{call.attempt}"), question)


def _use_answer(runner: EffectRunner, call: EffectCall, answer: Answer) -> Any:
    if answer.value == FAILED:
        error = AgentError(answer.text or "a human marked it as failed")
        raise runner.record_failure(call, error)
    reply: dict[str, Any] = {"code": 0, "stdout": answer.text, "stderr": ""}
    if call.effect.kind is EffectKind.ASK:
        reply = {"text": answer.text}
    return runner.record_reply(call, reply, None)
