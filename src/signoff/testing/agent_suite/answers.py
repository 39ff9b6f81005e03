"""What an agent promises about answers: whole, checked, and counted."""

from __future__ import annotations

import asyncio
import json

import pytest

from signoff.errors import AgentBadOutput
from signoff.runtime.effect_errors import usage_of
from signoff.testing.agent_harness import Harness, HarnessBase, TextReply, TruncatedReply, ask

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["pass", "fail"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
LIST_SCHEMA = {"type": "array", "items": {"type": "integer"}}
PASS = json.dumps({"verdict": "pass"})


@pytest.mark.asyncio
class AnswerTests(HarnessBase):
    """Answers."""

    async def test_an_answer_comes_back_word_for_word(self, harness: Harness) -> None:
        """The reply is what later steps, people and the journal see."""
        await harness.set_behaviors(TextReply("Two lines,\nand a third:\n  indented."))

        reply = await ask(harness.agent(), "Say something.")

        assert reply.text == "Two lines,\nand a third:\n  indented."
        assert [request.prompt for request in harness.received_requests()] == ["Say something."]

    async def test_the_system_prompt_reaches_the_model(self, harness: Harness) -> None:
        """A critic that never hears what it is to look for approves everything."""
        await harness.set_behaviors(TextReply("Aye."))

        await ask(harness.agent(), "Say something.", system="You are a pirate.")

        (request,) = harness.received_requests()
        assert "You are a pirate." in (request.system or request.prompt)

    async def test_the_model_a_request_names_is_the_one_that_answers(
        self, harness: Harness
    ) -> None:
        """Whoever asks for a cheap model must not be billed for a dear one."""
        await harness.set_behaviors(TextReply("Yes."))

        await ask(harness.agent(), model="another-model")

        assert harness.received_requests()[-1].model == "another-model"

    @pytest.mark.parametrize(
        ("schema", "text"), [(SCHEMA, PASS), (LIST_SCHEMA, "[1, 2]")], ids=["object", "list"]
    )
    async def test_an_answer_asked_for_by_schema_comes_parsed(
        self, harness: Harness, schema: dict[str, object], text: str
    ) -> None:
        """Handlers work with values; prose would have to be parsed by each of them."""
        await harness.set_behaviors(TextReply(text))

        reply = await ask(harness.agent(), schema=schema)

        assert reply.value == json.loads(text)

    @pytest.mark.parametrize(
        "text",
        ["I would say it passes.", '{"verdict": "pa', '{"verdict": "maybe"}', '{"other": 1}'],
        ids=["prose", "half", "wrong value", "wrong key"],
    )
    async def test_an_answer_that_does_not_fit_its_schema_is_refused(
        self, harness: Harness, text: str
    ) -> None:
        """A verdict nobody can read is not a pass."""
        await harness.set_behaviors(TextReply(text))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent(), schema=SCHEMA)

    @pytest.mark.parametrize("text", ["", " \n\t\n"], ids=["nothing", "blanks"])
    async def test_an_empty_answer_is_refused(self, harness: Harness, text: str) -> None:
        """An empty draft must not become the artifact."""
        await harness.set_behaviors(TextReply(text))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent())

    async def test_what_a_call_took_is_reported(self, harness: Harness) -> None:
        """Budgets are kept by these numbers."""
        await harness.set_behaviors(TextReply("Yes."))

        usage = (await ask(harness.agent())).usage

        assert usage is not None
        assert (usage.tokens_in, usage.tokens_out) == (12, 7)

    async def test_what_a_call_took_is_unknown_when_nobody_says(self, harness: Harness) -> None:
        """A zero would be believed, and a budget overrun without anybody noticing."""
        await harness.set_behaviors(TextReply("Yes.", usage=None))

        usage = (await ask(harness.agent())).usage

        assert usage is None or (usage.tokens_in, usage.tokens_out, usage.usd) == (None,) * 3

    async def test_a_refused_answer_is_paid_for_all_the_same(self, harness: Harness) -> None:
        """A model that never gets its form right would otherwise cost nothing on paper."""
        await harness.set_behaviors(TextReply("no form at all"))

        with pytest.raises(AgentBadOutput) as refused:
            await ask(harness.agent(), schema=SCHEMA)

        usage = usage_of(refused.value)
        assert usage is not None
        assert usage.tokens == 19

    async def test_several_can_be_asked_at_once(self, harness: Harness) -> None:
        """Critics work side by side."""
        await harness.set_behaviors(TextReply("Yes."))
        agent = harness.agent()

        replies = await asyncio.gather(*(ask(agent, f"Question {n}?") for n in range(8)))

        assert [reply.text for reply in replies] == ["Yes."] * 8
        assert {request.prompt for request in harness.received_requests()} == {
            f"Question {n}?" for n in range(8)
        }


@pytest.mark.asyncio
class TruncationTests(HarnessBase):
    """Answers that were stopped; for agents whose model's server says so."""

    @pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "schema"])
    async def test_an_answer_that_was_cut_off_is_refused(
        self, harness: Harness, schema: dict[str, object] | None
    ) -> None:
        """Half a critique reads like a clean pass, even when what is there parses."""
        await harness.set_behaviors(TruncatedReply(PASS))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent(), schema=schema)
