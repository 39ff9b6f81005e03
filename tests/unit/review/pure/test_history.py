"""Tests of the history of a review."""

from typing import Any

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.pure.finding import Finding
from signoff.review.pure.history import (
    Judgment,
    ReviewHistory,
    Round,
    Version,
    describe_result,
    describe_status,
    finding_to_json,
    labels_by_round,
)


def finding(name: str, *history: tuple[int, Label], **fields: Any) -> Finding:
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
        finding("a", (1, Label.NEW), (2, Label.FIXED), status=FindingStatus.FIXED),
        finding("b", (2, Label.NEW), quote="wide sea", severity=Severity.LOW),
        finding("c", (1, Label.NEW), quote="OMISSION", severity=Severity.CRITICAL),
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


def test_the_result_is_the_approved_version_else_the_best_else_the_latest() -> None:
    """`cat` prints what the run leaves in its folder."""
    versions = HISTORY.versions

    latest = ReviewHistory(versions=versions).result
    best = ReviewHistory(versions=versions, best=2).result
    approved = ReviewHistory(versions=versions, best=2, passed=True).result

    assert [each and each.number for each in (latest, best, approved)] == [3, 2, 3]
    assert ReviewHistory().result is None


BACK = ((1, Label.NEW), (2, Label.FIXED), (3, Label.BACK))


@pytest.mark.parametrize(
    ("status", "history", "words"),
    [
        (FindingStatus.OPEN, BACK[:1], "open since round 1"),
        (FindingStatus.OPEN, BACK, "back since round 3"),
        (FindingStatus.OPEN, (*BACK, (4, Label.STILL_OPEN)), "back since round 3"),
        (FindingStatus.FIXED, BACK[:2], "fixed in round 2"),
        (FindingStatus.DISMISSED, (BACK[0], (1, Label.DISMISSED)), "dismissed in round 1"),
        (FindingStatus.DISMISSED, ((0, Label.DISMISSED),), "dismissed before this run"),
        (
            FindingStatus.ADDRESSED,
            BACK[:2],
            "fixed in round 2, awaiting your sign-off",
        ),
        (FindingStatus.IGNORED, ((1, Label.IGNORED),), "ignored"),
    ],
)
def test_a_finding_says_what_became_of_it(
    status: FindingStatus, history: tuple[tuple[int, Label], ...], words: str
) -> None:
    """Users look for what is left to do."""
    returns = history.count(BACK[2])

    assert describe_status(finding("a", *history, status=status, returns=returns)) == words


@pytest.mark.parametrize(
    ("passed", "by", "completed", "words"),
    [
        (True, "", True, "passed review"),
        (True, "ann", True, "approved by ann"),
        (True, "", False, "passed review, not approved"),
        (False, "", False, "has not passed review"),
    ],
)
def test_only_a_human_approves(passed: bool, by: str, completed: bool, words: str) -> None:
    """A reader must be able to tell a judge's verdict from a decision of a human."""
    history = ReviewHistory(passed=passed, approved_by=by)

    assert describe_result(history, completed=completed) == words


@pytest.mark.parametrize(
    ("verdict", "fields", "words"),
    [
        ("APPROVED", {}, "passed"),
        ("APPROVED", {"to_fix": ("a", "b")}, "passed, 2 open"),
        ("REWRITE", {"to_fix": ("a",), "dismissed": {"b": ""}},
         "asks for changes, 1 to fix, 1 dismissed"),
        ("REWRITE", {"to_fix": ("a",), "fixes": False}, "1 finding open, none blocking"),
        ("ERROR", {}, "no verdict"),
    ],
)  # fmt: skip
def test_a_judge_passes_a_text_or_asks_for_changes(
    verdict: str, fields: dict[str, Any], words: str
) -> None:
    """The words of the reply format are for models."""
    assert Judgment(1, "judge", "policy", verdict, **fields).words == words


def test_rounds_list_the_latest_label_of_each_finding_the_open_ones_first() -> None:
    """A finding that was reported and dismissed in one round is shown once."""
    twice = finding("d", (1, Label.NEW), (1, Label.DISMISSED), status=FindingStatus.DISMISSED)
    history = ReviewHistory(findings=(*HISTORY.findings, twice))

    table = labels_by_round(history)

    assert [(f.id, label) for f, label in table[1]] == [
        ("c", Label.NEW),
        ("a", Label.NEW),
        ("d", Label.DISMISSED),
    ]
    assert [(f.id, label) for f, label in table[2]] == [("b", Label.NEW), ("a", Label.FIXED)]


def test_programs_get_the_place_the_status_and_the_edit_of_a_finding() -> None:
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
    assert (plain["status"], plain["dismissed_by"]) == ("fixed", "claude")
    assert plain["history"] == [[1, "new"], [2, "fixed"]]
    assert "label" not in plain, "one field says what became of it"
    assert plain["edit"] == {"kind": "replace"}
