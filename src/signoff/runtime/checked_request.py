"""Checked requests: ask, check the answer, retry with every problem, then ask a human.

`read` parses an answer and raises `AgentBadOutput` with everything that is wrong with it. Then
the same rules as for steps decide (`core.request_rules`): while retries are left, the request is
sent again with the previous answer and its problems added to the prompt; after that a usable
answer is accepted, a human is asked if the caller provided an `otherwise`, and without one the
error is raised.

There is no state of its own to store. Every call and every question to the human is an ordinary
effect, recorded under its key and ordinal, and `read` depends on nothing but the replies so far. So
when the handler is replayed, this loop gets the same replies, decides the same, and arrives where
it was without a call. That is also why the correction must be deterministic: it is part of the
next request, and a replay compares it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from signoff.core.checked import Checked, CheckedCall, Otherwise
from signoff.core.context import EffectPort, Failure, FanOutCall, StepContext
from signoff.core.correction import corrected
from signoff.core.effects import Reply
from signoff.core.one_line import cut
from signoff.core.request_rules import GiveUp, RequestDecision, RequestPosition, decide_request
from signoff.core.transitions import Chosen, FellShort, Retry, Wait, with_remark
from signoff.errors import AgentBadOutput, UsageError

T = TypeVar("T")


async def ask_checked(port: EffectPort, ctx: StepContext, call: CheckedCall[T]) -> Checked[T]:
    """Returns an answer that `read` or a human accepted."""
    effect, attempt = call.effect, 1
    sent_back: tuple[str, ...] = ()
    while True:
        reply: Reply | None = None
        try:
            reply = await port.perform(ctx, effect)
            return Checked(call.read(reply), sent_back=sent_back)
        except AgentBadOutput as error:
            bad = error
            beginning = reply.text if reply is not None else error.partial
            reply = reply or Reply(error.answer)
        problems = bad.problems
        if call.salvage is not None and bad.value is None:
            problems = (*problems, *call.salvage(beginning or reply.text))
        last: Checked[Any] = Checked(bad.value, problems, sent_back, reply=reply)
        fact = FellShort(str(bad), usable=bad.usable)
        tried = RequestPosition(attempt, call.retries)
        decision, last = await _decide(ctx, call.otherwise, last, tried, fact)
        if isinstance(decision, GiveUp):
            raise bad
        if not isinstance(decision, Retry):
            return last
        # A retry that a human chose comes with as many automatic retries as the first call had.
        attempt = 1 if decision.by_human else attempt + 1
        sent_back = last.problems
        remark = last.answer.text if last.answer is not None else ""
        wrong = [*sent_back, *([remark] if remark else [])]
        agent = effect.payload["agent"]
        ctx.progress(f"{effect.key}: sent back to {agent}: {'; '.join(wrong)}")
        effect = corrected(call.effect, reply if call.show_previous else None, wrong)


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
        last = Checked(results, tuple(failure.error for failure in failures))
        # The items have used up their retries, so only the human can grant another round.
        fact = FellShort("; ".join(last.problems))
        decision, last = await _decide(ctx, fan.otherwise, last, RequestPosition(1, 0), fact)
        if not isinstance(decision, Retry):
            return results
        remaining = [failure.index for failure in failures]
        feedback = tuple(with_remark(each, decision.feedback) for each in last.problems)
        tried += fan.retries + 1


async def _decide(
    ctx: StepContext,
    otherwise: Otherwise[T] | None,
    last: Checked[T],
    position: RequestPosition,
    fact: FellShort,
) -> tuple[RequestDecision, Checked[T]]:
    """Returns the decision about a bad answer, after asking the human if the rules say so."""
    if otherwise is None:
        return decide_request(position, fact), last
    request = otherwise.request(last)
    if not request.labels:
        raise UsageError("otherwise= takes a Choice, or an Otherwise that returns one")
    position = position._replace(options=request.labels)
    decision = decide_request(position, fact)
    if not isinstance(decision, Wait):
        return decision, last
    if last.reply is not None:
        # Nobody decides about an answer that they cannot see.
        reply = cut(last.reply.text) or None
        request = replace(request, shown={**request.shown, "reply": reply})
    answer = await ctx.wait(request, key=otherwise.key)
    chosen = Chosen(answer.value, answer.text)
    return decide_request(position, chosen), replace(last, answer=answer)
