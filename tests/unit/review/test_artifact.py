"""Artifacts of one text and of several files: versions, identity of findings, and locations."""

from __future__ import annotations

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.artifact import ArtifactVersion, locate, locate_finding, version_digest
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.findings import Finding, Ledger

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
