"""Tests of diffs as HTML."""

from signoff.pages.diff import MOST_WORDS, hunk_html
from signoff.review.diff import DiffHunk


def test_the_words_that_changed_are_marked_in_their_lines() -> None:
    """In a long line, readers look for the one word that is new."""
    hunk = DiffHunk("@@ -1 +1 @@", (" <a>", "-the see is wide", "+the sea is wide"), ("gone",))

    made = hunk_html(hunk, {})

    assert '<span class="del">-the <del>see </del>is wide</span>' in made
    assert '<span class="add">+the <ins>sea </ins>is wide</span>' in made
    assert "<span> &lt;a&gt;</span>" in made
    assert "answers gone" in made


def test_lines_without_a_counterpart_are_shown_whole() -> None:
    """An added paragraph has no old words to compare with."""
    made = hunk_html(DiffHunk("@@ -1,0 +1,2 @@", ("+one", "+two")), {})

    assert '<span class="add">+one</span><span class="add">+two</span>' in made
    assert "answers no finding" in made


def test_very_long_lines_are_not_compared_word_by_word() -> None:
    """A minified file would take seconds."""
    long = "word " * (MOST_WORDS + 1)

    made = hunk_html(DiffHunk("@@ -1 +1 @@", (f"-{long}", f"+{long}x")), {})

    assert "<ins>" not in made
