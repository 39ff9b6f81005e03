import asyncio
import os
import sys
from pathlib import Path

import pytest

from signoff.agents.local import SEED, TEMPERATURE
from signoff.core.errors import AgentBadRequest, AgentTimeout, AgentTransient, ModelMissing
from signoff.runtime.effect_errors import usage_of
from signoff.runtime.owner import birth_of
from tests.agent_harness import Hang, Harness, TextReply, ask
from tests.agent_suite.answers import SCHEMA, AgentTextTests, AnswerTests, TruncationTests
from tests.agent_suite.timeouts import CancelTests, TimeoutTests, remaining_calls, wait_for_request
from tests.contract.local_harness import RUNNER, LocalHarness
from tests.patience import SkippingLoop

ASKER = """
import asyncio, sys
from signoff.agents.local import LocalModel
from tests.agent_harness import ask
asyncio.run(ask(LocalModel(model=sys.argv[1])))
"""


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHarness:
    monkeypatch.syspath_prepend(str(RUNNER))
    return LocalHarness(tmp_path)


class TestLocalModel(AnswerTests, TruncationTests, AgentTextTests, CancelTests, TimeoutTests):
    @pytest.fixture
    def harness(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHarness:
        monkeypatch.syspath_prepend(str(RUNNER))
        return LocalHarness(tmp_path)

    async def test_the_requested_model_answers(self, harness: Harness) -> None:
        """An unknown model is refused, and the known ones are listed."""
        await harness.set_behaviors(TextReply("Yes."))

        with pytest.raises(ModelMissing) as raised:
            await ask(harness.agent(), model="another-model")

        assert "smollm2-135m" in raised.value.available

        assert harness.received_requests() == []

    async def test_the_usage_is_unknown_if_the_server_does_not_report_it(
        self, harness: Harness
    ) -> None:
        """It costs nothing in any case, but tokens are limited too."""
        await harness.set_behaviors(TextReply("Yes.", usage=None))

        usage = (await ask(harness.agent())).usage

        assert usage is not None
        assert (usage.tokens_in, usage.tokens_out, usage.usd) == (None, None, 0.0)


async def test_questions_are_answered_one_after_the_other(harness: LocalHarness) -> None:
    """Two at a time would take the memory of two, and neither would be faster."""
    await harness.set_behaviors(TextReply("Yes."))
    agents = [harness.agent() for _ in range(3)]

    await asyncio.gather(*(ask(agent) for agent in agents))

    steps = [next(iter(entry)) for entry in harness.entries()]
    assert steps == ["asked", "done"] * 3


async def test_the_time_in_the_queue_does_not_count_for_the_timeout(harness: LocalHarness) -> None:
    """Ten critics asked at once would otherwise time out because of each other."""
    harness.play({"text": "", "hangs": True}, {"text": "Here."})
    loop = SkippingLoop()
    first = asyncio.create_task(ask(harness.agent(timeout=60)))
    await wait_for_request(harness)
    second = asyncio.create_task(ask(harness.agent(timeout=60)))
    await asyncio.sleep(0)
    loop.skip(3600)

    with pytest.raises(AgentTimeout) as raised:
        await first
    assert (await second).text == "Here."
    usage = usage_of(raised.value)
    assert usage is not None
    assert usage.usd == 0.0


async def test_cancelling_a_queued_request_does_not_affect_others(harness: LocalHarness) -> None:
    """The active request continues; the cancelled one never reaches the model."""
    await harness.set_behaviors(Hang("Half"))
    first = asyncio.create_task(ask(harness.agent(), "first"))
    await wait_for_request(harness)
    second = asyncio.create_task(ask(harness.agent(), "second"))
    await asyncio.sleep(0)

    second.cancel()
    await asyncio.wait({second})

    assert not first.done()
    assert await harness.active_calls() == 1
    first.cancel()
    await asyncio.wait({first})
    assert [asked.prompt for asked in harness.received_requests()] == ["first"]


async def test_the_next_question_after_a_cancelled_one_is_answered(harness: LocalHarness) -> None:
    """The process with the model is gone; another one replaces it."""
    harness.play({"text": "Half", "hangs": True}, {"text": "Whole."})
    cancelled = asyncio.create_task(ask(harness.agent()))
    await wait_for_request(harness)
    cancelled.cancel()
    await asyncio.wait({cancelled})

    reply = await ask(harness.agent())

    assert reply.text == "Whole."
    assert len(harness.children()) == 2


async def test_a_larger_context_window_is_loaded_on_request(harness: LocalHarness) -> None:
    """Two agents of one model may be set up differently."""
    await harness.set_behaviors(TextReply("Yes."))

    await ask(harness.agent(context=512))
    await ask(harness.agent(context=1024))

    assert [entry["context"] for entry in harness.entries() if "asked" in entry] == [512, 1024]
    assert not any(birth_of(pid) for pid in harness.children())


async def test_an_agent_serves_one_event_loop_after_the_other(harness: LocalHarness) -> None:
    """A script calls `signoff.run` several times; each call has a loop of its own."""
    await harness.set_behaviors(TextReply("Yes."))
    agent = harness.agent()

    replies = [
        await asyncio.to_thread(lambda: asyncio.run(ask(agent)).text),
        await asyncio.to_thread(lambda: asyncio.run(ask(agent)).text),
    ]

    assert replies == ["Yes.", "Yes."]


async def test_the_model_does_not_outlive_its_parent(harness: LocalHarness) -> None:
    """A run that is killed cannot clean up; a hundred megabytes must not stay behind it."""
    await harness.set_behaviors(Hang("Half"))
    asker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ASKER,
        str(harness.script),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(RUNNER)])},
    )
    await wait_for_request(harness)

    asker.kill()
    await asker.wait()

    assert await remaining_calls(harness) == 0


async def test_a_model_that_crashes_is_a_transient_error(harness: LocalHarness) -> None:
    """Native code may be killed for want of memory; the run itself must not die with it."""
    harness.play({"text": "Half", "dies": 11}, {"text": "Whole."})

    with pytest.raises(AgentTransient, match="signal 11"):
        await ask(harness.agent())
    reply = await ask(harness.agent())

    assert reply.text == "Whole."


async def test_weights_that_cannot_be_loaded_are_named(harness: LocalHarness) -> None:
    """What the library raises says nothing; its first complaint does."""
    harness.script.write_text("no weights")

    with pytest.raises(AgentBadRequest, match=r"script\.gguf cannot be loaded .*not a model file"):
        await ask(harness.agent())


async def test_a_prompt_that_does_not_fit_says_by_how_much(harness: LocalHarness) -> None:
    """The remedy is a shorter prompt or a larger window; trying again is none."""
    error = {"type": "exceed_context_size_error", "n_prompt_tokens": 5031, "n_ctx": 4096}
    harness.play({"error": {"code": 400, "message": "too long", **error}})

    with pytest.raises(AgentBadRequest, match=r"5031 tokens .* 4096; send less"):
        await ask(harness.agent())


async def test_a_schema_without_a_grammar_is_an_invalid_request(harness: LocalHarness) -> None:
    """Without the grammar a model this small never fits a schema."""
    harness.play({"raises": "unsupported $ref"})

    with pytest.raises(AgentBadRequest, match="unsupported"):
        await ask(harness.agent(), schema=SCHEMA)


async def test_equal_requests_use_the_same_seed(harness: LocalHarness) -> None:
    """A fixed seed makes a run repeatable; another seed is another answer."""
    await harness.set_behaviors(TextReply("Yes."))
    agent = harness.agent()

    await ask(agent)
    await ask(agent)
    await ask(agent, options={"seed": 7, "temperature": 0.9})

    first, second, other = harness.bodies()
    assert first == second
    assert (first["seed"], first["temperature"]) == (SEED, TEMPERATURE)
    assert (other["seed"], other["temperature"]) == (7, 0.9)


async def test_a_schema_is_enforced_by_a_grammar_and_not_put_into_the_prompt(
    harness: LocalHarness,
) -> None:
    """A model this small answers a recited schema with the schema's own words."""
    await harness.set_behaviors(TextReply('{"verdict": "pass"}'))

    await ask(harness.agent(), "Judge.", schema=SCHEMA)

    (body,) = harness.bodies()
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["messages"] == [{"role": "user", "content": "Judge."}]


async def test_keys_in_the_environment_do_not_reach_the_model(
    harness: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Third-party native code must not get them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    await harness.set_behaviors(TextReply("Yes."))

    await ask(harness.agent())

    seen = [entry.get("variables", {}) for entry in harness.entries()]
    assert any("PATH" in variables for variables in seen)
    assert not any("OPENAI_API_KEY" in variables for variables in seen)
