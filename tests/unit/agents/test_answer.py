import pytest

from signoff.agents.answer import (
    MAX_CHARACTERS,
    ModelAnswer,
    StreamedAnswer,
    judge,
)
from signoff.core.errors import AgentBadOutput
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import usage_of

SCHEMA = {"type": "object", "required": ["verdict"]}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ModelAnswer(""), "empty"),
        (ModelAnswer("Half", "length", cut_off=True), r"cut off \(length\)"),
        (ModelAnswer("I can't.", declined="against its rules"), "against its rules"),
        (ModelAnswer("[]"), "does not match"),
    ],
    ids=["empty", "cut off", "declined", "misfit"],
)
def test_an_invalid_answer_is_refused_and_still_billed(answer: ModelAnswer, problem: str) -> None:
    """The message is the feedback that the model gets, so it has to name the problem."""
    paid = ModelAnswer(answer.text, answer.finish, answer.cut_off, answer.declined, Usage(3, 4))

    with pytest.raises(AgentBadOutput, match=problem) as raised:
        judge(paid, SCHEMA)

    assert usage_of(raised.value) == Usage(3, 4)


def test_streamed_pieces_are_displayed_and_collected() -> None:
    """The live output and the reply must not differ."""
    seen: list[str] = []
    collected = StreamedAnswer("m", seen.append)

    for piece in ("One ", None, "", "two."):
        collected.add_text(piece)

    collected.finish = "stop"

    assert seen == ["One ", "two."]
    assert collected.answer().text == "One two."


def test_an_endless_answer_is_stopped() -> None:
    """A model in a loop would fill the memory before the timeout."""
    collected = StreamedAnswer("m", lambda _text: None)
    for _ in range(16):
        collected.add_text("x" * (MAX_CHARACTERS // 16))

    with pytest.raises(AgentBadOutput, match="longer than"):
        collected.add_text("x")
