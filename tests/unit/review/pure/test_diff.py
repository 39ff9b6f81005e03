import random
import time

import pytest

from signoff.review.pure.diff import (
    MOST_HUNKS,
    NO_BREAK,
    Change,
    changes,
    diff_files,
    label_key,
    tie_hunks,
    tied_labels,
    word_change_pct,
)
from signoff.review.pure.work_order import Edit, EditKind

BEFORE = "Title\n\nThe first line is **loud**.\nThe second one is fine.\nThe third is long.\nEnd\n"


def test_a_hunk_belongs_to_the_edit_whose_lines_it_touches() -> None:
    """The reader of a diff sees why each line changed."""
    edits = [
        Edit(EditKind.REPLACE, "loud", "calm", "tone-001"),
        Edit(EditKind.INSERT_AFTER, "Title", "\nby Ann", "form-001"),
        Edit(EditKind.DELETE, "The third is long.\n", "", "size-001"),
    ]
    after = "Title\nby Ann\n\nThe first line is **calm**.\nThe second one is fine.\nEnd\n"

    hunks = tie_hunks(BEFORE, after, edits, [])

    assert hunks == [
        {"diff": "@@ -1,0 +2 @@\n+by Ann", "issue": "form-001"},
        {
            "diff": "@@ -3 +4 @@\n-The first line is **loud**.\n+The first line is **calm**.",
            "issue": "tone-001",
        },
        {"diff": "@@ -5 +5,0 @@\n-The third is long.", "issue": "size-001"},
    ]


def test_a_change_that_no_finding_asked_for_belongs_to_none() -> None:
    """Changes that an agent makes on its own are visible."""
    (hunk,) = tie_hunks(BEFORE, BEFORE.replace("fine", "bad"), [], [("tone-001", "is **loud**")])

    assert hunk["issue"] is None


@pytest.mark.parametrize(
    "quote",
    ["is **loud**", "is loud", "first line is loud. The second one", "Title ... line is loud"],
)
def test_a_hunk_belongs_to_the_finding_whose_quote_it_changes(quote: str) -> None:
    """Agents rewrite a quoted passage in their own words."""
    (hunk,) = tie_hunks(BEFORE, BEFORE.replace("loud", "calm"), [], [("tone-001", quote)])

    assert hunk["issue"] == "tone-001"


LINE = "Tea is the best. It costs 9 euros. *We* open at noon."


@pytest.mark.parametrize(
    ("after", "issues"),
    [
        ("Tea is good. It costs 9 euros. *We* open at noon.", ["best"]),
        ("It costs 9 euros. *We* open at noon.", ["best"]),
        ("Tea is the best. It costs 7 euros. *We* open at noon.", ["fee"]),
        ("Tea is the best. It costs 9  euros. *We* open at noon.", ["fee"]),
        ("Tea is the best. It costs 9 euros. We open at noon.", ["we"]),
        ("Tea is good. It costs 9 euros. We open at noon.", ["best", "we"]),
        ("Tea is the best. It costs 9 euros. *We* open at two.", []),
        ("Tea is the best. It costs 9 euros. *We* open at noon!", []),
        ("Yes! Tea is the best. It costs 9 euros. *We* open at noon.", []),
        ("- Tea is the best. It costs 9 euros. *We* open at noon.", []),
        ("Green tea.\nTea is the best. It costs 9 euros. *We* open at noon.", []),
        ("Tea is the best. It costs 9 euros. *We* open at noon.\nCome!", []),
    ],
)
def test_a_change_elsewhere_in_a_line_belongs_to_no_finding_about_other_words(
    after: str, issues: list[str]
) -> None:
    """A paragraph is often one line, and a reader takes the link for the reason of the change."""
    findings = [("best", "Tea is the best"), ("fee", "it costs 9 euros."), ("we", "We open")]

    (hunk,) = tie_hunks(f"Top\n{LINE}\nEnd\n", f"Top\n{after}\nEnd\n", [], findings)

    assert sorted(filter(None, [hunk["issue"], *hunk.get("also", [])])) == issues


def test_a_paragraph_added_next_to_a_changed_one_is_not_taken_for_it() -> None:
    """A diff pairs empty lines, and would show one paragraph as the new form of another."""
    before = "Top\n\nTea is the best. It costs 9 euros.\n\nEnd\n"
    after = "Top\n\nWelcome!\n\nTea is good. It costs 9 euros.\n\nEnd\n"

    (hunk,) = tie_hunks(before, after, [], [("fee", "It costs 9 euros"), ("best", "the best")])

    assert (hunk["issue"], hunk.get("also")) == ("best", None)


def test_a_passage_of_several_lines_is_changed_only_between_its_ends() -> None:
    """Its first and last lines may contain other words."""
    before = "One two\nthree four\nfive six\n"
    quote = [("a", "two three four five")]

    hunks = [
        tie_hunks(before, after, [], quote)[0]["issue"]
        for after in (
            before.replace("One", "1"),
            before.replace("six", "6"),
            before.replace("three", "3"),
            before.replace("four\n", "four\nmore\n"),
        )
    ]

    assert hunks == [None, None, "a", "a"]


def test_an_insertion_belongs_to_the_edit_that_asked_for_it_there() -> None:
    """A diff may show the empty line after a new paragraph as new, or the one before it."""
    before = "One.\n\nTwo.\n\nThree.\n"
    edits = [
        Edit(EditKind.INSERT_AFTER, "One.", "\n\nMore.", "more"),
        Edit(EditKind.INSERT_AFTER, "Two", " and a half", "half"),
    ]
    added = "One.\n\nMore.\n\nTwo.\n\nThree.\n"
    both = "One.\n\nMore.\n\nTwo and a half.\n\nThree.\n"
    elsewhere = "One.\n\nTwo.\n\nMore.\n\nThree.\n"

    ((one,), (two,), (other,)) = (
        tie_hunks(before, after, edits, []) for after in (added, both, elsewhere)
    )

    assert (one["issue"], two["issue"], two["also"]) == ("more", "more", ["half"])
    assert other["issue"] is None


@pytest.mark.parametrize("omission", ["OMISSION", "omission: no date", ""])
def test_an_insertion_belongs_to_the_one_finding_about_something_missing(omission: str) -> None:
    """Something that is missing has no location that could be looked up."""
    after = BEFORE + "Dated today.\n"

    (one,) = tie_hunks(BEFORE, after, [], [("date-001", omission)])
    (two,) = tie_hunks(BEFORE, after, [], [("date-001", omission), ("name-001", omission)])
    several = tie_hunks(BEFORE, f"By Ann.\n{after}", [], [("date-001", omission)])

    assert (one["issue"], two["issue"]) == ("date-001", None)
    assert [hunk["issue"] for hunk in several] == [None, None]


def test_a_rewritten_text_gives_a_bounded_report() -> None:
    """The artifacts are stored; the journal does not need a third copy of them."""
    lines = [f"line {n}" for n in range(4 * MOST_HUNKS)]
    changed = [line + ("!" if n % 2 else "") for n, line in enumerate(lines)]

    hunks = tie_hunks("\n".join(lines), "\n".join(changed), [], [])
    (long,) = tie_hunks("a" * 50_000, "b", [], [])

    assert len(hunks) == MOST_HUNKS + 1
    assert hunks[-1]["diff"] == f"({MOST_HUNKS} more changes)"
    assert len(long["diff"]) < 5_000


def test_changes_turn_one_text_into_the_other() -> None:
    """A wrong diff is worse than none."""
    chance = random.Random(7)
    for _ in range(200):
        old, new = (["".join(chance.choices("abc", k=1)) for _ in range(9)] for _ in "xy")
        result, position = [], 0
        for change in changes(old, new):
            result += old[position : change.old_start] + new[change.new_start : change.new_end]
            position = change.old_end
        assert result + old[position:] == new


def test_a_small_change_to_a_large_text_is_a_small_diff() -> None:
    """Wherever the change is, the rest of the text is not reported as changed."""
    old = [f"{n} {n * n}" for n in range(60_000)]
    new = [*old[1:100], "new", *old[100:30_000], *old[30_001:]]

    assert list(changes(old, new)) == [
        Change(0, 1, 0, 0),
        Change(100, 100, 99, 100),
        Change(30_000, 30_001, 30_000, 30_000),
    ]


def test_five_megabytes_of_similar_lines_are_compared_in_time() -> None:
    """Exact comparison takes the square of their number."""
    chance = random.Random(7)
    old, new = ("\n".join(chance.choices("ab", k=500_000)) for _ in "xy")
    start = time.process_time()

    assert tie_hunks(old, new, [], [("a", "OMISSION")])

    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("before", "after", "percent"),
    [("a b c d", "a b c", 25), ("a b", "a b c", 50), ("a", "b", 0), ("", "a", 100), ("", " ", 0)],
)
def test_the_size_of_a_change_is_counted_in_words(before: str, after: str, percent: float) -> None:
    """This number rejects edits that lose half the text."""
    assert word_change_pct(before, after) == percent


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("One bad line.\n", "One line."),
        ("One bad line.", "One line.\n"),
        ("a\nOne bad line.\n", "a\nOne line."),
        ("One bad line.\n", "One line.\n"),
    ],
)
def test_a_change_keeps_its_finding_whatever_happens_to_the_last_line_break(
    before: str, after: str
) -> None:
    """The recorded range counts that line break as a line; the shown one does not."""
    labels = tied_labels({"a": before}, {"a": after}, {"a": [("tone", "bad")]})

    (hunk,) = diff_files({"a": before}, {"a": after}, labels)["a"]

    assert hunk.findings == ("tone",)


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
