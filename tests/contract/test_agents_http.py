"""What models over HTTP promise beyond the suite: whose address sees what."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from signoff.agents.anthropic import AnthropicModel
from signoff.agents.http import HttpModel
from signoff.agents.ollama import OllamaModel
from signoff.agents.openai import OpenAIModel
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentAuth, AgentBadRequest, AgentTransient, ModelMissing
from signoff.core.remedies import ChooseModel
from tests.agent_harness import Fault, Refusal, TextReply, Unreachable, ask, call_for
from tests.agent_suite.timeouts import remaining_calls
from tests.contract.http_harness import KEY, KEY_ENV, HttpHarness
from tests.stubs.anthropic import AnthropicServer
from tests.stubs.model_server import ModelServer
from tests.stubs.ollama import OllamaServer
from tests.stubs.openai import OpenAIServer

AMBIENT = {
    "OPENAI_API_KEY": "ambient-openai",
    "OPENAI_ADMIN_KEY": "ambient-admin",
    "OPENAI_ORG_ID": "ambient-organisation",
    "OPENAI_PROJECT_ID": "ambient-project",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer ambient-header\nX-Company: ambient-company",
    "ANTHROPIC_API_KEY": "ambient-anthropic",
    "ANTHROPIC_AUTH_TOKEN": "ambient-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Company: ambient-company",
    "OLLAMA_API_KEY": "ambient-ollama",
}


@dataclass(frozen=True)
class HttpKind:
    model: Callable[..., HttpModel]
    server: Callable[[], ModelServer]
    path: str = ""


KINDS = {
    "openai": HttpKind(OpenAIModel, OpenAIServer, "/v1"),
    "anthropic": HttpKind(AnthropicModel, AnthropicServer),
    "ollama": HttpKind(OllamaModel, OllamaServer),
}


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(name: str) -> HttpKind:
    return KINDS[name]


@asynccontextmanager
async def serving(kind: HttpKind) -> AsyncIterator[HttpHarness]:
    async with kind.server() as server:
        yield HttpHarness(server, kind.model, kind.path)


@pytest.fixture
async def harness(kind: HttpKind, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
    monkeypatch.setenv(KEY_ENV, KEY)
    async with serving(kind) as harness:
        await harness.set_behaviors(TextReply("Yes."))
        yield harness


async def test_another_address_never_sees_what_the_environment_holds_for_the_vendor(
    harness: HttpHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who tries an unknown server must not send it the company's key."""
    for variable, value in AMBIENT.items():
        monkeypatch.setenv(variable, value)

    await ask(harness.create(key_env=None))

    (heard,) = (each for each in harness.server.heard if harness.server.is_question(each))
    assert "ambient" not in json.dumps([dict(heard.headers), heard.body])
    assert not {"authorization", "x-api-key"} & set(heard.headers)


async def test_the_key_the_settings_name_is_sent(harness: HttpHarness) -> None:
    """A gateway with its own key refuses any other key."""
    await ask(harness.agent())

    heard = harness.server.heard[-1].headers
    assert KEY in (heard.get("x-api-key") or heard["authorization"])


async def test_a_missing_key_is_reported_before_anything_is_sent(
    harness: HttpHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable to set."""
    monkeypatch.delenv(KEY_ENV)

    with pytest.raises(AgentAuth, match=KEY_ENV):
        await ask(harness.agent())

    assert harness.server.heard == []


async def test_an_invalid_key_is_not_repeated_in_the_error(
    harness: HttpHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password manager's entire note pasted into the variable must not land in a log."""
    monkeypatch.setenv(KEY_ENV, "my ключ hunter2")

    with pytest.raises(AgentAuth) as raised:
        await ask(harness.agent())

    assert "hunter2" not in str(raised.value)


async def test_the_retry_time_of_a_busy_server_is_passed_on(harness: HttpHarness) -> None:
    """An earlier retry would be refused again and waste an attempt."""
    await harness.set_behaviors(Refusal(Fault.BUSY, seconds=30))

    with pytest.raises(AgentTransient) as raised:
        await ask(harness.agent())

    assert raised.value.after == pytest.approx(30, abs=5)


async def test_connections_are_closed_after_an_answer(harness: HttpHarness) -> None:
    """Agents are not closed, and an event loop warns about connections that are still open."""
    await ask(harness.agent())
    await harness.create().models()

    assert await remaining_calls(harness) == 0


async def test_a_repeated_attempt_can_be_recognized(name: str, harness: HttpHarness) -> None:
    """A provider that knows the key of an effect does not answer, and bill, it twice."""
    await ask(harness.agent())

    heard = harness.server.heard[-1].headers
    expected = None if name == "ollama" else call_for().idempotency_key
    assert heard.get("idempotency-key") == expected


async def test_a_redirect_is_not_followed(harness: HttpHarness, kind: HttpKind) -> None:
    """It could send the prompt and the key to another server."""
    async with serving(kind) as other:
        await other.set_behaviors(TextReply("Caught."))
        harness.server.redirect = f"{other.server.url}/anywhere"

        with pytest.raises(AgentBadRequest):
            await ask(harness.agent())

        assert other.server.heard == []


async def test_a_server_on_this_machine_is_asked_without_the_proxy(
    harness: HttpHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Company machines have a proxy set, and it cannot reach a user's laptop."""
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)

    reply = await ask(harness.agent(connect_timeout=60))

    assert reply.text == "Yes."


async def test_a_missing_model_is_named_as_such(harness: HttpHarness) -> None:
    """The message names the setting; a server's own words would not."""
    with pytest.raises(AgentBadRequest, match="model:"):
        await ask(harness.agent(model=None))


async def test_options_reach_the_model_and_the_request_has_the_last_word(
    harness: HttpHarness,
) -> None:
    """Temperature and the like are the author's business."""
    agent = harness.agent(options={"temperature": 0.1, "seed": 7})

    await ask(agent, options={"temperature": 0.9})

    body = harness.server.heard[-1].body
    sent = body.get("options", body)
    assert (sent["temperature"], sent["seed"]) == (0.9, 7)


async def test_an_option_cannot_replace_the_prompt(harness: HttpHarness) -> None:
    """The journal would hold another question than the one that was answered."""
    with pytest.raises(AgentBadRequest, match="messages"):
        await ask(harness.agent(), options={"messages": []})


async def test_a_stream_without_its_end_marker_is_refused(harness: HttpHarness) -> None:
    """A proxy that gives up closes the stream politely; half an answer looks complete."""
    question = AgentRequest("Continue.")
    await harness.agent().ask(question, call_for())
    heard = harness.server.heard[-1]
    whole = list(harness.server.stream(heard, TextReply("A longer answer in several pieces.")))
    harness.server.verbatim = whole[: len(whole) // 2]

    with pytest.raises(AgentTransient):
        await harness.agent().ask(question, call_for())


async def test_the_models_on_offer_are_listed(harness: HttpHarness) -> None:
    """Users look up a name before they write it into the settings."""
    names = await harness.create().models()

    assert [name.split(":")[0] for name in names] == ["stub-large", "stub-small"]


async def test_a_server_that_answers_is_healthy(harness: HttpHarness) -> None:
    """`doctor` reports its address."""
    health = await harness.create(model="stub-small:1b").health()

    assert health.ready
    assert harness.server.url in health.detail


async def test_a_server_that_is_not_there_is_not_healthy(harness: HttpHarness) -> None:
    """`doctor` reports how to fix it."""
    await harness.set_behaviors(Unreachable())

    health = await harness.create().health()

    assert not health.ready
    assert health.remedy


async def test_the_error_for_a_missing_model_lists_the_others(harness: HttpHarness) -> None:
    """A user who mistyped a model sees the existing ones."""
    names = tuple(await harness.create().models())
    await harness.set_behaviors(Refusal(Fault.NO_MODEL))

    with pytest.raises(ModelMissing) as raised:
        await ask(harness.create(), model="typo")

    assert raised.value.model == "typo"
    assert raised.value.available == names
    assert raised.value.remedies == (ChooseModel(names),)


async def test_a_404_for_an_existing_model_is_not_a_missing_model(harness: HttpHarness) -> None:
    """A wrong address answers 404 too; to say the model is missing would mislead."""
    name, *_ = await harness.create().models()
    await harness.set_behaviors(Refusal(Fault.NO_MODEL))

    with pytest.raises(AgentBadRequest) as raised:
        await ask(harness.create(), model=name)

    assert not isinstance(raised.value, ModelMissing)


def test_an_agent_can_be_used_in_several_event_loops(
    kind: HttpKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff.run` makes a loop per run, and one agent serves several runs."""
    monkeypatch.setenv(KEY_ENV, KEY)
    agents: list[Any] = []

    async def once(port: int) -> int:
        server = kind.server()
        server.port = port
        async with server:
            await server.set_behaviors(TextReply("Yes."))
            harness = HttpHarness(server, kind.model, kind.path)
            agents.append(agents[0] if agents else harness.create())
            await asyncio.gather(*(ask(agents[-1]) for _ in range(3)))
            return server.port

    port = asyncio.run(once(0))

    assert asyncio.run(once(port)) == port
