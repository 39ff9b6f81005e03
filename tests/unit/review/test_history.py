"""Tests of the history of a review."""

from typing import Any

import pytest

from signoff.review.finding import Finding, FindingStatus
from signoff.review.history import (
    Judgment,
    ReviewHistory,
    Round,
    Version,
    change_to_json,
    fate,
    fates_by_round,
    finding_to_json,
    open_counts,
)
from signoff.review.severity import Severity


def finding(name: str, *history: tuple[int, str], **fields: Any) -> Finding:
    values = {"severity": Severity.HIGH, "quote": "see", "location": "", "finding": "Wrong."}
    first = history[0][0] if history else 1
    known = {"first": first, "last": first, "history": history, **values, **fields}
    return Finding(id=name, constraint="clear", rule="spelling", **known)


def version(number: int, text: str, **fields: Any) -> Version:
    return Version(number, max(1, number - 1), "fix", "refine", {"": text}, **fields)


HISTORY = ReviewHistory(
    file_name="sea.md",
    versions=(
        version(1, "The see is\nwide, wide see.\n"),
        version(2, "The sea is\nwide, wide sea.\n", labels={"\n@@ -1,2 +1,2 @@": ("a",)}),
        version(3, "The sea is\nwide.\n"),
    ),
    rounds=(Round(1, reviewed=1, written=(2,)), Round(2, reviewed=2, written=(3,)), Round(3)),
    findings=(
        finding("a", (1, "new"), (2, "fixed"), status=FindingStatus.FIXED),
        finding("b", (2, "new"), quote="wide sea", severity=Severity.LOW),
        finding("c", (1, "new"), quote="OMISSION", severity=Severity.CRITICAL),
    ),
)


def test_a_finding_is_located_in_the_version_in_which_it_was_last_reported() -> None:
    """In a later version its words may be gone."""
    fixed, still_open, omission = HISTORY.findings

    assert HISTORY.place(fixed) == "sea.md:1"
    assert HISTORY.place(still_open) == "sea.md:2"
    assert HISTORY.place(omission) == "sea.md"


def test_the_hunks_of_one_round_have_the_findings_that_were_recorded() -> None:
    """They are what the fixer was asked to fix."""
    before, after = HISTORY.fix_of(1) or pytest.fail("there is a fix")

    ((hunk,),) = HISTORY.changes(before, after).values()

    assert hunk.findings == ("a",)
    assert HISTORY.answers == {"a": 2}


def test_the_hunks_of_several_rounds_are_tied_to_the_findings_of_these_rounds() -> None:
    """The whole change is what a user applies."""
    ((hunk,),) = HISTORY.changes(HISTORY.versions[0], HISTORY.versions[2]).values()

    assert "a" in hunk.findings


def test_a_round_without_a_fix_changes_nothing() -> None:
    """The last round of an approved run has none."""
    assert HISTORY.fix_of(3) is None
    assert HISTORY.fix_of(7) is None


def test_the_result_is_the_approved_version_else_the_best_else_the_latest() -> None:
    """`cat` prints what the run leaves in its folder."""
    versions = HISTORY.versions

    latest = ReviewHistory(versions=versions).result
    best = ReviewHistory(versions=versions, best=2).result
    approved = ReviewHistory(versions=versions, best=2, approved=True).result

    assert [each and each.number for each in (latest, best, approved)] == [3, 2, 3]
    assert ReviewHistory().result is None


BACK = ((1, "new"), (2, "fixed"), (3, "regressed"))


@pytest.mark.parametrize(
    ("status", "history", "words"),
    [
        (FindingStatus.OPEN, BACK[:1], "open since round 1"),
        (FindingStatus.OPEN, BACK, "open, came back in round 3"),
        (FindingStatus.FIXED, BACK[:2], "fixed in round 2"),
        (FindingStatus.DISMISSED, (BACK[0], (1, "dismissed")), "dismissed in round 1"),
        (FindingStatus.DISMISSED, ((0, "dismissed"),), "dismissed before this run"),
        (
            FindingStatus.ADDRESSED,
            (BACK[0], (2, "addressed")),
            "addressed in round 2, awaits your sign-off",
        ),
        (FindingStatus.IGNORED, ((1, "ignored"),), "ignored"),
    ],
)
def test_a_finding_says_what_became_of_it(
    status: FindingStatus, history: tuple[tuple[int, str], ...], words: str
) -> None:
    """Users look for what is left to do."""
    assert fate(finding("a", *history, status=status, returns=history.count(BACK[2]))) == words


def test_rounds_list_the_latest_label_of_each_finding_the_worst_first() -> None:
    """A finding that was reported and dismissed in one round is shown once."""
    twice = finding("d", (1, "new"), (1, "dismissed"), status=FindingStatus.DISMISSED)
    history = ReviewHistory(findings=(*HISTORY.findings, twice))

    table = fates_by_round(history)

    assert [(f.id, label) for f, label in table[1]] == [
        ("c", "new"),
        ("a", "new"),
        ("d", "dismissed"),
    ]
    assert [(f.id, label) for f, label in table[2]] == [("a", "fixed"), ("b", "new")]


def test_programs_get_the_place_the_fate_and_the_edit_of_a_finding() -> None:
    """They need not parse what is printed for humans."""
    judgment = Judgment(1, "judge", "claude", "REWRITE", dismissed={"a": "no"})
    history = ReviewHistory(
        file_name="sea.md",
        versions=HISTORY.versions,
        rounds=(Round(1, 1, (2,), judgments=(judgment,)),),
        findings=HISTORY.findings,
        issues={"a": {"edit": {"kind": "replace"}}},
    )

    plain = finding_to_json(history, HISTORY.findings[0])

    assert (plain["path"], plain["line"], plain["column"], plain["end_column"]) == (
        "sea.md",
        1,
        5,
        8,
    )
    assert (plain["fate"], plain["dismissed_by"], plain["label"]) == (
        "fixed in round 2",
        "claude",
        "fixed",
    )
    assert plain["edit"] == {"kind": "replace"}


def test_programs_get_the_hunks_of_a_change() -> None:
    """With the findings that each of them answers."""
    plain = change_to_json(HISTORY, *HISTORY.versions[:2])

    assert (plain["round"], plain["from"], plain["to"], plain["agent"]) == (1, 1, 2, None)
    assert plain["files"][0]["hunks"][0]["findings"] == ["a"]


def test_open_findings_are_counted_by_severity() -> None:
    """The worst is named first."""
    assert open_counts(HISTORY.open_findings()) == {"CRITICAL": 1, "LOW": 1}
