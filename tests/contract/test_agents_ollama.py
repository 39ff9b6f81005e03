import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from signoff.agents.ollama import OllamaModel
from signoff.core.errors import AgentBadRequest, AgentTransient
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import usage_of
from tests.agent_harness import TextReply, ask
from tests.agent_suite import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, PASS, SCHEMA, HttpHarness
from tests.stubs.ollama import OllamaServer


class TestOllamaModel(AgentSuite):
    @pytest.fixture
    async def harness(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
        monkeypatch.setenv(KEY_ENV, KEY)
        async with OllamaServer() as server:
            yield HttpHarness(server, OllamaModel, num_ctx=500_000)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OllamaServer]:
    monkeypatch.setenv(KEY_ENV, KEY)
    async with OllamaServer() as server:
        await server.set_behaviors(TextReply(PASS))
        yield server


@pytest.fixture
def harness(server: OllamaServer) -> HttpHarness:
    return HttpHarness(server, OllamaModel)


def body_of(harness: HttpHarness) -> dict[str, Any]:
    return harness.server.heard[-1].body


async def test_the_window_is_always_stated(harness: HttpHarness) -> None:
    """Left to itself the server takes a small one and cuts what does not fit."""
    await ask(harness.agent())
    await ask(harness.agent(num_ctx=1000))
    await ask(harness.agent(num_ctx=1000), options={"num_ctx": 2000})

    asked = [each for each in harness.server.heard if harness.server.is_question(each)]
    assert [each.body["options"]["num_ctx"] for each in asked] == [8192, 1000, 2000]


async def test_a_prompt_that_does_not_fit_the_window_is_an_error(harness: HttpHarness) -> None:
    """The server answers the rest of it, with confidence and without a word."""
    with pytest.raises(AgentBadRequest, match="num_ctx") as raised:
        await ask(harness.agent(num_ctx=1000), "word " * 1000)

    usage = usage_of(raised.value)
    assert usage is not None
    assert usage.tokens_in == 1000


async def test_a_prompt_that_does_not_fit_the_model_is_an_error(
    harness: HttpHarness, server: OllamaServer
) -> None:
    """A window larger than the model's own is silently made smaller."""
    server.trained_window = 2048

    with pytest.raises(AgentBadRequest, match="2,048"):
        await ask(harness.agent(num_ctx=100_000), "word " * 2000)


async def test_an_answer_that_outgrew_the_window_is_an_error(harness: HttpHarness) -> None:
    """To continue writing, the model drops the beginning of its prompt."""
    await harness.set_behaviors(TextReply("A very long answer.", usage=Usage(900, 200)))

    with pytest.raises(AgentBadRequest, match="do not fit the window"):
        await ask(harness.agent(num_ctx=1000))


@pytest.mark.parametrize("characters", [1, 2, 4, 7])
async def test_a_prompt_that_fits_is_never_reported_as_truncated(
    harness: HttpHarness, server: OllamaServer, characters: int
) -> None:
    """Languages and code differ in how much text goes into a token."""
    server.characters_per_token = characters

    reply = await ask(harness.agent(num_ctx=30_000), "word " * 4000)

    assert reply.text == PASS


async def test_a_schema_is_enforced_and_put_into_the_prompt(harness: HttpHarness) -> None:
    """Held to the form alone, a small model fills it with nonsense."""
    reply = await ask(harness.agent(), "Judge.", schema=SCHEMA)

    assert body_of(harness)["format"] == SCHEMA
    assert '"verdict"' in harness.received_requests()[-1].prompt
    assert reply.value == {"verdict": "pass"}


async def test_options_of_the_request_are_sent_outside_the_model_options(
    harness: HttpHarness,
) -> None:
    """Ollama ignores misplaced options."""
    await ask(harness.agent(), options={"think": False, "keep_alive": "1m", "top_k": 3})

    body = body_of(harness)
    assert (body["think"], body["keep_alive"], body["options"]["top_k"]) == (False, "1m", 3)
    assert not {"think", "keep_alive"} & set(body["options"])


async def test_the_server_is_found_by_its_own_variable(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users have set it for the program already."""
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")

    reply = await ask(OllamaModel(model="stub-small"))

    assert reply.text == PASS


async def test_a_model_that_was_not_pulled_is_not_healthy(harness: HttpHarness) -> None:
    """The remedy is one command."""
    missing = await harness.create(model="absent").health()
    there = await harness.create(model="stub-large").health()

    assert (missing.ready, missing.remedy) == (False, "ollama pull absent")
    assert there.ready


async def test_an_error_within_the_answer_is_a_transient_error(harness: HttpHarness) -> None:
    """The runner of the model may crash and is started again."""
    message = {"role": "assistant", "content": "Half"}
    part = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}
    broken = {"error": "an error was encountered while running the model"}
    harness.server.verbatim = [json.dumps(part) + "\n", json.dumps(broken) + "\n"]

    with pytest.raises(AgentTransient, match="running the model"):
        await ask(harness.agent())
