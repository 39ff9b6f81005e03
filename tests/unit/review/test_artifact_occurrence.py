import time

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.artifact import nearest, place, stated_line, with_occurrence
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.evidence import ArtifactText
from signoff.review.finding import Finding
from signoff.review.findings import Ledger

BAD = "x = 1"


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ("line 3", 3),
        ("Lines 3-5", 3),
        ("src/a.py:3", 3),
        ("src/a.py:3:7", 3),
        ("my file.py:3", 3),
        ("L3", 3),
        ("3", 3),
        ("in f, line 12", 12),
        ("", 0),
        ("Introduction", 0),
        ("2. Introduction", 0),
        ("section 4", 0),
        ("the 3rd paragraph", 0),
    ],
)
def test_a_line_is_read_where_a_location_names_one(location: str, line: int) -> None:
    assert stated_line(location) == line


def test_passages_are_told_apart_by_the_nearest_other_lines() -> None:
    found = ArtifactText(f"a\n\n{BAD}\n{BAD}\n\nb\n  {BAD}\n").occurrences(BAD)

    assert [each.line for each in found] == [3, 4, 7]
    assert [each.context for each in found] == [("a", "b"), ("a", "b"), ("b", "")]
    assert [each.tie for each in found] == [0, 1, 0]


def test_the_passage_on_a_line_is_the_nearest() -> None:
    found = ArtifactText(f"{BAD}\na\na\n{BAD}\na\n{BAD}").occurrences(BAD)

    assert [nearest(found, line).line for line in (0, 1, 3, 4, 6, 99)] == [1, 1, 4, 4, 6, 6]


def finding(text: str, line: int, status: FindingStatus = FindingStatus.DISMISSED) -> Finding:
    base = Finding(f"f{line}", "c", "r", Severity.HIGH, BAD, "", "unused", status)
    return with_occurrence(base, nearest(ArtifactText(text).occurrences(BAD), line))


@pytest.mark.parametrize(
    ("before", "line", "after", "expected"),
    [
        ("a\nB\nb\nB\nc", 4, "new\na\nB\nb\nB\nc", 5),
        ("a\nB\nb", 2, "k\nB\nl", 2),
        ("a\nB\nb", 2, "a\nB\nb\na\nB\nb", 2),
        ("a\nB\nb\nB\nc", 2, "b\nB\nc", None),
        ("a\nB\nb", 2, "a\nb", None),
        ("a\nB\nr\nb\nB\nr", 2, "k\nB\nr\nb\nB\nr", 2),
    ],
    ids=["moved", "surroundings", "copied", "deleted", "gone", "partly new surroundings"],
)
def test_a_passage_is_found_again(before: str, line: int, after: str, expected: int | None) -> None:
    before, after = before.replace("B", BAD), after.replace("B", BAD)
    known = finding(before, line)

    placed = place([known], lambda _: ArtifactText(after))

    now = placed.get(known.id)
    assert (now.line if now else None) == expected


def test_an_open_finding_stays_open_if_any_equal_passage_is_left() -> None:
    """A decision ends if its passage may be gone; a problem does not."""
    known = finding(f"a\n{BAD}\nb\n{BAD}\nc", 2, FindingStatus.OPEN)

    assert place([known], lambda _: ArtifactText(f"b\n{BAD}\nc"))[known.id].line == 2


@pytest.mark.parametrize("between", ["", "\nother {}"])
def test_five_thousand_equal_lines_are_told_apart_quickly(between: str) -> None:
    text = "\n".join(BAD + between.format(n) for n in range(5_000))
    lines = [n for n, line in enumerate(text.split("\n"), start=1) if line == BAD]
    issues = tuple(
        CritiqueIssue(f"c-{n}", "r", Severity.HIGH, f"line {n}", "unused", BAD) for n in lines
    )
    critique = Critique("c", "ruff", 1, Overall.FAIL, issues)

    started = time.thread_time()
    ledger, _ = Ledger().record(iteration=1, critiques=[critique], artifact=text)
    ledger, _ = ledger.record(iteration=2, critiques=[critique], artifact=f"new\n{text}")

    assert len(ledger.findings) == 5_000
    # CPU time, so that a busy machine changes nothing. A tenth of it is usual; with each line
    # compared to each it would be minutes.
    assert time.thread_time() - started < 30
