"""Tests of changes between two versions."""

from signoff.core.severity import Severity
from signoff.pages.html import join
from signoff.pages.review import DiffView, changes_html
from signoff.review.diff import label_key
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Version


def finding(name: str, quote: str) -> Finding:
    return Finding(name, "clear", "", Severity.HIGH, quote, "", "Wrong.", first=1, last=1)


def version(number: int, text: str, **labels: tuple[str, ...]) -> Version:
    keys = {label_key("", header): found for header, found in labels.items()}
    return Version(number, number, "fix", "refine", {"": text}, labels=keys)


HISTORY = ReviewHistory(
    file_name="page.md",
    versions=(
        version(1, "one\ntwo\nthree\n"),
        version(2, "one\n2\nthree\n", **{"@@ -2 +2 @@": ("f1",)}),
        version(3, "one\n2\nthree!\n"),
    ),
    findings=(finding("f1", "two"),),
)


def made(view: DiffView, first: int | None = None, last: int | None = None) -> str:
    return join(changes_html(HISTORY, "run", first, last, view))


def test_any_two_versions_can_be_compared() -> None:
    """A reader who was away wants to see everything since the first version."""
    latest, whole = made(DiffView.INLINE), made(DiffView.INLINE, 1, 3)

    assert "three<ins>!</ins>" in latest
    assert "two" not in latest
    assert "two" in whole
    assert "three<ins>!</ins>" in whole


def test_hunks_name_the_findings_they_answer() -> None:
    """That is the question a reviewer has about every change."""
    assert 'answers <a href="#f-f1">clear f1</a>' in made(DiffView.INLINE, 1, 2)
    assert 'answers <a href="#f-f1">clear f1</a>' in made(DiffView.SPLIT, 1, 2)
    assert "answers no finding" in made(DiffView.INLINE, 2, 3)


def test_side_by_side_old_lines_are_on_the_left() -> None:
    """Long lines are easier to compare next to each other."""
    shown = made(DiffView.SPLIT, 1, 2)

    row = next(part for part in shown.split("<tr>") if 'class="del"' in part)
    assert row.index('class="del"') < row.index('class="add"')
    assert "two" in row
    assert shown.count("<tr>") == 3


def test_versions_that_do_not_exist_fall_back_to_the_latest() -> None:
    """An old link must not break the page."""
    assert made(DiffView.INLINE, 99, -1) == made(DiffView.INLINE)
    assert made(DiffView.INLINE, 3, 1) == made(DiffView.INLINE, 1, 3)
    assert "only one version" in join(
        changes_html(ReviewHistory(), "run", None, None, DiffView.INLINE)
    )
