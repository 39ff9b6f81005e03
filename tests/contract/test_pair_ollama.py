"""Pairs with the official client of Ollama, against a server that speaks Ollama's protocol."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signoff.pair import (
    ModelNotFoundError,
    OllamaConfig,
    WorkflowError,
    create_reviewer_agent,
    create_writer_agent,
    get_ollama_config,
    run_slogan_generation,
    run_slogan_generation_with_retry,
)
from signoff.pair.config import ENVIRONMENT
from signoff.testing import FrozenClock, MemoryStore
from tests.agent_harness import TruncatedReply
from tests.stubs.pair_server import MODEL, PairServer, script

TASK = "eco-friendly water bottles"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PairServer]:
    for name in [*ENVIRONMENT, "OLLAMA_HOST"]:
        monkeypatch.delenv(name, raising=False)
    async with PairServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("OLLAMA_MODEL_NAME", MODEL)
        yield server


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_configuration_reaches_the_server(
    server: PairServer, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """A value that is read and never sent would be a silent lie."""
    monkeypatch.setenv("OLLAMA_TEMPERATURE", "0.3")
    monkeypatch.setenv("OLLAMA_MAX_TOKENS", "42")
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.url}{suffix}")

    await run_slogan_generation(TASK, "stub-large", store=MemoryStore())

    assert len(server.asked) == 2
    for body in server.asked:
        assert body["model"] == "stub-large"
        assert body["options"]["temperature"] == 0.3
        assert body["options"]["num_predict"] == 42


async def test_a_missing_model_is_reported_with_those_available(server: PairServer) -> None:
    """Before the first turn, without a model call and without a run."""
    store = MemoryStore()

    with pytest.raises(
        ModelNotFoundError,
        match=r"no model 'mistral'.*ollama pull.*stub-large:latest, stub-small:1b",
    ) as raised:
        await run_slogan_generation(TASK, "mistral", store=store)

    assert raised.value.available == ("stub-large:latest", "stub-small:1b")
    assert server.asked == []
    assert list(store.rows()) == []


async def test_a_retry_waits_for_the_server_and_gives_up_in_the_end(server: PairServer) -> None:
    """A server that is started a moment later is found."""
    await server.stop()
    clock = FrozenClock()

    with pytest.raises(WorkflowError, match="Failed after 2 attempts"):
        await run_slogan_generation_with_retry(TASK, 2, clock=clock, store=MemoryStore())

    assert clock.slept == [2.0]


async def test_answers_at_the_limit_of_tokens_do_not_end_the_session(server: PairServer) -> None:
    """100 tokens are few: feedback is often cut off, and a long slogan too."""
    long, cut = TruncatedReply("An endless slogan that"), TruncatedReply("The rhythm is")
    server.answer = script((long, cut), (long, "SHIP IT!"), ("short", "SHIP IT!"))

    session = await run_slogan_generation(TASK, store=MemoryStore())

    assert [turn.too_long for turn in session.turns] == [True, False]
    assert session.turns[0].feedback == "The rhythm is"
    assert session.final_slogan == "short"


async def test_a_server_gets_no_more_calls_at_once_than_its_settings_allow(
    server: PairServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both roles share it, and most servers run one model at a time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".signoff"
    home.mkdir()
    (home / "config.yaml").write_text(
        "agents: {ollama: {concurrency: 2}}\n"
        "pair: {reviewers: [ollama=a, ollama=b, ollama=c, ollama=d]}"
    )

    session = await run_slogan_generation(TASK)

    assert session.succeeded
    assert len(server.asked) == 5
    assert server.most_at_once == 2


async def test_agents_answer_messages(server: PairServer) -> None:
    """For programs that keep their own loop."""
    config = get_ollama_config()
    server.answer = script(("Live Clean", "SHIP IT!"))

    writer = await create_writer_agent(config)
    reviewer = await create_reviewer_agent(config)
    slogan = await writer.send_message(f"Create a slogan for: {TASK}")
    review = await reviewer.send_message(f"Please review this slogan: {slogan.content}")

    assert (slogan.content, review.content) == ("Live Clean", "SHIP IT!")
    systems = [body["messages"][0]["content"] for body in server.asked]
    assert "You write slogans" in systems[0]
    assert "You review slogans" in systems[1]
    assert server.asked[0]["options"]["num_predict"] == 100


async def test_an_agent_of_a_missing_model_cannot_be_created(server: PairServer) -> None:
    """Rather than at its first message."""
    with pytest.raises(ModelNotFoundError):
        await create_writer_agent(OllamaConfig(base_url=server.url, model_name="nope"))
