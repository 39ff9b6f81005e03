"""Literal edits match across line endings and Unicode forms, and only where they are certain."""

import unicodedata

import pytest

from signoff.review.diff import tie_hunks
from signoff.review.work_order import (
    Edit,
    EditKind,
    apply_edits,
    format_work_order,
    parse_work_order,
)

WINDOWS = "One caf\u00e9.\r\nTwo.\r\nThree.\r\n"
UNIX = WINDOWS.replace("\r\n", "\n")
REPLACE, INSERT, DELETE = EditKind.REPLACE, EditKind.INSERT_AFTER, EditKind.DELETE


@pytest.mark.parametrize("artifact", [WINDOWS, UNIX], ids=["crlf", "lf"])
@pytest.mark.parametrize("ending", ["\r\n", "\n"], ids=["crlf-edit", "lf-edit"])
@pytest.mark.parametrize(
    ("kind", "find", "text", "after"),
    [
        (REPLACE, "Two.\nThree.", "2.\n3.", "One caf\u00e9.\n2.\n3.\n"),
        (INSERT, "One caf\u00e9.\nTwo.", "\nMore.", "One caf\u00e9.\nTwo.\nMore.\nThree.\n"),
        (DELETE, "Two.\n", "", "One caf\u00e9.\nThree.\n"),
        (REPLACE, "cafe\u0301.\nTwo", "bar", "One bar.\nThree.\n"),
    ],
)
def test_an_edit_of_several_lines_matches_whatever_its_line_endings(
    artifact: str, ending: str, kind: EditKind, find: str, text: str, after: str
) -> None:
    """A judge never sees which line endings the artifact has."""
    edit = Edit(kind, find.replace("\n", ending), text.replace("\n", ending), "x-1")

    result = apply_edits(artifact, [edit])

    assert result.applied == (edit,)
    assert result.text == (after if artifact is UNIX else after.replace("\n", "\r\n"))
    assert [hunk["issue"] for hunk in tie_hunks(artifact, result.text, [edit], [])] == ["x-1"]


def test_a_line_break_at_the_end_of_the_artifact_may_be_missing() -> None:
    """The last line of many files has none."""
    edit = Edit(REPLACE, "Two.\n", "2.\n")

    assert apply_edits("One.\nTwo.", [edit]).text == "One.\n2."
    assert apply_edits("One.\nTwo. Three.\n", [edit]).unmatched == ((edit, "not found"),)
    assert apply_edits("Two. One.\nTwo.", [edit]).unmatched == ((edit, "found 2 times"),)


def test_a_unicode_form_is_ignored_only_if_the_match_is_unique() -> None:
    """Which of two passages is meant is for a reader to decide."""
    edit = Edit(REPLACE, "cafe\u0301", "bar")

    assert apply_edits("a caf\u00e9", [edit]).text == "a bar"
    assert apply_edits("caf\u00e9 caf\u00e9", [edit]).unmatched == ((edit, "found 2 times"),)
    assert apply_edits("caf\u00e9 cafe\u0301", [edit]).text == "caf\u00e9 bar"
    assert apply_edits("a cafe", [edit]).unmatched == ((edit, "not found"),)


def test_an_artifact_with_mixed_line_endings_gets_the_text_of_the_edit() -> None:
    """There is no line ending to adapt it to."""
    edit = Edit(REPLACE, "b", "x\ny")

    assert apply_edits("a\r\nb\nc", [edit]).text == "a\r\nx\ny\nc"


def test_a_work_order_written_with_other_line_endings_is_applied() -> None:
    """Some programs write every file with CRLF."""
    edits = [Edit(REPLACE, "Two.\nThree.", "2.\n3.", "x-1"), Edit(DELETE, "caf\u00e9", "", "x-2")]
    order = unicodedata.normalize("NFD", format_work_order(edits, []).replace("\n", "\r\n"))

    for artifact in (WINDOWS, UNIX):
        result = apply_edits(artifact, parse_work_order(order))

        assert not result.unmatched
        assert result.text.splitlines() == ["One .", "2.", "3."]
        assert result.text.count("\r") == (3 if artifact is WINDOWS else 0)
