"""Tests of the words for what became of a finding."""

import pytest

from signoff.core.errors import UnknownName
from signoff.core.words import ADDITIONS, CHANGES, OPEN, FindingStatus, Label, read_labels


def test_the_words_on_screen_are_those_in_data_with_spaces() -> None:
    assert {each.value: each.words for each in Label} == {
        "new": "new",
        "still_open": "still open",
        "back": "back",
        "caused_by_fix": "caused by a fix",
        "fixed": "fixed",
        "dismissed": "dismissed",
        "ignored": "ignored",
    }


def test_every_label_is_open_or_settled() -> None:
    settled = {Label.FIXED, Label.DISMISSED, Label.IGNORED}

    assert {each for each in Label if each.is_open} == set(OPEN) == set(Label) - settled
    assert (
        {each for each in Label if each.is_addition}
        == set(ADDITIONS)
        == set(OPEN) - {Label.STILL_OPEN}
    )
    assert set(CHANGES) == {*ADDITIONS, Label.FIXED}


def test_a_filter_takes_the_words_and_open_for_all_that_are_open() -> None:
    assert read_labels([]) == frozenset()
    assert read_labels(["OPEN"]) == set(OPEN)
    assert read_labels(["back", "Caused_by_fix", "still open"]) == {
        Label.BACK,
        Label.CAUSED_BY_FIX,
        Label.STILL_OPEN,
    }


def test_an_unknown_filter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown status 'persisting'; valid names: .*open"):
        read_labels(["persisting"])


def test_a_status_reads_as_the_heading_of_a_group() -> None:
    assert [each.words for each in FindingStatus] == [
        "open",
        "awaiting your sign-off",
        "fixed",
        "dismissed",
        "ignored",
    ]
