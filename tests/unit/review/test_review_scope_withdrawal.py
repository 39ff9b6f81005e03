"""Valid issues of an answer that was sent back count until they are withdrawn."""

from typing import Any

import pytest

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.critique import Critique, CritiqueIssue, Overall, Withdrawal
from signoff.review.review_scope import WITHDRAWAL_RULE, OpenIssues


def issue(id_: str = "a", finding: str = "Too sure.", **more: Any) -> CritiqueIssue:
    """Returns an issue with HIGH severity."""
    fields = {"rule_id": "sure", "severity": Severity.HIGH, "evidence": "It always works."}
    return CritiqueIssue(id_, finding=finding, **{**fields, **more})


def answer(*issues: CritiqueIssue, withdrawn: tuple[Withdrawal, ...] = ()) -> Critique:
    """Returns an answer that passes."""
    return Critique("tone", "claude", 1, Overall.PASS, issues, withdrawn=withdrawn)


def merged(kept: list[CritiqueIssue], critique: Critique) -> Critique:
    """Returns what counts of an answer after these issues of the one before were valid."""
    valid = OpenIssues()
    valid.keep(kept)
    return valid.merged(critique, lambda _issue: "tone", DEFAULT_BLOCK_ON)


def test_the_critic_is_told_what_stays_open() -> None:
    """It needs the ids to withdraw anything."""
    told = OpenIssues().keep([issue("a", "Too\nsure.")])

    assert told == [WITHDRAWAL_RULE, "a (HIGH) stays open: Too sure."]
    assert OpenIssues().keep([]) == []


def test_an_issue_that_is_left_out_still_counts() -> None:
    """A pass that leaves out a blocking issue does not pass."""
    result = merged([issue()], answer())

    assert (result.overall, result.issues) == (Overall.FAIL, (issue(),))


def test_an_issue_of_another_place_keeps_its_own_id() -> None:
    """The second answer numbers its issues from the start again."""
    other = issue("a", "Too vague.", evidence="Maybe.", severity=Severity.LOW)

    result = merged([issue("a")], answer(other))

    assert [(each.id, each.finding) for each in result.issues] == [
        ("a", "Too sure."),
        ("tone-001", "Too vague."),
    ]


@pytest.mark.parametrize(
    "repeat",
    [
        issue("x", "It promises too much."),
        issue("x", evidence="It  always\nworks."),
        issue("x", "Too sure!", evidence="always works"),
    ],
)
def test_an_issue_that_is_repeated_counts_once(repeat: CritiqueIssue) -> None:
    """By its passage, or by its wording if the passage was cut differently."""
    result = merged([issue()], answer(repeat))

    assert [each.id for each in result.issues] == ["a"]


def test_equal_lines_are_paired_by_their_locations() -> None:
    """Three equal lines have three issues; naming one of them again loses none."""
    lines = [issue(name, location=f"line {name}") for name in "123"]

    result = merged(lines, answer(issue("x", location="line 3")))

    assert [each.location for each in result.issues] == ["line 1", "line 2", "line 3"]


def test_different_omissions_of_one_rule_are_both_kept() -> None:
    """They have no passage, so only their wording tells them apart."""
    node = issue("a", "Node.js is not mentioned.", evidence="OMISSION")
    disk = issue("b", "How much disk space it needs is left open.", evidence="OMISSION")

    assert len(merged([node], answer(disk)).issues) == 2


def test_a_lower_severity_needs_a_withdrawal() -> None:
    """Otherwise a blocking issue would disappear by being repeated."""
    low = issue("a", severity=Severity.LOW)

    kept = merged([issue()], answer(low))
    lowered = merged([issue()], answer(low, withdrawn=(Withdrawal("a", "Only a hint."),)))

    assert (kept.overall, kept.issues[0].severity) == (Overall.FAIL, Severity.HIGH)
    assert (lowered.overall, lowered.issues) == (Overall.PASS, (low,))


@pytest.mark.parametrize(
    ("withdrawn", "left"),
    [
        ([], 2),
        ([("a", "Wrong.")], 1),
        ([("a", "Wrong."), ("b", "Wrong.")], 0),
        ([("a", "Wrong."), ("b", "")], 1),
        ([("a", "")], 2),
        ([("c", "Wrong.")], 2),
    ],
)
def test_only_a_reason_withdraws_an_issue(withdrawn: list[tuple[str, str]], left: int) -> None:
    """Withdrawals of issues that do not exist are noted and do nothing."""
    two = [issue("a"), issue("b", "Too vague.", evidence="Maybe.")]

    result = merged(two, answer(withdrawn=tuple(Withdrawal(*each) for each in withdrawn)))

    assert len(result.issues) == left
    assert result.withdrawn == ()
    ignored = [id_ for id_, reason in withdrawn if not reason or id_ == "c"]
    assert all(any(repr(id_) in note for note in result.notes) for id_ in ignored)
