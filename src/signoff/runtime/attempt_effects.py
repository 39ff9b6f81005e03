"""The effects of one attempt at a step: performs new ones and replays recorded ones.

After a crash or a wait, the handler of the current step runs again from the top. It does not
know that. Each effect it requests is looked up in the journal. If its reply is recorded, the
handler gets that reply at once; if an error is recorded, the error is raised again. Only an
effect that was never recorded is performed. So no finished call is made or paid for twice.

An effect is identified by its scope (the fan-out item it belongs to, as a path), its key, and
an ordinal: the n-th request with that key in that scope. The ordinal lets a loop reuse a key.
It is only reproducible if requests with the same key come one after the other, which is why
two concurrent requests with one key in one scope are an error.

The recorded digest tells whether a replayed request still asks for the same. If it does not,
the replay fails as `NotDeterministic` instead of using a wrong answer. The exceptions are a
definition that the user changed and adopted, and an attempt with new feedback after a timeout:
there a difference is expected, and the step starts over.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from signoff.core import errors
from signoff.core import events as ev
from signoff.core.checked import CheckedCall, CheckedReply
from signoff.core.context import FanOutCall, StepContext
from signoff.core.digest import digest, line_digest
from signoff.core.effects import Effect, EffectId, EffectKind, Reply, effect_key
from signoff.core.errors import AgentBadOutput
from signoff.core.events import Logged
from signoff.core.frozen import thaw
from signoff.core.requests import Request, Response
from signoff.core.run_state import EffectRecord
from signoff.core.spend import Limits, Spend
from signoff.core.stop_reason import Sleeping
from signoff.runtime.effect_errors import FREE, error_from_json, with_usage
from signoff.runtime.effect_runner import EffectCall, EffectRunner, settle
from signoff.runtime.fanout import FanOut, ask_checked, map_checked
from signoff.runtime.handlers import loop_here
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Progress
from signoff.runtime.run_inbox import BY_HUMAN, RunInbox
from signoff.runtime.services import EngineServices
from signoff.runtime.sub_agents import PROJECT
from signoff.runtime.suspension import Outdated, ParkedUntil, Suspension, heaviest

T = TypeVar("T")
Work = Callable[..., Coroutine[Any, Any, Any]]


class AttemptEffects:
    """Implements the effects of a `StepContext` for one attempt at one step."""

    def __init__(
        self,
        services: EngineServices,
        journal: RunJournal,
        effect_runner: EffectRunner,
        inbox: RunInbox,
        limits: Limits,
        roles: Mapping[str, str],
    ) -> None:
        self._services = services
        self._journal = journal
        self._state = journal.state
        self._effect_runner = effect_runner
        self.inbox = inbox
        self._limits = limits
        self._roles = roles
        """The agent for each role that the settings do not assign."""
        self._log = StepLog(journal)
        self._ordinals: dict[str, int] = {}
        self._active_keys: set[str] = set()
        """Scope and key of each effect in progress, to detect concurrent use of one key."""
        self._tasks: dict[asyncio.Task[None], Coroutine[Any, Any, Any]] = {}
        """The effects in progress, each with its coroutine."""
        self._closed = False
        """Whether new effects are held back because the run is about to stop."""
        self._ended = False
        """Whether the attempt is over, so that any further request is an error."""
        self._loop = asyncio.get_running_loop()
        self._not_awaited: dict[object, tuple[str, str, Coroutine[Any, Any, Any]]] = {}
        """Requests that no one has awaited yet: scope, key and coroutine, by a token."""
        self._suspended: dict[str, list[Suspension]] = {}
        """Why a handler or an item of a fan-out could not continue, by its scope."""
        self._when_answering: dict[str, Callable[[], object]] = {}
        """What to call when an agent begins to answer, by the scope of the request."""

    # Called by the context

    def perform(self, ctx: StepContext, effect: Effect) -> Awaitable[Any]:
        """Performs one effect durably, or returns its recorded reply."""
        return self._request(self._keyed, ctx, effect.key, self._replay_or_perform, effect)

    def ask_checked(self, ctx: StepContext, call: CheckedCall[T]) -> Awaitable[CheckedReply[T]]:
        """Asks until an answer is accepted, or a human decides about it."""
        return self._request(self._composed, ctx, call.effect.key, ask_checked, call)

    def map(self, ctx: StepContext, fan: FanOutCall) -> Awaitable[list[Any]]:
        """Runs a fan-out, each item in a scope of its own."""
        if fan.otherwise is not None:
            return self._request(self._composed, ctx, fan.key, map_checked, fan)

        def run(ctx: StepContext, identity: EffectId, fan: FanOutCall) -> Coroutine[Any, Any, Any]:
            return FanOut(self, self._journal, ctx, fan, identity).run()

        return self._request(self._keyed, ctx, fan.key, run, fan)

    def was_requested(self, ctx: StepContext, key: str) -> bool:
        """Whether the journal has a request with this key: the handler is being replayed."""
        identity = EffectId(f"{effect_key(ctx.scope, key)}#1")
        return self._state.effect(identity) is not None

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        """Suspends the run until a time."""
        return self._request(self._keyed, ctx, key, self._park, until)

    def _request(
        self, start: Work, ctx: StepContext, key: str, work: Work, request: object
    ) -> Awaitable[Any]:
        # A coroutine does nothing before it is awaited. Each one is remembered until then, so
        # that a forgotten `await` is reported and not taken for work that was done.
        token = object()
        coroutine = start(token, ctx, key, work, request)
        self._not_awaited[token] = (ctx.scope, key, coroutine)
        return coroutine

    async def _keyed(
        self, token: object, ctx: StepContext, key: str, work: Work, request: object
    ) -> Any:
        """Performs a request that is recorded under its key."""
        del self._not_awaited[token]
        reserved = self._reserve_key(ctx, key)
        try:
            return await work(ctx, self._identify(reserved), request)
        except Suspension as suspension:
            self._suspended.setdefault(ctx.scope, []).append(suspension)
            raise
        finally:
            self._active_keys.discard(reserved)

    async def _composed(
        self, token: object, ctx: StepContext, _key: str, work: Work, request: object
    ) -> Any:
        """Performs a request that consists of keyed requests and is not recorded itself."""
        del self._not_awaited[token]
        return await work(self, ctx, request)

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        identity = self._identify(effect_key(ctx.scope, "now"))
        record = self._state.effect(identity)
        if record is not None:
            return float(record.reply)
        if self._closed:
            raise Suspension
        moment = self._services.clock.now()
        self._journal.record(ev.EffectFinished(identity, reply=moment))
        return moment

    async def _park(self, ctx: StepContext, identity: EffectId, until: float) -> None:
        payload_digest = digest(until)
        record = self.find_record(identity, payload_digest, ctx.step_id)
        if record is not None and record.done:
            return
        if record is None:
            self._journal.record(
                ev.EffectStarted(identity, EffectKind.PARK, payload_digest, {"until": until})
            )
        if self._services.clock.now() < until:
            raise ParkedUntil(Sleeping(until), until)
        self._journal.record(ev.EffectFinished(identity))

    def random(self, ctx: StepContext) -> random.Random:
        """Returns a random number generator that yields the same on every replay."""
        # Nothing is recorded: the seed follows from the run and from where the request is made.
        identity = self._identify(effect_key(ctx.scope, "random"))
        seed = f"{self._state.seed}/{ctx.step_id}/{ctx.visit}/{self._state.begun}/{identity}"
        return random.Random(seed)  # noqa: S311  # not used for secrets

    def spend(self) -> Spend:
        """Returns what the run has cost so far."""
        return self._journal.state.spend

    def progress(self, ctx: StepContext, message: str) -> None:
        """Passes a message on to the observers."""
        self._services.notify(Progress(self._journal.name, ctx.step_id, ctx.scope, message))

    def log(self, ctx: StepContext, text: str) -> None:
        """Records a line of the run's log, unless an earlier run of the handler has."""
        self._check_open(ctx, loop_here())
        # The handler runs again after a stop, and then logs what it could not log here.
        if not self._closed:
            self._log.add(ctx.scope, text)

    async def before_plain_code(self) -> None:
        """Prepares for code that may change the outside world without an effect."""
        # Otherwise a process that is killed in its second attempt would start with the first again.
        await self._journal.durable()

    def when_answering(self, scope: str, notify: Callable[[], None]) -> None:
        """Calls `notify` when an agent begins to answer a request of a scope, or fails to."""
        # An agent may stream from a thread of its own.
        self._when_answering[scope] = partial(self._loop.call_soon_threadsafe, notify)

    # Called by the runner

    def check_awaited(self, scope: str, step: str) -> None:
        """Suspends or refuses a handler that returned without the result of a request.

        A bare `except:` or `gather(..., return_exceptions=True)` around a wait would otherwise
        let a run continue without the human's answer, and a forgotten `await` without the work.
        """
        suspensions = self._suspended.get(scope)
        if suspensions:
            raise heaviest(suspensions)
        forgotten = [key for owner, key, _work in self._not_awaited.values() if owner == scope]
        if forgotten:
            raise errors.BadHandlerResult(
                f"the handler of step {step!r} requested {forgotten[0]!r} but did not await it, "
                "so nothing was done; write `await` before it"
            )

    def close(self) -> None:
        """Starts no new effects from here on: the run is about to stop."""
        self._closed = True

    def end(self) -> None:
        """Refuses all further requests: a task that the handler left running is too late."""
        self._closed = self._ended = True
        for _scope, _key, work in self._not_awaited.values():
            work.close()  # Python would warn about it as well.

    async def drain(self) -> None:
        """Waits until every effect in progress has ended and is recorded."""
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks)
            for task in done:
                # A task that was cancelled before its first step has not removed itself.
                if work := self._tasks.pop(task, None):
                    work.close()

    async def abort(self) -> None:
        """Stops every effect in progress and waits until all have ended."""
        self.close()
        # A task that is cancelled before its first step could not record that it was stopped.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await self.drain()

    # Finding or performing an effect

    def find_record(
        self, identity: EffectId, payload_digest: str, step: str
    ) -> EffectRecord | None:
        """Returns the record of an effect; raises if it was recorded for another request."""
        record = self._state.effect(identity)
        if record is not None and record.digest != payload_digest:
            if self._state.adopted or self._state.late:
                raise Outdated
            raise errors.NotDeterministic(
                f"the handler of step {step!r} is not deterministic: when replayed, it made "
                f"another request with the key {identity.rpartition('#')[0]!r} (use ctx.now() and "
                "ctx.random() for time and randomness, and give each effect its own key)"
            )
        return record

    def _reserve_key(self, ctx: StepContext, key: str) -> str:
        """Returns an effect's scope and key, which no other effect may use until it has ended."""
        self._check_open(ctx, asyncio.get_running_loop())
        reserved = effect_key(ctx.scope, key)
        if reserved in self._active_keys:
            raise errors.DuplicateKey(
                f"two concurrent effects in step {ctx.step_id!r} share the key {key!r}; "
                "give each its own key="
            )
        self._active_keys.add(reserved)
        return reserved

    def _check_open(self, ctx: StepContext, loop: asyncio.AbstractEventLoop | None) -> None:
        if self._ended:
            raise errors.UsageError(
                f"an effect was requested for step {ctx.step_id!r} of run {ctx.run!r} "
                "after its handler had ended; await it in the handler"
            )
        if loop is not self._loop:
            raise errors.UsageError(
                f"step {ctx.step_id!r} requested an effect from another thread; effects belong "
                "on the event loop of their run: await them in the handler"
            )

    def _identify(self, scope_and_key: str) -> EffectId:
        ordinal = self._ordinals.get(scope_and_key, 0) + 1
        self._ordinals[scope_and_key] = ordinal
        return EffectId(f"{scope_and_key}#{ordinal}")

    async def _replay_or_perform(self, ctx: StepContext, identity: EffectId, effect: Effect) -> Any:
        payload_digest = _request_digest(effect)
        record = self.find_record(identity, payload_digest, ctx.step_id)
        if record is not None and record.done:
            return _replay(effect, record)
        if effect.kind is EffectKind.WAIT:
            return self.inbox.answer(identity, effect.payload, payload_digest)
        if self._closed:
            raise Suspension
        if effect.kind is EffectKind.ASK:
            effect = self._with_current_agent(effect)
        self._services.performers.check(effect)
        agent = effect.payload.get("agent", "")
        call = EffectCall(ctx, identity, effect, payload_digest, self._limits, agent)
        if effect.kind is EffectKind.ASK and self._is_for_human(call):
            return ask_human(self._effect_runner, self.inbox, call, record)
        if effect.kind is EffectKind.ASK and ctx.scope in self._when_answering:
            call = call._replace(answering=self._when_answering[ctx.scope])
        if record is None:
            return await self._shielded(self._effect_runner.perform(call))
        # It was started, and its end is not recorded.
        return await self._shielded(settle(self._effect_runner, self.inbox, call, record))

    def _with_current_agent(self, effect: Effect) -> Effect:
        """Returns the effect with the agent that answers now: a replacement, or a role's agent."""
        # The digest names the workflow's agent, so switching agents keeps a request's identity.
        agent = to = effect.payload["agent"]
        if stand_ins := self._state.stand_ins:
            to = stand_ins.get(agent) or stand_ins.get(ev.ANY_AGENT, agent)
        if not self._services.performers.has_agent(to):
            to = self._roles.get(to, to)
        return effect if to == agent else effect._replace(payload={**effect.payload, "agent": to})

    def _is_for_human(self, call: EffectCall) -> bool:
        """Tells whether a human answers a request to an agent."""
        if self._services.performers.answered_by_human(call.agent):
            return True
        request = EffectId(f"{call.id}{BY_HUMAN}")
        if self._state.effect(request) is None:
            return False
        # The agent was switched since. A human's answer that is already there still counts.
        answered = self.inbox.answered(request)
        if not answered:
            self.inbox.dismiss(request)
        return answered

    def _shielded(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Starts an effect in a task of its own and returns a future for its reply.

        A handler may cancel one of its branches, as `asyncio.timeout` and task groups do. The
        call is paid for all the same, so it continues and its reply is recorded.
        """
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Any] = loop.create_future()
        self._tasks[loop.create_task(self._deliver(work, reply))] = work
        return reply

    async def _deliver(self, work: Coroutine[Any, Any, Any], reply: asyncio.Future[Any]) -> None:
        """Passes the result of an effect to its handler, if the handler still waits."""
        error: BaseException | None = None
        value = None
        try:
            value = await work
        except BaseException as raised:  # noqa: BLE001  # suspensions are handed over like errors
            error = raised
        if task := asyncio.current_task():
            del self._tasks[task]
        if reply.done():
            return
        if isinstance(error, asyncio.CancelledError):
            reply.cancel()
        elif error is not None:
            reply.set_exception(error)
        else:
            reply.set_result(value)


# What identifies a request, even if signoff words it in another way later.
#
# On replay a request has to match what the journal recorded under its key, or the recorded
# answer would be used for another question. For a prompt that a user wrote, every character
# counts. A prompt that signoff words itself carries its material: the values the prompt is
# about. Only the material counts then, so runs in progress survive an upgrade that words prompts
# better.


_WORDING = frozenset({"prompt", "system", "about", "shown", "shared", "text", "workspace"})
"""Where an agent may look things up is no part of the question, like the words that say so."""


def request_digest(effect: Effect) -> str:
    """Returns the digest that identifies a request on replay."""
    if effect.material is None:
        return digest(effect.payload)
    wording = _WORDING | {"schema"} if effect.own_schema else _WORDING
    rest = {name: value for name, value in effect.payload.items() if name not in wording}
    if effect.kind is EffectKind.WAIT and "options" in rest:
        # What an option means may be explained better too; what it is called counts.
        rest["options"] = [{**option, "description": ""} for option in rest["options"]]
    return digest({**rest, "material": effect.material})


def _request_digest(effect: Effect) -> str:
    try:
        return request_digest(effect)
    except errors.NotSerialisable as error:
        raise errors.NotSerialisable(f"effect {effect.key!r} cannot be stored: {error}") from error


def _replay(effect: Effect, record: EffectRecord) -> Any:
    """Returns the recorded reply of an effect, or raises its recorded error."""
    if record.error is not None:
        raise error_from_json(record.error)
    return reply_of(effect.kind, thaw(record.reply))


LONGEST_LINE = 4000
"""Characters of a line that are recorded: less than what is stored as a blob of its own."""


class StepLog:
    """What the handler of one attempt has logged so far in this process."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._seen: Counter[tuple[str, str]] = Counter()

    def add(self, scope: str, text: str) -> None:
        """Records a line unless it is a repeat; it is committed with what follows it."""
        line = self._journal.secrets.hide(text)
        if len(line) > LONGEST_LINE:
            line = f"{line[: LONGEST_LINE - 1]}…"
        key = line_digest(line)
        self._seen[scope, key] += 1
        recorded = self._journal.state.logged.get(scope, {}).get(key, 0)
        if self._seen[scope, key] > recorded:
            self._journal.record(Logged(line, scope))


def ask_human(
    runner: EffectRunner, inbox: RunInbox, call: EffectCall, record: EffectRecord | None
) -> Any:
    """Returns a human's answer as the agent's reply; raises `WaitingForAnswer` without one."""
    answer = inbox.ask(EffectId(f"{call.id}{BY_HUMAN}"), _request(call.effect.payload))
    call = call._replace(attempt=1 if record is None else record.attempt + 1)
    runner.record_start(call)
    if answer.failed:
        # Bad output, not an agent error: an attempt that knows the reason may do better.
        raise runner.record_failure(call, with_usage(AgentBadOutput(answer.value), FREE))
    reply = Reply(answer.value, answer.parsed, FREE, agent=call.agent, by=answer.by or None)
    return runner.record_reply(call, reply.to_json(), FREE)


def _request(payload: Mapping[str, Any]) -> Request:
    parts = [payload.get("system"), payload["prompt"]]
    # A human has no working copy, so the files are part of the prompt.
    files, edit = payload.get("files") or {}, payload.get("edit")
    parts += [f"----- {name} -----\n{text}" for name, text in files.items()]
    if files and edit:
        parts.append("Answer with the whole new text, and nothing else.")
    elif edit and payload.get("workspace") != PROJECT:
        parts.append(f"Work in this directory: {payload.get('workspace')}")
    prompt = "\n\n".join(filter(None, parts))
    return Response(prompt, payload.get("schema"), about=payload.get("about", {}))
