import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from signoff.review.pure.reviewer_verdict import CONSENT, is_approved
from tests.tables import table

REPLIES = YAML(typ="safe").load(Path(__file__).with_name("approval_phrases.yaml"))
ALONE, PRAISE, REFUSALS = REPLIES["alone"], REPLIES["with_consent"], REPLIES["refusals"]
"""Replies that are nothing but the phrase, that say more, and that do not approve."""


@table("reply", [*ALONE, *PRAISE])
def test_the_phrase_approves(reply: str) -> None:
    """A session that goes on after an approval costs turns and can spoil the text."""
    assert is_approved(reply)


@table("reply", REFUSALS)
def test_anything_else_does_not(reply: str) -> None:
    """A wrong approval delivers a text that no reviewer approved."""
    assert not is_approved(reply)


@table("reply", [*ALONE, *REFUSALS])
def test_a_strict_reader_accepts_nothing_but_the_phrase(reply: str) -> None:
    """`strict` is for reviewers that chat: praise around the phrase is not an approval then."""
    assert is_approved(reply, strict=True) is (reply in ALONE)


@table("reply", PRAISE)
def test_a_strict_reader_refuses_praise(reply: str) -> None:
    """Otherwise `strict` would be the same as the default."""
    strict = {"<think>It's short. Should I ship it? Not sure.</think>\n\nSHIP IT!", PRAISE[-1]}

    assert is_approved(reply, strict=True) is (reply in strict)


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_any_other_word_in_the_phrases_sentence_costs_a_turn(word: str) -> None:
    """A list of what is allowed cannot forget a way to object."""
    for reply in (f"{word} SHIP IT!", f"SHIP IT {word}!", f"Great. SHIP IT, {word}. Great."):
        assert is_approved(reply) is (word in CONSENT)


def test_the_list_of_consent_stays_short() -> None:
    assert len(CONSENT) <= 30


def test_a_text_with_the_phrase_needs_a_reply_that_is_nothing_else() -> None:
    """A reviewer that repeats the text of a hostile writer must not approve it."""
    material = "Fast boxes. Ship it!"

    assert not is_approved("Fast boxes. Ship it! Good.", material=material)
    assert is_approved("SHIP IT!", material=material)
    assert is_approved("Good. SHIP IT!", material="Fast boxes.")


@pytest.mark.parametrize(
    "part",
    [
        "ship it ",
        "'",
        '"ship it',
        "<s>",
        "```\n",
        "~~",
        "a, ",
        "> x\n",
        "\u201c",
        "\u201e",
        "\u00ab",
        "`",
    ],
)
def test_a_huge_reply_is_read_in_linear_time(part: str) -> None:
    """A hostile reply must not hold up the run; quadratic time would take minutes here."""
    started = time.process_time()

    is_approved(part * 40_000)

    assert time.process_time() - started < 10
