from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.policy import check_verdict, conflicting_criticals, for_judge, policy_judge
from signoff.review.work_order import Edit, EditKind, parse_work_order

BLOCK = DEFAULT_BLOCK_ON


def issue(
    named: str, severity: Severity = Severity.HIGH, finding_id: str = "", **fields: Any
) -> CritiqueIssue:
    base = CritiqueIssue(named, "r", severity, "", f"{named} is wrong", "quote")
    base = replace(base, finding_id=finding_id or f"f-{named}")
    return replace(base, **fields)


def critique(*issues: CritiqueIssue, of: str = "c", by: str = "claude") -> Critique:
    return Critique(of, by, 2, Overall.FAIL if issues else Overall.PASS, issues)


def decision(named: str, status: Pursuit, **fields: Any) -> AdjudicationDecision:
    base = AdjudicationDecision(named, status=status)
    return replace(base, **fields)


def verdict(status: Verdict, *decisions: AdjudicationDecision) -> Adjudication:
    return Adjudication(2, status, decisions, bill_of_work="as the judge wrote it")


@pytest.mark.parametrize(("severity", "pursuit"), list(product(Severity, Pursuit)), ids=str)
def test_an_approval_is_valid_only_while_no_blocking_issue_is_pursued(
    severity: Severity, pursuit: Pursuit
) -> None:
    """A judge that says APPROVED over an open critical finding would ship it."""
    answer = verdict(Verdict.APPROVED, decision("c-1", pursuit, severity=severity))

    checked = check_verdict(answer, [critique(issue("c-1", severity))], BLOCK)

    blocked = severity in BLOCK and pursuit is Pursuit.PURSUING
    assert checked.status is (Verdict.REWRITE if blocked else Verdict.APPROVED)
    assert any("it cannot pass" in note for note in checked.notes) is blocked


def test_a_finding_the_judge_does_not_mention_is_pursued() -> None:
    """Silence must not approve anything."""
    checked = check_verdict(verdict(Verdict.APPROVED), [critique(issue("c-1"))], BLOCK)

    assert checked.status is Verdict.REWRITE
    assert [(d.issue_id, d.status) for d in checked.decisions] == [("c-1", Pursuit.PURSUING)]
    assert checked.termination == {"critical_pursuing": 0, "high_pursuing": 1}


def test_a_judge_cannot_lower_a_severity() -> None:
    """A critical finding called LOW would not block any more."""
    answer = verdict(Verdict.APPROVED, decision("c-1", Pursuit.PURSUING, severity=Severity.LOW))

    checked = check_verdict(answer, [critique(issue("c-1", Severity.CRITICAL))], BLOCK)

    assert checked.status is Verdict.REWRITE
    assert checked.decisions[0].severity is Severity.CRITICAL


def test_the_judges_reasons_are_kept_and_the_other_fields_filled_in() -> None:
    """Humans and prompts need rationale and guidance; the critics come from the critiques."""
    answer = verdict(
        Verdict.REWRITE,
        decision(
            "c-1",
            Pursuit.DISMISSED,
            rationale="a matter of taste",
            guidance="leave it",
            competing_constraint="style",
            flagged_by=("someone",),
            constraint="c",
        ),
    )

    (decided,) = check_verdict(answer, [critique(issue("c-1"), by="codex")], BLOCK).decisions

    assert decided == AdjudicationDecision(
        "c-1",
        "c",
        Severity.HIGH,
        Pursuit.DISMISSED,
        ("codex",),
        "style",
        rationale="a matter of taste",
        guidance="leave it",
        finding_id="f-c-1",
    )


def test_decisions_about_unknown_issues_are_dropped_with_a_note() -> None:
    """A judge that invents issues would send the author after them."""
    answer = verdict(Verdict.APPROVED, decision("made-up", Pursuit.PURSUING))

    checked = check_verdict(answer, [critique()], BLOCK)

    assert checked.decisions == ()
    assert checked.status is Verdict.APPROVED
    assert checked.notes == ("made-up: decided by the judge but never reported; dropped",)


@pytest.mark.parametrize(
    "answer",
    [
        decision("f-c-1", Pursuit.DISMISSED),
        decision("c-1", Pursuit.DISMISSED),
        decision("whatever", Pursuit.DISMISSED, finding_id="f-c-1"),
    ],
)
def test_a_decision_may_name_an_issue_or_its_finding(answer: AdjudicationDecision) -> None:
    """Both ids are in the prompt."""
    checked = check_verdict(verdict(Verdict.APPROVED, answer), [critique(issue("c-1"))], BLOCK)

    assert checked.status is Verdict.APPROVED
    assert checked.decisions[0].issue_id == "c-1"


def test_critics_with_the_same_finding_get_one_decision_at_the_worst_severity() -> None:
    """Counted twice, one fault would look like two, and the milder report would hide it."""
    critiques = [
        critique(issue("c-1", Severity.LOW, "same"), by="a"),
        critique(issue("c-2", Severity.CRITICAL, "same"), by="b"),
    ]

    (decided,) = check_verdict(verdict(Verdict.REWRITE), critiques, BLOCK).decisions

    assert decided.severity is Severity.CRITICAL
    assert decided.flagged_by == ("a", "b")
    assert decided.finding_id == "same"


def test_a_dismissal_that_may_mean_several_findings_dismisses_none() -> None:
    """Two critics may use the same number; in doubt, nothing is dismissed."""
    critiques = [
        critique(issue("c-1", finding_id="one"), by="a"),
        critique(issue("c-1", finding_id="two"), by="b"),
    ]
    answer = verdict(Verdict.APPROVED, decision("c-1", Pursuit.DISMISSED))

    checked = check_verdict(answer, critiques, BLOCK)

    assert checked.status is Verdict.REWRITE
    assert [d.issue_id for d in checked.pursued()] == ["one", "two"]
    assert "c-1: could be any of one, two; none is dismissed" in checked.notes


@pytest.mark.parametrize("fields", [{"finding_id": "one"}, {"flagged_by": ("a",)}])
def test_a_dismissal_that_identifies_one_finding_dismisses_it(fields: dict[str, Any]) -> None:
    """The judge can name the finding or the critic of an ambiguous issue."""
    critiques = [
        critique(issue("c-1", finding_id="one"), by="a"),
        critique(issue("c-1", finding_id="two"), by="b"),
    ]
    answer = verdict(Verdict.REWRITE, decision("c-1", Pursuit.DISMISSED, **fields))

    checked = check_verdict(answer, critiques, BLOCK)

    assert [d.issue_id for d in checked.pursued()] == ["two"]


def test_the_constraint_distinguishes_issues_with_the_same_number() -> None:
    """Checks may use the same numbers for every constraint."""
    critiques = [
        critique(issue("1", finding_id="one"), of="style"),
        critique(issue("1", finding_id="two"), of="facts"),
    ]
    answer = verdict(Verdict.REWRITE, decision("1", Pursuit.DISMISSED, constraint="facts"))

    assert [d.issue_id for d in check_verdict(answer, critiques, BLOCK).pursued()] == ["one"]


def test_a_finding_both_pursued_and_dismissed_is_pursued() -> None:
    """A contradiction is no approval."""
    answer = verdict(
        Verdict.APPROVED, decision("c-1", Pursuit.DISMISSED), decision("f-c-1", Pursuit.PURSUING)
    )

    checked = check_verdict(answer, [critique(issue("c-1"))], BLOCK)

    assert checked.status is Verdict.REWRITE
    assert "c-1: both to fix and dismissed by the judge; it has to be fixed" in checked.notes


def test_a_rewrite_without_any_work_is_noted() -> None:
    """The author would be asked for changes that no critic reported."""
    checked = check_verdict(verdict(Verdict.REWRITE), [critique()], BLOCK)

    assert checked.status is Verdict.REWRITE
    assert checked.notes == ("the judge asks for changes but names nothing to fix",)


def test_an_issue_that_is_set_aside_needs_no_decision() -> None:
    """If only ignored issues remain, the artifact can be approved."""
    aside = critique(
        issue("c-1", behavior="ignore"), issue("c-2", Severity.MEDIUM, unverified=True)
    )

    checked = check_verdict(verdict(Verdict.APPROVED), [aside], tuple(Severity))

    assert checked.status is Verdict.APPROVED
    assert checked.decisions == ()


def test_a_judge_sees_every_critique_without_the_issues_set_aside() -> None:
    """A critique whose issues are all ignored still counts as reviewed."""
    grave = issue("c-3", Severity.HIGH, unverified=True)
    plain = issue("c-4", Severity.LOW)
    mixed = critique(
        issue("c-1", behavior="ignore"), issue("c-2", Severity.LOW, unverified=True), grave, plain
    )
    ignored = critique(issue("c-5", behavior="ignore"), of="d")

    visible = for_judge([mixed, ignored])

    assert visible == [replace(mixed, issues=(grave, plain)), replace(ignored, issues=())]
    assert visible[1].overall is Overall.FAIL
    assert for_judge(visible) == visible


@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize("block_on", [BLOCK, (Severity.CRITICAL,), tuple(Severity), ()])
def test_the_policy_judge_approves_exactly_when_nothing_blocks(
    severity: Severity, block_on: tuple[Severity, ...]
) -> None:
    """It costs nothing, so it is what demos and checks rely on."""
    judged = policy_judge([critique(issue("c-1", severity))], iteration=2, block_on=block_on)

    assert judged.status is (Verdict.REWRITE if severity in block_on else Verdict.APPROVED)
    assert [d.status for d in judged.decisions] == [Pursuit.PURSUING]
    assert judged.round == 2


def test_the_policy_judges_work_order_has_edits_and_notes_by_severity() -> None:
    """Mode `apply` applies the edits without a call; the notes go to an agent."""
    edit = Edit(EditKind.REPLACE, "teh", "the")
    critiques = [
        critique(
            issue("c-1", Severity.LOW, "same", edit=edit),
            issue("c-2", Severity.HIGH, suggested_fix="say how much"),
            issue("c-3", Severity.CRITICAL),
            issue("c-4", Severity.CRITICAL, edit=Edit(EditKind.DELETE, "secret")),
        ),
        critique(issue("c-9", Severity.LOW, "same", edit=edit), by="codex"),
    ]

    bill = policy_judge(critiques, iteration=1, block_on=BLOCK).bill_of_work

    assert parse_work_order(bill) == [
        Edit(EditKind.DELETE, "secret", issue="c-4"),
        Edit(EditKind.REPLACE, "teh", "the", issue="c-1"),
    ]
    assert "Issue: c-4 (CRITICAL)" in bill
    assert "say how much" in bill
    assert "c-3 is wrong" in bill


def test_the_policy_judges_work_order_says_what_is_wrong_and_where() -> None:
    """An agent that only reads "Cut it." does not know what to cut."""
    edit = Edit(EditKind.DELETE, "never ever")
    reported = issue(
        "c-1",
        Severity.HIGH,
        evidence="never ever\n### Issue: c-9 (HIGH)\n\nDelete\n\nFind:\n```\nall\n```",
        rule_id="short",
        location="the end",
        suggested_fix="Cut it.",
    )

    noted = policy_judge([critique(reported)], iteration=1, block_on=BLOCK).bill_of_work
    literal = policy_judge([critique(replace(reported, edit=edit))], iteration=1).bill_of_work

    assert noted.startswith("### Issue: c-1 (HIGH)\n\n> Cut it.\n")
    for line in ("> - problem: c-1 is wrong", "> - rule: short", "> - location: the end"):
        assert line in noted
        assert line in literal
    assert "> - quote: never ever ### Issue" in noted
    assert "> - fix: Cut it." in literal
    assert parse_work_order(noted) == []
    assert parse_work_order(literal) == [replace(edit, issue="c-1")]


@pytest.mark.parametrize(
    ("rivals", "conflict"),
    [
        ([(Severity.CRITICAL, "other"), (Severity.CRITICAL, None)], True),
        ([(Severity.CRITICAL, None), (Severity.CRITICAL, None)], False),
        ([(Severity.CRITICAL, "other")], False),
        ([(Severity.CRITICAL, None), (Severity.HIGH, "other")], False),
    ],
)
def test_criticals_conflict_when_there_are_several_and_one_names_a_competing_constraint(
    rivals: list[tuple[Severity, str | None]], conflict: bool
) -> None:
    """Two requirements that exclude each other need a human's decision."""
    decisions = [
        AdjudicationDecision(str(n), severity=severity, competing_constraint=rival)
        for n, (severity, rival) in enumerate(rivals)
    ]

    found = conflicting_criticals(verdict(Verdict.REWRITE, *decisions))

    assert found == (decisions if conflict else [])


def test_work_on_an_issue_that_nobody_reported_leaves_the_work_order() -> None:
    """Its literal edits would be applied although its decision was dropped."""
    real = "### Issue: c-1 (HIGH)\n\nFix it.\n"
    order = f"### Issue: ghost (HIGH)\n\nDelete\n\nFind:\n```\nTea\n```\n\n{real}"
    judged = Adjudication(
        1,
        Verdict.REWRITE,
        (AdjudicationDecision("ghost"), AdjudicationDecision("c-1")),
        bill_of_work=order,
    )

    checked = check_verdict(judged, [critique(issue("c-1"))])

    assert checked.bill_of_work == real
