import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from signoff.agents.openai import OpenAIModel
from signoff.core.errors import AgentBadOutput, AgentBadRequest, AgentError, AgentTransient
from signoff.core.spend import Usage
from tests.agent_harness import TextReply, ask
from tests.agent_suite import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, PASS, SCHEMA, HttpHarness
from tests.stubs.openai import OpenAIServer


class TestOpenAIModel(AgentSuite):
    """The suite, with the fixture below."""


def body_of(harness: HttpHarness) -> dict[str, Any]:
    return harness.server.heard[-1].body


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
    monkeypatch.setenv(KEY_ENV, KEY)
    async with OpenAIServer() as server:
        await server.set_behaviors(TextReply(PASS))
        yield HttpHarness(server, OpenAIModel, "/v1")


async def test_a_schema_is_sent_to_servers_that_support_it(harness: HttpHarness) -> None:
    """The model cannot even begin to write something else."""
    await ask(harness.agent(), "Judge.", schema=SCHEMA)

    form = body_of(harness)["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"] == {"name": "answer", "schema": SCHEMA, "strict": True}
    assert harness.received_requests()[-1].prompt == "Judge."


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {**SCHEMA, "properties": {"verdict": {"type": "string", "minLength": 1}}},
        {**SCHEMA, "properties": {"verdict": {"type": "object", "properties": {}}}},
        {**SCHEMA, "required": []},
    ],
    ids=["open", "unknown keyword", "open inside", "optional"],
)
async def test_a_schema_that_is_not_strict_is_not_sent_as_strict(
    harness: HttpHarness, schema: dict[str, Any]
) -> None:
    """A schema good enough for every other agent must not fail here."""
    await harness.set_behaviors(TextReply('{"verdict": {}}'))

    with suppress(AgentBadOutput):
        await ask(harness.agent(), schema=schema)

    assert body_of(harness)["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize(
    ("structured", "form"), [("json", {"type": "json_object"}), ("prompt", None)]
)
async def test_for_other_servers_the_schema_is_put_into_the_prompt(
    harness: HttpHarness, structured: str, form: dict[str, str] | None
) -> None:
    """Older compatible servers refuse, or ignore, what they do not know."""
    reply = await ask(harness.agent(structured=structured), "Judge.", schema=SCHEMA)

    assert body_of(harness).get("response_format") == form
    assert '"verdict"' in harness.received_requests()[-1].prompt
    assert reply.value == {"verdict": "pass"}


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        ({"message": "Provider returned error", "code": 502}, AgentTransient),
        ({"message": "The server had an error", "type": "server_error"}, AgentTransient),
        ({"message": "This prompt is too long", "code": 400}, AgentBadRequest),
    ],
    ids=["gateway", "server", "request"],
)
async def test_an_error_inside_the_stream_is_an_error(
    harness: HttpHarness, error: dict[str, Any], meant: type[AgentError]
) -> None:
    """The status was 200 before anything went wrong."""
    harness.server.verbatim = [f"data: {json.dumps({'error': error})}\n\n"]

    with pytest.raises(meant):
        await ask(harness.agent())


async def test_a_refusal_of_the_model_is_not_an_answer(harness: HttpHarness) -> None:
    """An apology must not become the artifact."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"refusal": "I cannot help with that."}, "finish_reason": "stop"}
    harness.server.verbatim = [
        f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n",
        "data: [DONE]\n\n",
    ]

    with pytest.raises(AgentBadOutput, match="cannot help"):
        await ask(harness.agent())


async def test_the_cached_part_of_the_prompt_is_reported(harness: HttpHarness) -> None:
    """The server caches by itself; the count shows whether it did."""
    await harness.set_behaviors(TextReply("Yes.", usage=Usage(2000, 7, tokens_cached=1920)))

    usage = (await ask(harness.agent())).usage

    assert usage is not None
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_cache_write) == (2000, 1920, None)
