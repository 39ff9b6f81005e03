"""Tests of diffs whose hunks know the findings they answer."""

from signoff.review.diff import NO_BREAK, diff_files, label_key, tied_labels


def lines(*numbers: int) -> str:
    return "".join(f"line {number}\n" for number in numbers)


def test_a_hunk_has_context_and_the_findings_recorded_for_it() -> None:
    """Readers see where a change is, and why it was made."""
    before, after = lines(*range(9)), lines(0, 1, 2, 3, 40, 5, 6, 7, 8)

    ((path, (hunk,)),) = diff_files(
        {"": before}, {"": after}, labels={label_key("", "@@ -5 +5 @@"): ("a", "b")}
    ).items()

    assert path == ""
    assert hunk.header == "@@ -2,7 +2,7 @@"
    assert hunk.lines[3:5] == ("-line 4", "+line 40")
    assert hunk.findings == ("a", "b")
    assert (hunk.added, hunk.removed) == (1, 1)


def test_hunks_without_recorded_findings_are_tied_by_the_words_they_change() -> None:
    """The changes of several rounds together were never recorded as one."""
    before, after = {"a": "loud\n", "b": "same\n"}, {"a": "calm\n", "b": "same\n"}

    labels = tied_labels(before, after, {"a": [("tone", "loud")], "b": [("other", "same")]})

    changes = diff_files(before, after, labels)

    assert list(changes) == ["a"]
    assert changes["a"][0].findings == ("tone",)


def test_a_finding_about_another_file_is_not_answered_by_the_same_words() -> None:
    """Files of a project often share sentences."""
    before, after = {"a": "loud\n", "b": "loud\n"}, {"a": "calm\n", "b": "calm\n"}

    labels = tied_labels(before, after, {"a": [("tone", "loud")]})

    found = diff_files(before, after, labels)
    assert found["a"][0].findings == ("tone",)
    assert found["b"][0].findings == ()


def test_a_new_and_a_deleted_file_are_shown_whole() -> None:
    """A set of files may grow and shrink."""
    changes = diff_files({"old": lines(1)}, {"new": lines(2)})

    assert changes["old"][0].lines == ("-line 1",)
    assert changes["new"][0].lines == ("+line 2",)


def test_a_missing_line_break_at_the_end_is_marked_as_diff_does() -> None:
    """Otherwise `patch` would add a line break that is not there."""
    (hunk,) = diff_files({"": "a\nb"}, {"": "a\nc\n"})[""]

    assert hunk.lines == (" a", "-b", NO_BREAK, "+c")
