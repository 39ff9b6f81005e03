"""Asks, checks, sends back with every problem, and then asks a human.

The rules in `core.transitions` decide about each answer. Here the decision is performed: every
try and every question is an effect of its own, so a replay takes the same path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from signoff.core.checked import Checked, CheckedCall, Otherwise
from signoff.core.context import EffectPort, Failure, FanOutCall, StepContext
from signoff.core.correction import corrected
from signoff.core.effects import Reply
from signoff.core.request_rules import GiveUp, RequestDecision, RequestPosition, decide_request
from signoff.core.transitions import Chosen, FellShort, Retry, Wait
from signoff.errors import AgentBadOutput, UsageError

T = TypeVar("T")


async def ask_checked(port: EffectPort, ctx: StepContext, call: CheckedCall[T]) -> Checked[T]:
    """Returns an answer that was accepted, by its reader or by a human."""
    effect, attempt = call.effect, 1
    sent_back: tuple[str, ...] = ()
    while True:
        reply: Reply | None = None
        try:
            reply = await port.perform(ctx, effect)
            return Checked(call.read(reply), sent_back=sent_back)
        except AgentBadOutput as error:
            bad = error
            reply = reply or Reply(error.answer)
        last: Checked[Any] = Checked(bad.value, bad.problems, sent_back)
        fact = FellShort(str(bad), usable=bad.usable)
        tried = RequestPosition(attempt, call.retries)
        decision, last = await _decide(ctx, call.otherwise, last, tried, fact)
        if isinstance(decision, GiveUp):
            raise bad
        if not isinstance(decision, Retry):
            return last
        # A human's retry begins a new series of tries.
        attempt = 1 if decision.by_person else attempt + 1
        sent_back = last.problems
        remark = last.answer.text if last.answer is not None else ""
        problems = [*sent_back, *([remark] if remark else [])]
        agent = effect.payload["agent"]
        ctx.progress(f"{effect.key} by {agent} is sent back: {'; '.join(problems)}")
        effect = corrected(call.effect, reply if call.show_previous else None, problems)


async def map_checked(port: EffectPort, ctx: StepContext, fan: FanOutCall) -> list[Any]:
    """Returns the results of all items; a human decides how often failed ones are worked again."""
    results = list(fan.items)
    left = list(range(len(results)))
    while True:
        items = [fan.items[index] for index in left]
        again = replace(fan, items=items, on_failure="ask", otherwise=None)
        for index, end in zip(left, await port.map(ctx, again), strict=True):
            results[index] = replace(end, index=index) if isinstance(end, Failure) else end
        failures = [end for end in results if isinstance(end, Failure)]
        if not failures:
            return results
        last = Checked(results, tuple(failure.error for failure in failures))
        # Each item has used its own retries by now.
        fact = FellShort("; ".join(last.problems))
        decision, _ = await _decide(ctx, fan.otherwise, last, RequestPosition(1, 0), fact)
        if not isinstance(decision, Retry):
            return results
        left = [failure.index for failure in failures]


async def _decide(
    ctx: StepContext,
    otherwise: Otherwise[T] | None,
    last: Checked[T],
    position: RequestPosition,
    fact: FellShort,
) -> tuple[RequestDecision, Checked[T]]:
    """Returns what follows, a human's answer included where the rules want one."""
    if otherwise is None:
        return decide_request(position, fact), last
    request = otherwise.request(last)
    if not request.labels:
        raise UsageError("otherwise= takes a Choice, or an Otherwise that returns one")
    position = position._replace(options=request.labels)
    decision = decide_request(position, fact)
    if not isinstance(decision, Wait):
        return decision, last
    answer = await ctx.wait(request, key=otherwise.key)
    chosen = Chosen(answer.value, answer.text)
    return decide_request(position, chosen), replace(last, answer=answer)
