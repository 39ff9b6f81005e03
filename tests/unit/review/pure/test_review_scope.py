"""One critique against several constraints, and one critique for each of them."""

from dataclasses import replace
from typing import Any

import pytest

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.pure.constraint import Constraint, Rule
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall, Withdrawal
from signoff.review.pure.review_scope import WITHDRAWAL_RULE, OpenIssues, ReviewScope

TONE = Constraint(
    "tone", rules=(Rule("calm", "No shouting.", Severity.LOW), Rule("brief", "Short."))
)
FACTS = Constraint("facts", rules=(Rule("true", "No lies."), Rule("brief", "No digressions.")))
LAW = Constraint("law")
ALL = ReviewScope((TONE, FACTS, LAW))


def critique(*rules: str, overall: Overall = Overall.FAIL) -> Critique:
    """Returns a critique with an issue for each rule."""
    issues = tuple(CritiqueIssue(f"i-{n}", rule) for n, rule in enumerate(rules, start=1))
    return Critique("tone", "claude", 2, overall, issues, ({"note": "x"},), "Sum.", ("noted",))


def found(scope: ReviewScope, *rules: str) -> dict[str, list[tuple[str, str]]]:
    """Returns the issues of each part: its id and its rule."""
    parts = scope.split(critique(*rules))
    return {part.constraint_id: [(i.id, i.rule_id) for i in part.issues] for part in parts}


def test_each_constraint_gets_the_issues_that_name_its_rules() -> None:
    """A finding under another constraint would have another behavior, or be a new one."""
    assert found(ALL, "facts/true", "tone/calm", "facts/brief", "law") == {
        "tone": [("i-2", "calm")],
        "facts": [("i-1", "true"), ("i-3", "brief")],
        "law": [("i-4", "law")],
    }
    assert ALL.unknown_rules(critique("facts/true", "law")) == []


def test_a_short_name_counts_if_it_can_only_mean_one_rule() -> None:
    """Models forget the prefix; `brief` could be either of two rules."""
    assert found(ALL, "true", "calm")["facts"] == [("i-1", "true")]
    assert ALL.unknown_rules(critique("true", "calm", "facts")) == []

    (named, valid) = ALL.unknown_rules(critique("brief"))

    assert "i-1" in named
    assert "tone/brief" in valid
    assert "facts/brief" in valid


@pytest.mark.parametrize("rule", ["", "security/secret", "tone/true", "facts / true", "TONE/CALM"])
def test_an_issue_that_names_no_known_rule_is_reported_and_never_lost(rule: str) -> None:
    """The artifact may tell a critic to blame a rule that nobody reviews."""
    first, *others = ALL.split(critique(rule))

    assert len(ALL.unknown_rules(critique(rule))) == 2
    assert [issue.rule_id for issue in first.issues] == [rule]
    assert first.overall is Overall.FAIL
    assert "i-1" in first.notes[-1]
    assert all(other.issues == () for other in others)


def test_a_constraint_without_issues_passes() -> None:
    """The verdict of the whole is about the constraints with issues."""
    parts = ALL.split(critique("facts/true"))

    assert [part.overall for part in parts] == [Overall.PASS, Overall.FAIL, Overall.PASS]


def test_an_error_is_an_error_for_every_constraint() -> None:
    """Nothing passes because nothing was read."""
    assert {part.overall for part in ALL.split(critique(overall=Overall.ERROR))} == {Overall.ERROR}


def test_one_constraint_takes_every_issue_as_it_is() -> None:
    """A critic of one constraint need not name a rule, and never had to."""
    scope, whole = ReviewScope((TONE,)), critique("", "anything", "other/calm")

    assert scope.split(whole) == [whole]
    assert scope.unknown_rules(whole) == []
    assert scope.rules == ["calm", "brief"]
    assert (scope.severities["calm"], scope.severities["brief"]) == (Severity.LOW, Severity.HIGH)


def test_a_rule_is_the_same_with_its_constraint_in_front() -> None:
    """Otherwise a critic that names it in full would report another finding."""
    scope = ReviewScope((TONE,))

    (part,) = scope.split(critique("tone/calm", "calm"))

    assert [issue.rule_id for issue in part.issues] == ["calm", "calm"]
    assert scope.severities["tone/calm"] is Severity.LOW


def test_a_constraint_fails_only_because_of_its_own_issues() -> None:
    """Its file would show FAIL with nothing but a MEDIUM issue."""
    whole = critique("facts/true", "tone/calm")
    medium = replace(whole.issues[1], severity=Severity.MEDIUM)

    mixed = ALL.split(replace(whole, issues=(whole.issues[0], medium)))
    minor = ALL.split(replace(whole, issues=(medium,)))

    assert {each.constraint_id: each.overall.value for each in mixed} == {
        "tone": "PASS",
        "facts": "FAIL",
        "law": "PASS",
    }
    assert [each.overall.value for each in minor] == ["FAIL", "PASS", "PASS"]


def test_a_rule_whose_name_looks_like_another_one_changes_nothing() -> None:
    """Ids of rules are free texts, so one may be `facts/true` in another constraint."""
    odd = Constraint("odd", rules=(Rule("facts/true", "Odd."), Rule("tone", "Odder.")))
    scope = ReviewScope((odd, FACTS, TONE))

    assert found(scope, "facts/true", "odd/facts/true", "odd/tone")["facts"] == [("i-1", "true")]
    assert scope.unknown_rules(critique("tone")) != []


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
