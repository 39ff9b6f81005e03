"""Tests of diffs as HTML."""

from signoff.pages.review import (
    MOST_WORDS,
    changed_lines,
    diff_lines,
    hunk_html,
    split_html,
    unified_html,
)
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


def test_every_line_of_a_unified_diff_is_shown_whatever_it_looks_like() -> None:
    """A removed line that begins with two dashes looks like the header of a file."""
    diff = (
        "--- a/x.md\n+++ b/x.md\n@@ -1,3 +1,3 @@\n one\n--- rm -rf\n+++ <b>\n three\n"
        "--- a/y.md\n+++ b/y.md\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n"
    )

    made = unified_html(diff)

    assert '<span class="mono">x.md</span>' in made
    assert '<span class="mono">y.md</span>' in made
    assert "rm -rf" in made
    assert "&lt;b&gt;" in made
    assert changed_lines(diff_lines(diff)) == {"--- rm -rf": 1, "+++ <b>": 1, "-old": 1, "+new": 1}


def test_side_by_side_a_line_without_a_counterpart_has_an_empty_neighbor() -> None:
    """Otherwise the lines below would be compared with the wrong ones."""
    made = split_html(DiffHunk("@@ -1,2 +1 @@", ("-one", "-two", "+1", " same")), {})

    rows = made.split("<tr>")[1:]
    assert len(rows) == 3
    assert '<td class="none"></td>' in rows[1]
    assert rows[2].count("same</td>") == 2
