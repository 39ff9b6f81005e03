"""Artifacts of one text and of several files: versions, identity of findings, and locations."""

from __future__ import annotations

import time

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.artifact import (
    ArtifactVersion,
    locate,
    locate_finding,
    nearest,
    place,
    stated_line,
    version_digest,
    with_occurrence,
)
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.evidence import ArtifactText
from signoff.review.pure.finding import Finding
from signoff.review.pure.findings import Ledger

QUOTE = "It always works."
FILES = {"a.md": f"Title\n\n{QUOTE}\n", "b.md": f"{QUOTE}\n"}


def critique(*paths: str, reported: tuple[str, ...] | None = None) -> Critique:
    issues = tuple(
        CritiqueIssue(f"tone-{path}", "claims", finding="Too sure.", evidence=QUOTE, path=path)
        for path in (paths if reported is None else reported)
    )
    overall = Overall.FAIL if issues else Overall.PASS
    return Critique("tone", "claude", 1, overall, issues, paths=paths)


def by_path(ledger: Ledger) -> dict[str, Finding]:
    return {finding.path: finding for finding in ledger.findings.values()}


def test_the_version_of_a_single_text_is_the_digest_it_always_was() -> None:
    assert ArtifactVersion.of("text").version == version_digest("text")


def test_a_set_has_another_version_if_a_file_changes_or_moves() -> None:
    versions = {
        ArtifactVersion.of(files).version
        for files in (FILES, {**FILES, "a.md": "x"}, {"c.md": FILES["a.md"], "b.md": QUOTE})
    }

    assert len(versions) == 3
    assert ArtifactVersion.of(dict(reversed(FILES.items()))).version in versions


def test_equal_quotes_in_two_files_are_two_findings() -> None:
    ledger, (labeled,) = Ledger().record(
        iteration=1, critiques=[critique("a.md", "b.md")], artifact=FILES
    )

    assert sorted(by_path(ledger)) == ["a.md", "b.md"]
    assert [issue.finding_id for issue in labeled.issues] == list(ledger.findings)


def test_a_finding_is_fixed_only_if_its_own_file_was_read_again() -> None:
    ledger, _ = Ledger().record(iteration=1, critiques=[critique("a.md", "b.md")], artifact=FILES)
    changed = {"a.md": "Title\n", "b.md": "Title\n"}

    ledger, _ = ledger.record(
        iteration=2,
        critiques=[critique("a.md", reported=())],
        artifact=changed,
        previous_artifact=FILES,
    )

    assert by_path(ledger)["a.md"].status is FindingStatus.FIXED
    assert by_path(ledger)["b.md"].status is FindingStatus.OPEN


def test_words_that_another_file_has_do_not_keep_a_finding_open() -> None:
    ledger, _ = Ledger().record(iteration=1, critiques=[critique("a.md")], artifact=FILES)

    ledger, _ = ledger.record(
        iteration=2,
        critiques=[critique("a.md", "b.md", reported=())],
        artifact={**FILES, "a.md": "Title\n"},
        previous_artifact=FILES,
    )

    assert by_path(ledger)["a.md"].status is FindingStatus.FIXED


@pytest.mark.parametrize(
    ("quote", "place"),
    [
        (QUOTE, "a.md:3:1"),
        ("always works", "a.md:3:4"),
        ("Title\n\nIt always", "a.md:1:1"),
        ("it always works", "a.md:3"),
        ("never works", "None"),
    ],
)
def test_a_quote_is_located_by_line_and_where_it_is_literal_by_column(
    quote: str, place: str
) -> None:
    assert str(locate(ArtifactVersion.of(FILES), quote, "a.md")) == place


def test_columns_count_characters_and_not_bytes_or_units() -> None:
    found = locate(ArtifactVersion.of({"a.md": "🎉 漢字 end\n"}), "漢字", "a.md")

    assert found is not None
    assert (found.column, found.end_column, found.end_line) == (3, 5, 1)


def test_a_finding_about_something_missing_has_no_line() -> None:
    missing = Finding("f", "tone", "", Severity.HIGH, "OMISSION", "", "No date.", path="a.md")

    assert locate_finding(ArtifactVersion.of(FILES), missing) is None


def test_a_file_that_is_not_in_the_set_has_no_passages() -> None:
    assert locate(ArtifactVersion.of(FILES), QUOTE, "c.md") is None


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
