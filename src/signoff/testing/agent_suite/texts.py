"""Tests that prompts and answers may have any length and any character."""

from __future__ import annotations

import pytest

from signoff.testing.agent_harness import Harness, HarnessBase, TextReply, ask

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
