import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from signoff.agents.anthropic import AnthropicModel
from signoff.core.effects import AgentRequest, ProductPrompt
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentTransient,
)
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.prompts import build_critic_prompt
from tests.agent_harness import TextReply, ask, call_for
from tests.agent_suite import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, PASS, SCHEMA, HttpHarness
from tests.stubs.anthropic import AnthropicServer


class TestAnthropicModel(AgentSuite):
    """The suite, with the fixture below."""


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
    monkeypatch.setenv(KEY_ENV, KEY)
    async with AnthropicServer() as server:
        await server.set_behaviors(TextReply(PASS))
        yield HttpHarness(server, AnthropicModel)


def body_of(harness: HttpHarness) -> dict[str, Any]:
    return harness.server.heard[-1].body


def events(*data: dict[str, Any]) -> list[str]:
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in data]


START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 1000,
            "output_tokens": 1,
        },
    },
}


def ending(reason: str) -> tuple[dict[str, Any], ...]:
    block = {"type": "text", "text": ""}
    return (
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Well."},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    )


async def test_a_schema_becomes_the_tool_the_model_has_to_use(harness: HttpHarness) -> None:
    """Every model knows tools; output schemas only the recent ones."""
    reply = await ask(harness.agent(), "Judge.", schema=SCHEMA)

    body = body_of(harness)
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert body["tool_choice"] == {"type": "tool", "name": body["tools"][0]["name"]}
    assert harness.received_requests()[-1].prompt == "Judge."
    assert reply.value == {"verdict": "pass"}


async def test_a_schema_can_be_left_to_the_model_itself(harness: HttpHarness) -> None:
    """A model that thinks cannot be forced to use a tool."""
    reply = await ask(harness.agent(structured="schema"), "Judge.", schema=SCHEMA)

    assert body_of(harness)["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    assert "tools" not in body_of(harness)
    assert reply.value == {"verdict": "pass"}


async def test_a_schema_can_be_put_into_the_prompt(harness: HttpHarness) -> None:
    """Gateways to other models know neither."""
    reply = await ask(harness.agent(structured="prompt"), "Judge.", schema=SCHEMA)

    assert not {"tools", "output_config"} & set(body_of(harness))
    assert '"verdict"' in harness.received_requests()[-1].prompt
    assert reply.value == {"verdict": "pass"}


async def test_the_length_of_an_answer_has_a_default_that_can_be_raised(
    harness: HttpHarness,
) -> None:
    """The API insists on a bound, and a draft may need more than most."""
    await ask(harness.agent())
    await ask(harness.agent(max_tokens=100))
    await ask(harness.agent(max_tokens=100), options={"max_tokens": 20_000})

    sent = [heard.body["max_tokens"] for heard in harness.server.heard]
    assert sent == [8192, 100, 20_000]


async def test_tokens_read_from_a_cache_are_counted(harness: HttpHarness) -> None:
    """They cost less, but they are not nothing."""
    harness.server.verbatim = events(START, *ending("end_turn"))

    usage = (await ask(harness.agent())).usage

    assert usage is not None
    assert (usage.tokens_in, usage.tokens_out) == (1105, 9)
    assert (usage.tokens_cached, usage.tokens_cache_write) == (1000, 100)


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "model_context_window_exceeded"])
async def test_an_incomplete_answer_is_refused(harness: HttpHarness, reason: str) -> None:
    """What is there reads like an answer."""
    harness.server.verbatim = events(START, *ending(reason))

    with pytest.raises(AgentBadOutput):
        await ask(harness.agent())


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("overloaded_error", AgentTransient),
        ("api_error", AgentTransient),
        ("rate_limit_error", AgentTransient),
        ("invalid_request_error", AgentBadRequest),
        ("authentication_error", AgentAuth),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(
    harness: HttpHarness, kind: str, meant: type[AgentError]
) -> None:
    """The status was 200 before anything went wrong."""
    error = {"type": "error", "error": {"type": kind, "message": "Something"}}
    harness.server.verbatim = events(START, error)

    with pytest.raises(AgentError) as raised:
        await ask(harness.agent())

    assert type(raised.value) is meant


CACHED = {"type": "ephemeral"}
ARTIFACT = "The quick brown fox jumps over the lazy dog. " * 400


def review_of(constraint: str, artifact: str = ARTIFACT) -> ProductPrompt:
    return build_critic_prompt(goal="A text.", artifact=artifact, constraint=Constraint(constraint))


def asking_for(constraint: str, **options: Any) -> AgentRequest:
    prompt = review_of(constraint)
    return AgentRequest(str(prompt), shared=prompt.shared, **options)


async def test_what_critics_share_is_marked_for_the_cache(harness: HttpHarness) -> None:
    """The API caches nothing by itself: without the mark, each critic pays for the artifact."""
    requests = [asking_for(name, system="You review.") for name in ("style", "structure")]
    for request in requests:
        await harness.set_behaviors(TextReply("Fine."))
        await harness.agent().ask(request, call_for())

    bodies = [heard.body for heard in harness.server.heard]
    (shared, style), (same, structure) = [body["messages"][0]["content"] for body in bodies]
    assert shared == same
    assert shared["cache_control"] == CACHED
    assert ARTIFACT.strip() in shared["text"]
    assert "style" in style["text"]
    assert "structure" in structure["text"]
    assert "cache_control" not in style
    seen = [received.prompt for received in harness.received_requests()]
    assert seen == [request.prompt for request in requests]


@pytest.mark.parametrize(
    "request_",
    [
        AgentRequest("Write a poem. " * 400, system="You write. " * 400),
        AgentRequest("Short. Review it.", shared=6),
        AgentRequest("All of it is shared. " * 400, shared=21 * 400),
    ],
    ids=["not shared", "short", "nothing of its own"],
)
async def test_a_request_that_a_cache_cannot_help_is_not_marked(
    harness: HttpHarness, request_: AgentRequest
) -> None:
    """Writing to the cache costs more than reading it saves unless another request follows."""
    await harness.agent().ask(request_, call_for())

    assert body_of(harness)["messages"] == [{"role": "user", "content": request_.prompt}]
    assert body_of(harness).get("system") == request_.system
