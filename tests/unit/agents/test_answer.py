import pytest

from signoff.agents.answer import (
    MAX_CHARACTERS,
    ModelAnswer,
    StreamedAnswer,
    judge,
    replace_lone_surrogates,
)
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput
from signoff.runtime.effect_errors import usage_of

SCHEMA = {"type": "object", "required": ["verdict"]}


def test_a_whole_answer_becomes_the_reply() -> None:
    """Everything the model's server said is kept."""
    usage = Usage(tokens_in=1, tokens_out=2)

    reply = judge(ModelAnswer("Yes.", "stop", usage=usage, session="s1"), None)

    assert (reply.text, reply.finish, reply.usage, reply.session) == ("Yes.", "stop", usage, "s1")
    assert reply.value is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ModelAnswer(""), "empty"),
        (ModelAnswer("Half", "length", cut_off=True), r"cut off \(length\)"),
        (ModelAnswer("I can't.", declined="against its rules"), "against its rules"),
        (ModelAnswer("[]"), "does not match"),
    ],
    ids=["empty", "cut off", "declined", "misfit"],
)
def test_what_is_no_answer_is_refused_and_still_paid_for(answer: ModelAnswer, said: str) -> None:
    """The feedback goes to the model word for word, so it has to say what is wrong."""
    paid = ModelAnswer(answer.text, answer.finish, answer.cut_off, answer.declined, Usage(3, 4))

    with pytest.raises(AgentBadOutput, match=said) as raised:
        judge(paid, SCHEMA)

    assert usage_of(raised.value) == Usage(3, 4)


def test_halves_of_a_character_that_came_apart_are_joined() -> None:
    """Servers cut their pieces in the middle of emojis."""
    assert replace_lone_surrogates("\ud83d" + "\ude00") == "\U0001f600"


@pytest.mark.parametrize("text", ["cut \ud83d off", "\udc80", "\ude00\ud83d"])
def test_half_a_character_that_stands_alone_is_replaced(text: str) -> None:
    """It could not be sent at all."""
    whole = replace_lone_surrogates(text)

    assert len(whole) == len(text)
    assert whole.encode("utf-8")


def test_pieces_are_shown_and_kept() -> None:
    """The live view and the reply say the same."""
    seen: list[str] = []
    collected = StreamedAnswer("m", seen.append)

    for piece in ("One ", None, "", "two."):
        collected.add_text(piece)

    collected.finish = "stop"

    assert seen == ["One ", "two."]
    assert collected.answer().text == "One two."


def test_an_answer_that_never_ends_is_given_up() -> None:
    """A model caught in a loop would fill the memory before its time is up."""
    collected = StreamedAnswer("m", lambda _text: None)
    for _ in range(16):
        collected.add_text("x" * (MAX_CHARACTERS // 16))

    with pytest.raises(AgentBadOutput, match="longer than"):
        collected.add_text("x")
