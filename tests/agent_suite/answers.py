"""Tests that answers are complete, checked and counted, and may contain any text."""

from __future__ import annotations

import asyncio
import json

import pytest

from signoff.core.errors import AgentBadOutput
from signoff.runtime.effect_errors import usage_of
from tests.agent_harness import Harness, HarnessBase, TextReply, TruncatedReply, ask

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["pass", "fail"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
LIST_SCHEMA = {"type": "array", "items": {"type": "integer"}}
PASS = json.dumps({"verdict": "pass"})

FOREIGN = {
    "astral": "emoji \U0001f9d1\u200d\U0001f680 and \U0001d54f",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c",
    "combining": "e\u0301 \ufffd \u0e01\u0e33",
    "quotes": "'; \" \\ ` $HOME $(id) %s {0} -- --help",
    "lines": "one\ntwo\r\nthree\tfour\u2028five",
}
HALVES = ["cut \ud83d off", "\udc80 alone"]
"""Half of a surrogate pair, as left by a truncated emoji or a badly decoded byte."""


@pytest.mark.asyncio
class AnswerTests(HarnessBase):
    """Answers, their values and their usage."""

    async def test_an_answer_is_returned_unchanged(self, harness: Harness) -> None:
        """The reply is what later steps, humans and the journal get."""
        await harness.set_behaviors(TextReply("Two lines,\nand a third:\n  indented."))

        reply = await ask(harness.agent(), "Say something.")

        assert reply.text == "Two lines,\nand a third:\n  indented."
        assert [request.prompt for request in harness.received_requests()] == ["Say something."]

    async def test_the_system_prompt_reaches_the_model(self, harness: Harness) -> None:
        """A critic that does not get its instructions approves everything."""
        await harness.set_behaviors(TextReply("Aye."))

        await ask(harness.agent(), "Say something.", system="You are a pirate.")

        (request,) = harness.received_requests()
        assert "You are a pirate." in (request.system or request.prompt)

    async def test_the_requested_model_answers(self, harness: Harness) -> None:
        """A user who requests a cheap model must not be billed for an expensive one."""
        await harness.set_behaviors(TextReply("Yes."))

        await ask(harness.agent(), model="another-model")

        assert harness.received_requests()[-1].model == "another-model"

    @pytest.mark.parametrize(
        ("schema", "text"), [(SCHEMA, PASS), (LIST_SCHEMA, "[1, 2]")], ids=["object", "list"]
    )
    async def test_an_answer_to_a_schema_is_parsed(
        self, harness: Harness, schema: dict[str, object], text: str
    ) -> None:
        """Handlers work with values; otherwise each would have to parse prose."""
        await harness.set_behaviors(TextReply(text))

        reply = await ask(harness.agent(), schema=schema)

        assert reply.value == json.loads(text)

    @pytest.mark.parametrize(
        "text",
        ["I would say it passes.", '{"verdict": "pa', '{"verdict": "maybe"}', '{"other": 1}'],
        ids=["prose", "half", "wrong value", "wrong key"],
    )
    async def test_an_answer_that_violates_its_schema_is_an_error(
        self, harness: Harness, text: str
    ) -> None:
        """A verdict that cannot be parsed is not a pass."""
        await harness.set_behaviors(TextReply(text))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent(), schema=SCHEMA)

    @pytest.mark.parametrize("text", ["", " \n\t\n"], ids=["nothing", "blanks"])
    async def test_an_empty_answer_is_an_error(self, harness: Harness, text: str) -> None:
        """An empty draft must not become the artifact."""
        await harness.set_behaviors(TextReply(text))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent())

    async def test_the_usage_of_a_call_is_reported(self, harness: Harness) -> None:
        """Budgets depend on these numbers."""
        await harness.set_behaviors(TextReply("Yes."))

        usage = (await ask(harness.agent())).usage

        assert usage is not None
        assert (usage.tokens_in, usage.tokens_out) == (12, 7)

    async def test_the_usage_is_unknown_if_the_server_does_not_report_it(
        self, harness: Harness
    ) -> None:
        """With a zero instead, a budget would be exceeded unnoticed."""
        await harness.set_behaviors(TextReply("Yes.", usage=None))

        usage = (await ask(harness.agent())).usage

        assert usage is None or (usage.tokens_in, usage.tokens_out, usage.usd) == (None,) * 3

    async def test_a_rejected_answer_still_reports_its_usage(self, harness: Harness) -> None:
        """Otherwise a model that never returns valid output would seem to cost nothing."""
        await harness.set_behaviors(TextReply("no form at all"))

        with pytest.raises(AgentBadOutput) as raised:
            await ask(harness.agent(), schema=SCHEMA)

        usage = usage_of(raised.value)
        assert usage is not None
        assert usage.tokens == 19

    async def test_an_agent_handles_concurrent_requests(self, harness: Harness) -> None:
        """Critics work in parallel."""
        await harness.set_behaviors(TextReply("Yes."))
        agent = harness.agent()

        replies = await asyncio.gather(*(ask(agent, f"Question {n}?") for n in range(8)))

        assert [reply.text for reply in replies] == ["Yes."] * 8
        assert {request.prompt for request in harness.received_requests()} == {
            f"Question {n}?" for n in range(8)
        }


@pytest.mark.asyncio
class TruncationTests(HarnessBase):
    """Truncated answers; for agents whose server reports the truncation."""

    @pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "schema"])
    async def test_a_truncated_answer_is_an_error(
        self, harness: Harness, schema: dict[str, object] | None
    ) -> None:
        """Half a critique looks like a clean pass, even if that half can be parsed."""
        await harness.set_behaviors(TruncatedReply(PASS))

        with pytest.raises(AgentBadOutput):
            await ask(harness.agent(), schema=schema)


@pytest.mark.asyncio
class AgentTextTests(HarnessBase):
    """Prompts and answers with unusual characters, and long ones."""

    @pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
    async def test_every_character_survives_in_both_directions(
        self, harness: Harness, text: str
    ) -> None:
        """Artifacts are written in every language, and in code."""
        await harness.set_behaviors(TextReply(f"<{text}>"))

        reply = await ask(harness.agent(), f"<{text}>")

        assert reply.text == f"<{text}>"
        assert harness.received_requests()[-1].prompt == f"<{text}>"

    @pytest.mark.parametrize("text", HALVES)
    async def test_half_a_surrogate_pair_is_not_an_error(self, harness: Harness, text: str) -> None:
        """It may be replaced, but it must not end a run."""
        await harness.set_behaviors(TextReply("Yes."))

        reply = await ask(harness.agent(), text, system=text)

        assert reply.text == "Yes."
        assert len(harness.received_requests()[-1].prompt) >= len(text)

    async def test_a_prompt_of_one_megabyte_arrives_complete(self, harness: Harness) -> None:
        """A model answers a silently shortened prompt with the same confidence."""
        prompt = "".join(f"line {number}\n" for number in range(100_000))
        await harness.set_behaviors(TextReply("Yes."))

        reply = await ask(harness.agent(), prompt)

        assert len(prompt) > 1_000_000
        assert reply.text == "Yes."
        assert harness.received_requests()[-1].prompt == prompt
