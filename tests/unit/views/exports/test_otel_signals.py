import json
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Status
from signoff.views.exports.otel import OtelSpan, RunSpans
from tests.unit.views.events import START, asks, at, journal


def signals(events: list[ev.Event], **options: Any) -> list[Any]:
    follow = RunSpans("first", **options)
    return [each for event in events for each in follow.apply(event)]


def spans(events: list[ev.Event], **options: Any) -> dict[str, OtelSpan]:
    found = [each for each in signals(events, **options) if isinstance(each, OtelSpan)]
    assert len({each.span_id for each in found}) == len(found)
    return {each.name if each.client else f"{each.name}": each for each in found}


def test_names_and_attributes_follow_the_conventions() -> None:
    """Backends show models, tokens and cost only if they find them under these names."""
    found = spans(journal())

    assert list(found) == ["chat opus", "draft", "wait", "invoke_agent codex", "sign",
                           "invoke_workflow docs"]  # fmt: skip
    run, step, call = found["invoke_workflow docs"], found["draft"], found["chat opus"]
    assert (run.parent_id, step.parent_id, call.parent_id) == ("", run.span_id, step.span_id)
    assert {each.trace_id for each in found.values()} == {run.trace_id}
    assert (call.client, run.client, found["invoke_agent codex"].client) == (True, False, False)
    assert (call.started_at, call.ended_at) == (START + 61, START + 71)
    assert call.attributes == {
        "signoff.effect.id": "draft#1",
        "signoff.effect.kind": "ask",
        "signoff.effect.result": "ok",
        "signoff.effect.try": 3,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.agent.name": "claude",
        "gen_ai.request.model": "opus",
        "gen_ai.response.model": "opus-1",
        "signoff.cost.usd": 0.5,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
    }
    assert run.attributes["gen_ai.workflow.name"] == "docs"
    assert run.attributes["signoff.cost.usd"] == 0.5
    assert run.attributes["signoff.cost.unknown_calls"] == 3
    failed = found["invoke_agent codex"]
    assert failed.failed
    assert failed.attributes["error.type"] == "AgentRefused"


def test_every_count_of_a_reply_has_its_name() -> None:
    """Prompt caches and thinking are where the money goes."""
    usage = {
        "tokens_in": 9, "tokens_out": 8, "tokens_cached": 7, "tokens_cache_write": 6,
        "tokens_reasoning": 5,
    }  # fmt: skip
    reply = {"text": "x", "session": "s-1", "finish": "stop"}
    ended = ev.EffectFinished(EffectId("draft#1"), reply, usage=usage)
    found = signals([*journal()[:2], at(1, asks("draft#1")), at(2, ended)])

    attributes = found[0].attributes
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 7
    assert attributes["gen_ai.usage.cache_creation.input_tokens"] == 6
    assert attributes["gen_ai.usage.reasoning.output_tokens"] == 5
    assert attributes["gen_ai.conversation.id"] == "s-1"
    assert attributes["gen_ai.response.finish_reasons"] == ["stop"]


def test_content_is_left_out_unless_it_is_asked_for() -> None:
    """Prompts and replies hold what users must not share with a monitoring service."""
    item = at(72, ev.ItemFinished("critics[0]", {}))
    events = [*journal()[:9], item, *journal()[9:]]

    without = str(signals(events))
    with_content = signals(events, content=True)

    assert "secret" not in without
    calls = [each for each in with_content if isinstance(each, OtelSpan) and each.client]
    (call,) = [each for each in calls if each.attributes["signoff.effect.result"] == "ok"]
    assert json.loads(str(call.attributes["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "secret reply"}]}
    ]


def test_the_ids_depend_on_the_run_and_on_nothing_else() -> None:
    """The same journal is the same trace on every machine; another run is another trace."""
    other = journal()
    other[0] = at(0, ev.RunStarted("docs", "definition", "draft", {}, seed="another key"))

    mine = {each.span_id for each in spans(journal()).values()}

    assert mine == {each.span_id for each in spans(journal(), content=True).values()}
    assert mine.isdisjoint(each.span_id for each in spans(other).values())


@pytest.mark.parametrize("hostile", ["half \ud83d", "x" * 10_000, "a\x00b\x1b[2J", "", "\u202e"])
def test_hostile_names_reach_no_collector_as_they_are(hostile: str) -> None:
    """One bad character must not make a collector refuse the whole batch."""
    start = ev.EffectStarted(EffectId("e#1"), EffectKind.ASK, "d", {"agent": hostile, "prompt": ""})
    end = ev.EffectFinished(EffectId("e#1"), {"text": ""}, usage={"model": hostile, "usd": -1.0})

    (span,) = [
        each
        for each in signals([*journal()[:2], at(1, start), at(2, end)])
        if isinstance(each, OtelSpan)
    ]

    assert len(span.name.encode()) < 1100
    assert all(len(str(each).encode()) < 1100 for each in span.attributes.values())
    assert "signoff.cost.usd" not in span.attributes


def test_what_has_not_ended_is_a_span_up_to_now() -> None:
    """A run that waits can be looked at."""
    follow = RunSpans("first")
    for event in journal()[:12]:
        follow.apply(event)

    found = [each for each in follow.unfinished() if isinstance(each, OtelSpan)]

    assert [each.name for each in found] == ["wait", "sign", "invoke_workflow docs"]
    assert {each.ended_at for each in found} == {START + 73}
    assert found[-1].attributes["signoff.status"] == Status.WAITING
