"""Fan-out: `ctx.map` runs its handler for every item at once, each in a scope of its own.

An item may perform several effects, wait for a human, and fail, without affecting the others.
When it finishes, its result is recorded, and a replay returns that result without running the
item again: otherwise, answering the requests of a thousand items one by one would run a
thousand items each time. An item that waits lets the others continue, and one that fails is
retried alone. The fan-out itself returns, raises or suspends only after all items have ended.

Items whose prompts begin alike may form a group. Then the first of them goes ahead, so that it
fills the provider's prompt cache: if all started at once, each would pay for the common part.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.core import errors
from signoff.core import events as ev
from signoff.core import transitions as rules
from signoff.core.checked import CheckedCall, CheckedReply, Otherwise, corrected
from signoff.core.context import EffectPort, Failure, FanOutCall, StepContext
from signoff.core.digest import digest
from signoff.core.effects import EffectId, EffectKind, Reply
from signoff.core.fold import answers_in, item_scope
from signoff.core.frozen import freeze, thaw
from signoff.core.one_line import cut
from signoff.core.stop_reason import AnswerPending
from signoff.runtime.effect_errors import error_info
from signoff.runtime.error_text import describe_error, error_message
from signoff.runtime.handlers import awaited, passes_through
from signoff.runtime.journal import RunJournal
from signoff.runtime.suspension import Suspension, WaitingForAnswer, heaviest

if TYPE_CHECKING:
    from signoff.runtime.attempt_effects import AttemptEffects


FELL_SHORT = (errors.StepFailed, errors.AgentBadOutput, errors.AgentTimeout)
"""Errors about content: an attempt that knows the reason may do better."""


@dataclass
class FanOut:
    """One call of `ctx.map`."""

    effects: AttemptEffects
    journal: RunJournal
    ctx: StepContext
    fan: FanOutCall
    identity: EffectId
    _blocked: dict[str, float | None] = field(default_factory=dict)
    """Items that can do nothing but wait for a human, with their first deadline."""
    _failed: dict[str, str] = field(default_factory=dict)
    """Failures that the handler got before the replay, by the item's index."""
    _final_errors: list[errors.SignoffError] = field(default_factory=list)
    """Errors that the operator or the author has to fix."""
    _leaders: dict[str, asyncio.Event] = field(default_factory=dict)
    """By cache group, what is set when the agent of its first item begins to answer."""

    async def run(self) -> list[Any]:
        """Runs all items and returns their results in order."""
        items = list(self.fan.items)
        self._begin(items)
        scopes = [f"{self.identity}[{index}]" for index in range(len(items))]
        if not self.journal.state.adopted:
            # With a changed definition, they may make other requests.
            self._blocked = self.effects.inbox.blocked(scopes)
        limit = self.fan.concurrency
        slots = asyncio.Semaphore(limit) if limit else nullcontext()
        groups = [self.fan.cache_group(item) if self.fan.cache_group else None for item in items]
        numbered = zip(range(len(items)), scopes, items, groups, strict=True)
        ended = await asyncio.gather(*(self._item(*each, slots) for each in numbered))
        # All items have ended by now. A suspension goes first: the failures of other items are
        # recorded, and the replay after the wait returns them.
        resting = [end for end in ended if isinstance(end, Suspension)]
        if resting:
            raise heaviest(resting)
        if self._final_errors and self.fan.on_failure == "ask":
            # No human can fix this by a choice: the run fails, and a resume runs these items again.
            raise self._final_errors[0]
        failures = {end.index: end.error for end in ended if isinstance(end, Failure)}
        if failures and not self._failed:
            self._record(failures)
        if failures and self.fan.on_failure == "raise":
            raise errors.ItemsFailed(self.fan.key, failures, len(items))
        return ended

    def _begin(self, items: list[Any]) -> None:
        """Records a digest of the items, so that a replay with other items is detected."""
        try:
            items_digest = digest(items)
        except errors.NotSerialisable:
            # Items may be any objects; of those that are not JSON only the number is compared.
            items_digest = digest(len(items))
        record = self.effects.find_record(self.identity, items_digest, self.ctx.step_id)
        if record is None:
            payload = {"items": len(items)}
            self.journal.record(
                ev.EffectStarted(self.identity, EffectKind.MAP, items_digest, payload)
            )
        elif record.error is not None:
            self._failed = record.error["failures"]

    def _record(self, failures: dict[int, str]) -> None:
        """Records the failures that the handler is about to get.

        It may handle them and then wait for a human. A replay must not run these items again.
        """
        by_index = {str(index): problem for index, problem in failures.items()}
        error = {"type": errors.ItemsFailed.__name__, "failures": by_index}
        self.journal.record(ev.EffectFinished(self.identity, error=error))

    async def _item(
        self,
        index: int,
        scope: str,
        item: Any,
        group: str | None,
        slots: AbstractAsyncContextManager[Any],
    ) -> Any:
        done = self.journal.state.items
        if scope in done:
            return thaw(done[scope])
        if str(index) in self._failed:
            return self._failure(self._failed[str(index)], index, scope)
        if scope in self._blocked:
            return WaitingForAnswer(AnswerPending(), self._blocked[scope])
        # The first item of a group that comes here goes ahead. Only items that run can lead: the
        # ones above have nothing left to send.
        own = None
        if group is not None and group not in self._leaders:
            self._leaders[group] = own = asyncio.Event()
        try:
            if group is not None and own is None:
                # Waiting holds no slot: the item that is waited for may need it.
                await self._leaders[group].wait()
            async with slots:
                return await self._attempts(index, scope, item, own)
        except Suspension as suspension:
            return suspension
        finally:
            # However the leader ends, the others must not wait any longer.
            _let_others_start(own)

    async def _attempts(
        self, index: int, scope: str, item: Any, answering: asyncio.Event | None
    ) -> Any:
        """Tries an item until it has ended; `answering` is set when its agent begins to answer."""
        state = self.journal.state
        if self._used(scope) > self.fan.retries:
            # It had used its retries before the run stopped because of another item.
            return self._failure(state.item_failures[scope][-1], index, scope)
        first = self.fan.feedback[index] if self.fan.feedback else self.ctx.feedback
        while True:
            earlier = state.item_failures.get(scope, [])
            attempt = len(earlier) + 1
            feedback = earlier[-1] if earlier else first
            answers = answers_in(state, item_scope(scope, attempt - 1)) if earlier else {}
            in_scope, number = item_scope(scope, attempt), self.fan.tried + attempt
            ctx = self.ctx.in_item(in_scope, number, feedback, answers)
            if answering is not None:
                self.effects.when_answering(ctx.scope, answering.set)
            try:
                result = await awaited(self.fan.handler(ctx, item))
                self.effects.check_awaited(ctx.scope, ctx.step_id)
                self.effects.inbox.close(ctx.scope)
                return self._finished(scope, result)
            except BaseException as error:  # an item's failure must not reach its siblings
                if passes_through(error):
                    raise
                if isinstance(error, errors.OperatorError | errors.AuthorError):
                    self._final_errors.append(error)
                _let_others_start(answering)
                problem, fresh = _error_text(error), isinstance(error, FELL_SHORT)
                self.journal.record(ev.ItemFailed(scope, problem, fresh))
                position = rules.RequestPosition(self._used(scope), self.fan.retries)
                fact = (
                    rules.FellShort(problem)
                    if fresh
                    else rules.Raised(error_info(error, ctx.step_id))
                )
                if isinstance(rules.decide_request(position, fact), rules.GiveUp):
                    return Failure(problem, index, number)

    def _failure(self, problem: str, index: int, scope: str) -> Failure:
        """Returns a failure of before, as the handler got it then."""
        failures = len(self.journal.state.item_failures.get(scope, ()))
        # An attempt that could not be judged is not recorded with the others.
        return Failure(problem, index, self.fan.tried + max(failures, 1))

    def _used(self, scope: str) -> int:
        """Returns how many attempts of an item count as used; a resume forgives earlier ones."""
        state = self.journal.state
        return len(state.item_failures.get(scope, ())) - state.forgiven.get(scope, 0)

    def _finished(self, scope: str, result: Any) -> Any:
        self.journal.refuse_secrets(result, self.ctx.step_id)
        try:
            self.journal.record(ev.ItemFinished(scope, result))
        except errors.NotSerialisable as error:
            raise errors.NotSerialisable(
                f"an item of {self.fan.key!r} returned {type(result).__name__}, which cannot be "
                "stored; return text, numbers, lists or dicts (of a reply, its .text or .value)"
            ) from error
        return thaw(freeze(result))


def _let_others_start(answering: asyncio.Event | None) -> None:
    if answering is not None:
        answering.set()


def _error_text(error: BaseException) -> str:
    if isinstance(error, errors.SignoffError):
        return error_message(error) or type(error).__name__
    return describe_error(error)


# Checked requests: ask, check the answer, retry with every problem, then ask a human.
#
# `read` parses an answer and raises `AgentBadOutput` with everything that is wrong with it. Then
# the same rules as for steps decide (`core.transitions`): while retries are left, the request is
# sent again with the previous answer and its problems added to the prompt; after that a usable
# answer is accepted, a human is asked if the caller provided an `otherwise`, and without one the
# error is raised.
#
# There is no state of its own to store. Every call and every question to the human is an ordinary
# effect, recorded under its key and ordinal, and `read` depends on nothing but the replies so far.
# So when the handler is replayed, this loop gets the same replies, decides the same, and arrives
# where it was without a call. That is also why the correction must be deterministic: it is part of
# the next request, and a replay compares it.


T = TypeVar("T")


async def ask_checked(port: EffectPort, ctx: StepContext, call: CheckedCall[T]) -> CheckedReply[T]:
    """Returns an answer that `read` or a human accepted."""
    effect, attempt = call.effect, 1
    sent_back: tuple[str, ...] = ()
    while True:
        reply: Reply | None = None
        try:
            reply = await port.perform(ctx, effect)
            return CheckedReply(call.read(reply), sent_back=sent_back)
        except errors.AgentBadOutput as error:
            bad = error
            beginning = reply.text if reply is not None else error.partial
            reply = reply or Reply(error.answer)
        wrong = bad.problems
        if call.salvage is not None and bad.value is None:
            wrong = (*wrong, *call.salvage(beginning or reply.text))
        last: CheckedReply[Any] = CheckedReply(bad.value, wrong, sent_back, reply=reply)
        fact = rules.FellShort(str(bad), usable=bad.usable)
        tried = rules.RequestPosition(attempt, call.retries)
        decision, last = await _decide(ctx, call.otherwise, last, tried, fact)
        if isinstance(decision, rules.GiveUp):
            raise bad
        if not isinstance(decision, rules.Retry):
            return last
        # A retry that a human chose comes with as many automatic retries as the first call had.
        attempt = 1 if decision.by_human else attempt + 1
        sent_back = last.problems
        remark = last.answer.text if last.answer is not None else ""
        problems = [*sent_back, *([remark] if remark else [])]
        agent = effect.payload["agent"]
        ctx.progress(f"{effect.key}: sent back to {agent}: {'; '.join(problems)}")
        effect = corrected(call.effect, reply if call.show_previous else None, problems)


async def map_checked(port: EffectPort, ctx: StepContext, fan: FanOutCall) -> list[Any]:
    """Returns the results of all items; a human decides whether failed ones are retried."""
    results = list(fan.items)
    remaining = list(range(len(results)))
    feedback: tuple[str, ...] = ()
    tried = 0
    while True:
        items = [fan.items[index] for index in remaining]
        # Each round is a fan-out of its own with the same key and the next ordinal.
        fan_round = replace(
            fan, items=items, on_failure="ask", otherwise=None, feedback=feedback, tried=tried
        )
        for index, result in zip(remaining, await port.map(ctx, fan_round), strict=True):
            # Its index counts the items of this round; the caller knows those of the whole.
            failed = isinstance(result, Failure)
            results[index] = replace(result, index=index) if failed else result
        failures = [result for result in results if isinstance(result, Failure)]
        if not failures:
            return results
        last = CheckedReply(results, tuple(failure.error for failure in failures))
        # The items have used up their retries, so only the human can grant another round.
        fact = rules.FellShort("; ".join(last.problems))
        decision, last = await _decide(ctx, fan.otherwise, last, rules.RequestPosition(1, 0), fact)
        if not isinstance(decision, rules.Retry):
            return results
        remaining = [failure.index for failure in failures]
        feedback = tuple(rules.with_remark(each, decision.feedback) for each in last.problems)
        tried += fan.retries + 1


async def _decide(
    ctx: StepContext,
    otherwise: Otherwise[T] | None,
    last: CheckedReply[T],
    position: rules.RequestPosition,
    fact: rules.FellShort,
) -> tuple[rules.RequestDecision, CheckedReply[T]]:
    """Returns the decision about a bad answer, after asking the human if the rules say so."""
    if otherwise is None:
        return rules.decide_request(position, fact), last
    request = otherwise.request(last)
    if not request.labels:
        raise errors.UsageError("otherwise= takes a Choice, or an Otherwise that returns one")
    position = position._replace(options=request.labels)
    decision = rules.decide_request(position, fact)
    if not isinstance(decision, rules.Wait):
        return decision, last
    if last.reply is not None:
        # Nobody decides about an answer that they cannot see.
        reply = cut(last.reply.text) or None
        request = replace(request, shown={**request.shown, "reply": reply})
    answer = await ctx.wait(request, key=otherwise.key)
    chosen = rules.Chosen(answer.value, answer.text)
    return rules.decide_request(position, chosen), replace(last, answer=answer)
