"""One attempt at a step: gives its handler effects, and replays the recorded ones.

When a process dies, the handler runs again from its top. Every effect it asks for is
looked up by scope, key and ordinal: a recorded reply is returned at once, a recorded
error raised, and only what was never recorded goes outside.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from signoff.core import events as ev
from signoff.core.checked import Checked, CheckedCall
from signoff.core.context import Chance, FanOutCall, StepContext
from signoff.core.digest import digest
from signoff.core.effects import Effect, EffectId, EffectKind, Reply
from signoff.core.frozen import thaw
from signoff.core.requests import Response
from signoff.core.run_state import EffectRecord
from signoff.core.spend import Limits
from signoff.core.stop_reason import Sleeping
from signoff.core.wording import replay_digest
from signoff.errors import (
    BadHandlerResult,
    DuplicateKey,
    NotDeterministic,
    NotSerialisable,
    UsageError,
)
from signoff.runtime.checked_request import ask_checked, map_checked
from signoff.runtime.effect_errors import FREE, error_from_json
from signoff.runtime.effect_runner import EffectCall, EffectRunner
from signoff.runtime.fanout import FanOut
from signoff.runtime.in_doubt import InDoubtRecovery
from signoff.runtime.journal import RunJournal
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Progress
from signoff.runtime.run_inbox import BY_HUMAN, RunInbox
from signoff.runtime.services import EngineServices
from signoff.runtime.suspension import Outdated, ParkedUntil, Suspension, heaviest
from signoff.runtime.working_copy import files_for_human

T = TypeVar("T")


class AttemptEffects:
    """Implements a context's effects for one attempt of one step."""

    def __init__(
        self,
        services: EngineServices,
        journal: RunJournal,
        effect_runner: EffectRunner,
        people: RunInbox,
        limits: Limits,
        roles: Mapping[str, str],
    ) -> None:
        self._services = services
        self._journal = journal
        self._state = journal.state
        self._effect_runner = effect_runner
        self.people = people
        self._limits = limits
        self._roles = roles
        """Which agent plays a role, where the settings do not say."""
        self._ordinals: dict[str, int] = {}
        self._busy: set[str] = set()
        self._tasks: dict[asyncio.Task[None], Coroutine[Any, Any, Any]] = {}
        """The effects under way, each with the work it does."""
        self._closed = False
        self._over = False
        self._loop = asyncio.get_running_loop()
        self._requests = 0
        self._unbegun: dict[int, tuple[str, str, Coroutine[Any, Any, Any]]] = {}
        """What was asked for and nobody waits for yet: its scope, key and work, by number."""
        self._suspended: dict[str, list[Suspension]] = {}
        """Why a handler or an item of a fan-out could not go on, by its scope."""

    # What a context asks for

    def perform(self, ctx: StepContext, effect: Effect) -> Awaitable[Any]:
        """Performs one effect durably, or returns what was recorded of it."""
        return self._requested(self._perform, ctx, effect.key, effect)

    def ask_checked(self, ctx: StepContext, call: CheckedCall[T]) -> Awaitable[Checked[T]]:
        """Asks until an answer is accepted, or a human decides about it."""
        return self._requested(self._checked, ctx, call.effect.key, ask_checked, call)

    def map(self, ctx: StepContext, fan: FanOutCall) -> Awaitable[list[Any]]:
        """Runs a fan-out, each item in a scope of its own."""
        if fan.otherwise is not None:
            return self._requested(self._checked, ctx, fan.key, map_checked, fan)
        return self._requested(self._map, ctx, fan.key, fan)

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        """Suspends the run until a time."""
        return self._requested(self._park, ctx, key, until, key)

    def _requested(
        self, start: Callable[..., Coroutine[Any, Any, T]], ctx: StepContext, key: str, *what: Any
    ) -> Awaitable[T]:
        number = self._requests = self._requests + 1
        asked = start(number, ctx, *what)
        self._unbegun[number] = (ctx.scope, key, asked)
        return asked

    async def _perform(self, number: int, ctx: StepContext, effect: Effect) -> Any:
        del self._unbegun[number]
        place = self._occupied(ctx, effect.key)
        try:
            return await self._known_or_new(ctx, self._identify(place), effect)
        except Suspension as suspension:
            self._note(ctx, suspension)
            raise
        finally:
            self._busy.discard(place)

    async def _checked(self, number: int, ctx: StepContext, perform: Any, call: Any) -> Any:
        del self._unbegun[number]
        return await perform(self, ctx, call)

    async def _map(self, number: int, ctx: StepContext, fan: FanOutCall) -> list[Any]:
        del self._unbegun[number]
        place = self._occupied(ctx, fan.key)
        try:
            return await FanOut(self, self._journal, ctx, fan, self._identify(place)).run()
        except Suspension as suspension:
            self._note(ctx, suspension)
            raise
        finally:
            self._busy.discard(place)

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        identity = self._identify(_place(ctx.scope, "now"))
        record = self._state.effect(identity)
        if record is not None:
            return float(record.reply)
        if self._closed:
            raise Suspension
        moment = self._services.clock.now()
        self._journal.record(ev.EffectFinished(identity, reply=moment))
        return moment

    async def _park(self, number: int, ctx: StepContext, until: float, key: str) -> None:
        del self._unbegun[number]
        self._check_open(ctx)
        identity = self._identify(_place(ctx.scope, key))
        shown = digest(until)
        record = self.recorded(identity, shown, ctx.step_id, key)
        if record is not None and record.done:
            return
        if record is None:
            self._journal.record(
                ev.EffectStarted(identity, EffectKind.PARK, shown, {"until": until})
            )
        if self._services.clock.now() < until:
            suspension = ParkedUntil(Sleeping(until), until)
            self._note(ctx, suspension)
            raise suspension
        self._journal.record(ev.EffectFinished(identity))

    def random(self, ctx: StepContext) -> Chance:
        """Returns a source of chance that is the same on every replay."""
        identity = self._identify(_place(ctx.scope, "random"))
        place = f"{self._state.seed}/{ctx.step_id}/{ctx.visit}/{self._state.begun}/{identity}"
        return random.Random(place)  # noqa: S311  # chance, not secrecy

    def progress(self, ctx: StepContext, message: str) -> None:
        """Tells whoever watches."""
        self._services.tell(Progress(self._journal.name, ctx.step_id, ctx.scope, message))

    def may_block(self) -> None:
        """Lets the engine know that ordinary code comes next."""
        self._services.may_block()

    # What the runner asks for

    def insist(self, scope: str, step: str) -> None:
        """Suspends or refuses a handler that returned although what it asked for is missing.

        A bare `except:` or `gather(..., return_exceptions=True)` around a wait would else let
        a run go on without the person it waits for, and a forgotten `await` without the work.
        """
        found = self._suspended.get(scope)
        if found:
            raise heaviest(found)
        forgotten = [key for of, key, _asked in self._unbegun.values() if of == scope]
        if forgotten:
            raise BadHandlerResult(
                f"the handler of step {step!r} asked for {forgotten[0]!r} and did not wait for "
                "it, so nothing was done; write `await` before it"
            )

    def close(self) -> None:
        """Lets nothing new go outside: the run is about to rest."""
        self._closed = True

    def end(self) -> None:
        """Lets nothing be asked for any more: what a handler left running comes too late."""
        self._closed = self._over = True
        for _scope, _key, asked in self._unbegun.values():
            asked.close()  # so that it is not complained about a second time

    async def drain(self) -> None:
        """Waits until every effect under way has ended and is recorded."""
        while self._tasks:
            ended, _ = await asyncio.wait(self._tasks)
            for task in ended:
                # Cancelled before it began, by a program that ends, it could not say so itself.
                if work := self._tasks.pop(task, None):
                    work.close()

    async def abort(self) -> None:
        """Stops every effect under way and waits until it is gone."""
        self.close()
        # One turn, so that each of them has begun: cancelled before, it would never say it ended.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await self.drain()

    # How an effect is found or performed

    def _note(self, ctx: StepContext, suspension: Suspension) -> None:
        self._suspended.setdefault(ctx.scope, []).append(suspension)

    def recorded(self, identity: EffectId, shown: str, step: str, key: str) -> EffectRecord | None:
        """Returns what is known of an effect; raises if it was something else before."""
        record = self._state.effect(identity)
        if record is not None and record.digest != shown:
            if self._state.adopted or self._state.late:
                raise Outdated
            raise NotDeterministic(
                f"the handler of step {step!r} is not deterministic: replayed, it asked for "
                f"something else under the key {key!r} (use ctx.now() and ctx.random() for time "
                "and chance, and give each effect a key of its own)"
            )
        return record

    def _occupied(self, ctx: StepContext, key: str) -> str:
        """Returns where an effect stands, and keeps any other from standing there meanwhile."""
        self._check_open(ctx)
        place = _place(ctx.scope, key)
        if place in self._busy:
            raise DuplicateKey(
                f"two effects under way in step {ctx.step_id!r} share the key {key!r}; "
                "give each its own key="
            )
        self._busy.add(place)
        return place

    def _check_open(self, ctx: StepContext) -> None:
        if self._over:
            raise UsageError(
                f"something was asked for in the name of step {ctx.step_id!r} of run {ctx.run!r} "
                "after its handler had ended; await it in the handler"
            )
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                f"step {ctx.step_id!r} asked for something from another thread; effects belong "
                "on the event loop of their run: await them in the handler"
            )

    def _identify(self, place: str) -> EffectId:
        ordinal = self._ordinals.get(place, 0) + 1
        self._ordinals[place] = ordinal
        return EffectId(f"{place}#{ordinal}")

    async def _known_or_new(self, ctx: StepContext, identity: EffectId, effect: Effect) -> Any:
        shown = self._recognized_by(identity, effect)
        record = self.recorded(identity, shown, ctx.step_id, effect.key)
        if record is not None and record.done:
            return _replayed(effect, record)
        if effect.kind is EffectKind.WAIT:
            return self.people.answer(identity, effect.payload, shown)
        if self._closed:
            raise Suspension
        if effect.kind is EffectKind.ASK:
            effect = self._as_switched(effect)
        self._services.performers.check(effect)
        call = EffectCall(ctx, identity, effect, shown, self._limits)
        if effect.kind is EffectKind.ASK:
            asked = EffectId(f"{identity}{BY_HUMAN}")
            by_human = self._services.performers.answered_by_human(effect.payload["agent"])
            # What a person has answered counts, whoever stands in by now.
            if by_human or self.people.answered(asked):
                return self._by_person(call, record)
            self.people.dismiss(asked)
        if record is None:
            return await self._shielded(self._effect_runner.perform(call))
        doubt = InDoubtRecovery(
            self._services.store, self._journal, self._effect_runner, self.people
        )
        return await self._shielded(doubt.settle(call, record))

    def _recognized_by(self, identity: EffectId, effect: Effect) -> str:
        try:
            return replay_digest(self._state, identity, effect, self._roles)
        except NotSerialisable as error:
            raise NotSerialisable(f"effect {effect.key!r} cannot be stored: {error}") from error

    def _as_switched(self, effect: Effect) -> Effect:
        """Returns the effect for whoever stands in; what it is known by stays the same."""
        agent = to = effect.payload["agent"]
        if stand_ins := self._state.stand_ins:
            to = stand_ins.get(agent) or stand_ins.get(ev.ANY_AGENT, agent)
        if not self._services.performers.knows(to):
            to = self._roles.get(to, to)
        return effect if to == agent else effect._replace(payload={**effect.payload, "agent": to})

    def _by_person(self, call: EffectCall, record: EffectRecord | None) -> Any:
        """Puts a prompt into the inbox; the answer counts as the agent's reply."""
        payload = call.effect.payload
        parts = [payload.get("system"), payload["prompt"]]
        if payload.get("files"):
            parts += files_for_human(payload["files"], edit=bool(payload.get("edit")))
        elif payload.get("edit"):
            parts.append(f"Work in this directory: {payload.get('workspace')}")
        about = payload.get("about", {})
        request = Response("\n\n".join(filter(None, parts)), payload.get("schema"), about=about)
        answer = self.people.ask(EffectId(f"{call.id}{BY_HUMAN}"), request)
        attempt = 1 if record is None else record.attempt + 1
        tried = call._replace(attempt=attempt)
        if answer.failed:
            raise self._effect_runner.given_up(tried, answer.value)
        reply = Reply(answer.value, answer.parsed, FREE, agent=payload["agent"])
        return self._effect_runner.given(tried, reply)

    def _shielded(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Starts an effect that goes on when its handler's branch is cancelled: it is paid for."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Any] = loop.create_future()
        self._tasks[loop.create_task(self._deliver(work, reply))] = work
        return reply

    async def _deliver(self, work: Coroutine[Any, Any, Any], reply: asyncio.Future[Any]) -> None:
        """Puts what an effect gave where its handler waits, if it still does."""
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


def _place(scope: str, key: str) -> str:
    if not key or key.startswith("!") or "[" in key or "]" in key:
        raise UsageError(
            f"an effect's key must be a text without brackets that does not begin with '!', "
            f"not {key!r}"
        )
    return f"{scope}/{key}" if scope else key


def _replayed(effect: Effect, record: EffectRecord) -> Any:
    """Returns what a finished effect gave, or raises what it raised."""
    if record.error is not None:
        raise error_from_json(record.error)
    return reply_of(effect.kind, thaw(record.reply))
