from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.artifact import version_digest
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
)
from signoff.review.pure.finding import Finding
from signoff.review.pure.findings import Ledger
from signoff.review.pure.policy import (
    STOP_RULES,
    LoopProgress,
    Stop,
    check_approval,
    check_verdict,
    conflicting_criticals,
    find_stop_reason,
    for_judge,
    policy_judge,
    to_fix_in_a_row,
)
from signoff.review.pure.work_order import Edit, EditKind, parse_work_order

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


TEXT = "The see is wide.\n"
APPROVAL = Adjudication(1, Verdict.APPROVED)
BLOCKING = (Severity.CRITICAL, Severity.HIGH)


def ledger(**fields: Any) -> Ledger:
    """Returns a ledger with one finding about the text."""
    finding = Finding("f1", "clear", "r", Severity.HIGH, "The see", "", "misspelled")
    return Ledger({"f1": replace(finding, artifact=version_digest(TEXT), **fields)}, 1)


@pytest.mark.parametrize("quote", ["The see", "OMISSION"])
def test_an_open_finding_blocks(quote: str) -> None:
    """It is pursued, so that the next round is about it."""
    verdict = check_approval(APPROVAL, ledger(quote=quote), BLOCKING)

    assert (verdict.status, verdict.stated) == (Verdict.REWRITE, Verdict.APPROVED)
    assert [each.finding_id for each in verdict.pursued()] == ["f1"]
    assert "f1 (HIGH)" in verdict.notes[-1]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": FindingStatus.FIXED},
        {"status": FindingStatus.DISMISSED},
        {"status": FindingStatus.IGNORED},
        {"severity": Severity.LOW},
    ],
)
def test_findings_that_are_closed_or_minor_do_not_block(fields: dict[str, Any]) -> None:
    """Only open findings of a blocking severity do."""
    assert check_approval(APPROVAL, ledger(**fields), BLOCKING) == APPROVAL


def test_a_finding_that_the_judge_decided_about_is_not_listed_twice() -> None:
    """The judge saw only a minor report of a finding that another critic calls severe."""
    decision = AdjudicationDecision("clear-001", status=Pursuit.PURSUING, finding_id="f1")
    approval = replace(APPROVAL, decisions=(decision,))

    verdict = check_approval(approval, ledger(), BLOCKING)

    assert verdict.status is Verdict.REWRITE
    assert verdict.decisions == (decision,)


def ledger_of(*findings: Finding) -> Ledger:
    return Ledger({each.id: each for each in findings}, 3)


def found(
    named: str = "f1",
    *,
    returns: int = 0,
    status: FindingStatus = FindingStatus.OPEN,
    first: int = 1,
) -> Finding:
    return Finding(
        named, "c", "r", Severity.HIGH, "q", "", "", status, first=first, last=3, returns=returns
    )


def rounds(*counted: Mapping[str, int]) -> list[dict[str, Any]]:
    quiet = dict.fromkeys(("new", "still_open", "fixed", "back", "caused_by_fix"), 0)
    return [
        {
            "round": number,
            "open": {each.value: summary.get(each.value, 0) for each in Severity},
            **quiet,
            **{key: value for key, value in summary.items() if key in quiet},
        }
        for number, summary in enumerate(counted, 1)
    ]


def stop(
    rules: Mapping[str, int],
    counted: Sequence[Mapping[str, int]] = (),
    pursued: Sequence[Sequence[str]] = (),
    *findings: Finding,
) -> Stop | None:
    progress = LoopProgress(rounds(*counted), ledger_of(*(findings or (found(),))), pursued)
    return find_stop_reason(progress, rules)


def test_without_rules_nothing_ends_a_run() -> None:
    """A plain flow is bounded by its iterations and by nothing else."""
    stuck = [{"HIGH": 3}] * 10

    assert stop({}, stuck, [["f1"]] * 10, found(returns=9)) is None


@pytest.mark.parametrize(
    ("high", "ends"),
    [
        ([3], False),
        ([3, 3], False),
        ([3, 3, 3], True),
        ([3, 3, 2], False),
        ([3, 2, 3], False),
        ([3, 2, 3, 2], True),
        ([5, 4, 3, 2, 1], False),
        ([1, 2, 3], True),
        ([1, 5, 4, 3], True),
    ],
)
def test_a_plateau_is_so_many_rounds_no_better_than_the_best_before(
    high: list[int], ends: bool
) -> None:
    """A run that gets better now and then must not be cut off, one that is stuck must."""
    reason = stop({"plateau": 2}, [{"HIGH": each} for each in high])

    assert (reason is not None) is ends


def test_a_plateau_weighs_the_worst_findings_first() -> None:
    """Five new trifles for one critical finding less is progress."""
    better = [{"CRITICAL": 1}, {"HIGH": 1, "LOW": 5}]
    worse = [{"HIGH": 1, "LOW": 5}, {"CRITICAL": 1}]

    assert stop({"plateau": 1}, better) is None
    assert stop({"plateau": 1}, worse) is not None


def test_a_plateau_is_explained_with_its_numbers_and_findings() -> None:
    """A human has to decide what to do about it."""
    reason = stop({"plateau": 1}, [{"HIGH": 2}, {"HIGH": 2, "LOW": 1}])

    assert reason == Stop(
        "plateau",
        "no better than before (round 1: 2 HIGH, round 2: 2 HIGH 1 LOW); "
        "open: f1 (HIGH c, rounds 1-3)",
    )


def test_oscillation_is_a_finding_that_came_back_so_often() -> None:
    """Two constraints that undo each other's fixes never end by themselves."""
    rules = {"oscillation": 2}

    assert stop(rules, [], [], found(returns=1)) is None
    assert stop(rules, [], [], found(returns=2)) == Stop(
        "oscillation", "fixed and back again: f1 (HIGH c, rounds 1-3, back 2 times)"
    )


@pytest.mark.parametrize(
    "status", [FindingStatus.FIXED, FindingStatus.DISMISSED, FindingStatus.IGNORED]
)
def test_a_finding_that_is_not_open_stops_nothing(status: FindingStatus) -> None:
    """A minor finding that comes and goes must not end a run."""
    ended = found("f2", returns=9, status=status)

    assert stop({"oscillation": 1, "thrashing": 1}, [], [["f2"]], found(), ended) is None


def test_thrashing_is_a_finding_pursued_so_many_times_in_a_row() -> None:
    """An author that cannot fix something will not learn it in the tenth round."""
    rules = {"thrashing": 3}

    assert stop(rules, [], [["f1"], ["f1"]]) is None
    assert stop(rules, [], [["f1"], [], ["f1"], ["f1"]]) is None
    assert stop(rules, [], [["f9"], ["f1"], ["f1", "f9"], ["f1"]]) == Stop(
        "thrashing", "sent to be fixed 3 times in a row and still open: f1 (HIGH c, rounds 1-3)"
    )


def test_only_new_findings_round_after_round_end_a_run() -> None:
    """Critics that always find something else would keep a run going forever."""
    fresh = {"HIGH": 2, "new": 1, "caused_by_fix": 1, "fixed": 2}
    rules = {"only_new": 2}

    assert stop(rules, [fresh, fresh]) is None, "in the first round everything is new"
    assert stop(rules, [fresh, fresh, fresh]) == Stop(
        "only_new",
        "only new findings: 2 in round 2, 2 in round 3",
    )


@pytest.mark.parametrize(
    "old",
    [
        {"HIGH": 2, "new": 1, "still_open": 1},
        {"HIGH": 2, "new": 1, "back": 1},
        {"HIGH": 2, "new": 1},
        {},
    ],
)
def test_a_round_with_anything_older_in_it_is_not_only_new(old: dict[str, int]) -> None:
    """A finding that was not reviewed this time is still open, and old."""
    fresh = {"HIGH": 1, "new": 1}

    assert stop({"only_new": 2}, [fresh, fresh, old]) is None
    assert stop({"only_new": 2}, [fresh, old, fresh]) is None


def test_the_rule_that_names_the_culprit_comes_before_the_one_that_only_counts() -> None:
    """Of two true reasons the more useful one is reported."""
    rules = dict.fromkeys(STOP_RULES, 1)

    reason = stop(rules, [{"HIGH": 1}, {"HIGH": 1}], [["f1"]], found(returns=1))

    assert reason is not None
    assert reason.rule == "oscillation"


def test_findings_pursued_again_as_often_as_the_threshold_are_returned() -> None:
    """With the threshold 2, the third adjudication in a row asks a human."""
    assert to_fix_in_a_row([["a"], ["a"]], 2) == []
    assert to_fix_in_a_row([["a", "b"], ["b", "a"], ["a", "c", "b"]], 2) == ["a", "b"]
    assert to_fix_in_a_row([["a"], ["b"], ["a"]], 1) == []
    assert to_fix_in_a_row([["z"], ["a"], ["a"], ["a"]], 2) == ["a"]
    assert to_fix_in_a_row([], 1) == []
