"""What an agent promises about texts: any length, any character."""

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
"""Half of a surrogate pair, as a cut-off emoji or a badly decoded byte leaves behind."""


@pytest.mark.asyncio
class AgentTextTests(HarnessBase):
    """Texts."""

    @pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
    async def test_every_character_survives_both_ways(self, harness: Harness, text: str) -> None:
        """Artifacts are written in every language, and in code."""
        await harness.set_behaviors(TextReply(f"<{text}>"))

        reply = await ask(harness.agent(), f"<{text}>")

        assert reply.text == f"<{text}>"
        assert harness.received_requests()[-1].prompt == f"<{text}>"

    @pytest.mark.parametrize("text", HALVES)
    async def test_half_a_character_stops_nobody(self, harness: Harness, text: str) -> None:
        """It may be replaced, but a run must not end because of it."""
        await harness.set_behaviors(TextReply("Yes."))

        reply = await ask(harness.agent(), text, system=text)

        assert reply.text == "Yes."
        assert len(harness.received_requests()[-1].prompt) >= len(text)

    async def test_a_prompt_of_a_megabyte_arrives_whole(self, harness: Harness) -> None:
        """A silently shortened prompt is answered with confidence all the same."""
        prompt = "".join(f"line {number}\n" for number in range(100_000))
        await harness.set_behaviors(TextReply("Yes."))

        reply = await ask(harness.agent(), prompt)

        assert len(prompt) > 1_000_000
        assert reply.text == "Yes."
        assert harness.received_requests()[-1].prompt == prompt
