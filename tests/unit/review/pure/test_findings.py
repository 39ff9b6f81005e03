import time
from dataclasses import replace
from typing import Any

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.pure.critique import (
    OMISSION,
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
)
from signoff.review.pure.finding import Finding, is_set_aside
from signoff.review.pure.findings import Ledger, summarize_round

LIMIT = "We accept any number of users."
PRICE = "It costs very little money."
TEXT = f"# Offer\n\n{LIMIT}\n\n{PRICE}\n"


def issue(quote: str = LIMIT, **fields: Any) -> CritiqueIssue:
    base = CritiqueIssue("c-001", "vague", Severity.HIGH, "Offer", "not exact", quote)
    return replace(base, **fields)


def read(*issues: CritiqueIssue, by: str = "claude", of: str = "c", round_: int = 1) -> Critique:
    overall = Overall.FAIL if issues else Overall.PASS
    return Critique(of, by, round_, overall, issues)


def take(
    ledger: Ledger, iteration: int, *critiques: Critique, text: str = TEXT, before: str = ""
) -> tuple[Ledger, list[CritiqueIssue]]:
    recorded, labeled = ledger.record(
        iteration=iteration, critiques=critiques, artifact=text, previous_artifact=before
    )
    return recorded, [each for critique in labeled for each in critique.issues]


def only(ledger: Ledger) -> Finding:
    (finding,) = ledger.findings.values()
    return finding


def test_a_finding_keeps_its_id_from_round_to_round() -> None:
    """Without one id, a run could not tell that it asks for the same thing again and again."""
    ledger, first = take(Ledger(), 1, read(issue()))

    ledger, second = take(ledger, 2, read(issue()))

    assert first[0].finding_id == second[0].finding_id
    assert len(first[0].finding_id) == 12
    assert [first[0].label, second[0].label] == ["new", "still_open"]
    assert (only(ledger).first, only(ledger).last) == (1, 2)


def test_markup_case_spacing_and_quotation_marks_do_not_make_another_finding() -> None:
    """Critics quote the same words with different markup."""
    ledger, first = take(Ledger(), 1, read(issue("We say 'any  number'\nof users - always")))

    _, second = take(
        ledger, 2, read(issue("we say **\u2018any number\u2019** of users \u2013 always"))
    )

    assert first[0].finding_id == second[0].finding_id


@pytest.mark.parametrize(
    ("fields", "of"),
    [
        ({"evidence": PRICE}, "c"),
        ({"rule_id": "other"}, "c"),
        ({}, "another"),
        ({"evidence": "OMISSION"}, "c"),
    ],
)
def test_another_passage_rule_or_constraint_is_another_finding(
    fields: dict[str, Any], of: str
) -> None:
    """Otherwise several findings would count as fixed when one of them is."""
    ledger, first = take(Ledger(), 1, read(issue()))

    _, second = take(ledger, 2, read(issue(**fields), of=of))

    assert first[0].finding_id != second[0].finding_id


def test_a_finding_whose_quote_was_reworded_a_little_is_the_same() -> None:
    """An author that changes one word has not fixed anything, and it must not look like a fix."""
    reworded = "We accept any numbers of users."
    ledger, first = take(Ledger(), 1, read(issue()))

    ledger, second = take(
        ledger, 2, read(issue(reworded)), text=TEXT.replace(LIMIT, reworded), before=TEXT
    )

    assert second[0].finding_id == first[0].finding_id
    assert second[0].label == "still_open"
    assert only(ledger).quote == reworded


def test_a_similar_passage_next_to_the_first_one_is_another_finding() -> None:
    """Items 1 and 2 are 95 percent similar and still two things to fix."""
    text = "Item 1 is of no use to anybody.\nItem 2 is of no use to anybody.\n"
    ledger, first = take(Ledger(), 1, read(issue("Item 1 is of no use to anybody.")), text=text)

    ledger, second = take(ledger, 2, read(issue("Item 2 is of no use to anybody.")), text=text)

    assert second[0].finding_id != first[0].finding_id
    kept = ledger.findings[first[0].finding_id]
    assert (kept.label, kept.not_reported_again) == (Label.STILL_OPEN, True)


def test_of_two_equally_similar_findings_none_is_taken_for_the_reworded_one() -> None:
    """A guess would give one finding the history of another."""
    one, two, now = "the cat sat on a mat 1", "the cat sat on a mat 2", "the cat sat on a mat 3"
    ledger, _ = take(Ledger(), 1, read(issue(one), issue(two)), text=f"{one}\n{two}")

    _, labeled = take(ledger, 2, read(issue(now)), text=now)

    assert labeled[0].finding_id not in ledger.findings


def test_the_closest_of_two_reworded_issues_takes_the_existing_finding() -> None:
    """Two issues of one critique are two findings, whatever they look like."""
    near, far = "We accept any numbers of users.", "We accept any number of usersss now."
    ledger, first = take(Ledger(), 1, read(issue()))

    _, labeled = take(ledger, 2, read(issue(far), issue(near)), text=f"{near}\n{far}")

    assert labeled[1].finding_id == first[0].finding_id
    assert labeled[0].finding_id != first[0].finding_id


def test_critics_who_report_the_same_share_one_finding() -> None:
    """A judge must not count one fault twice because two critics reported it."""
    ledger, labeled = take(
        Ledger(),
        1,
        read(issue(severity=Severity.MEDIUM), by="codex"),
        read(issue(finding="too vague"), by="gemini"),
    )

    assert labeled[0].finding_id == labeled[1].finding_id
    assert only(ledger).flagged_by == ("codex", "gemini")
    assert only(ledger).severity is Severity.HIGH


def test_two_issues_of_one_critic_about_one_passage_stay_two() -> None:
    """Fixing one of them must not make the other look fixed."""
    grammar, fact = issue(finding="a comma is missing"), issue(finding="there is a limit of ten")
    ledger, first = take(Ledger(), 1, read(grammar, fact))
    ledger = ledger.mark_edited([first[0].finding_id])

    ledger, second = take(ledger, 2, read(fact), text=f"{TEXT}Really.")

    assert first[0].finding_id != first[1].finding_id
    assert second[0].finding_id == first[1].finding_id
    assert ledger.findings[first[0].finding_id].status is FindingStatus.FIXED


def test_an_omission_is_identified_by_its_location_or_else_by_its_text() -> None:
    """Nothing can be quoted where something is missing."""
    missing = issue("OMISSION", location="Section 2", finding="the price in euros is missing")
    ledger, first = take(Ledger(), 1, read(missing))

    _, moved = take(ledger, 2, read(replace(missing, location="Section 3")))
    _, reworded = take(ledger, 2, read(replace(missing, finding="no price")))
    _, other = take(ledger, 2, read(replace(missing, location="End", finding="no address")))

    assert moved[0].finding_id == first[0].finding_id
    assert reworded[0].finding_id == first[0].finding_id
    assert other[0].finding_id != first[0].finding_id


def test_a_finding_no_longer_reported_is_fixed_and_one_that_returns_is_back() -> None:
    """Reports show these labels, and the oscillation rule counts them."""
    ledger, _ = take(Ledger(), 1, read(issue()))

    ledger, _ = take(ledger, 2, read(), text="fixed")
    assert only(ledger).status is FindingStatus.FIXED
    ledger, labeled = take(ledger, 3, read(issue()))

    assert labeled[0].label == "back"
    assert only(ledger).status is FindingStatus.OPEN
    assert only(ledger).returns == 1
    assert only(ledger).history == ((1, "new"), (2, "fixed"), (3, "back"))


def test_a_fixed_finding_is_fixed_once() -> None:
    """A history that grows with every round would make long runs expensive."""
    ledger, _ = take(Ledger(), 1, read(issue()))

    for iteration in (2, 3, 4):
        ledger, _ = take(ledger, iteration, read(), text="fixed")

    assert only(ledger).history == ((1, "new"), (2, "fixed"))


def test_a_new_finding_about_words_that_the_last_change_added_is_caused_by_a_fix() -> None:
    """Readers of a report want to know which faults the fixes caused."""
    ledger, _ = take(Ledger(), 1, read())

    _, labeled = take(
        ledger,
        2,
        read(
            issue("Brand new words."),
            issue(PRICE),
            issue("words of no version"),
            issue("OMISSION"),
        ),
        text=f"{TEXT}Brand new words.",
        before=TEXT,
    )

    assert [each.label for each in labeled] == ["caused_by_fix", "new", "new", "new"]


def test_findings_of_constraints_that_were_not_reviewed_stay_as_they_are() -> None:
    """A flow with two review steps must not call the other step's findings fixed."""
    ledger, _ = take(Ledger(), 1, read(issue()))

    after, _ = take(ledger, 2, read(of="style"), text="changed")

    assert only(after) == only(ledger)


def test_a_failed_critique_fixes_nothing() -> None:
    """A critic without a usable answer has not approved anything."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    broken = replace(read(), overall=Overall.ERROR)
    colleague = replace(read(), reviewer="codex")

    alone, _ = take(ledger, 2, broken, text="changed")
    beside_another, _ = take(ledger, 2, broken, colleague, text="changed")

    assert only(alone).status is FindingStatus.OPEN
    assert only(beside_another).status is FindingStatus.OPEN


def test_a_second_review_of_the_same_text_in_a_round_only_adds_findings() -> None:
    """Two review steps with different critics in one round add to each other."""
    ledger, _ = take(Ledger(), 1, read(issue(severity=Severity.LOW), by="claude"))

    silent, _ = take(ledger, 1, read(by="codex"))
    agreeing, labeled = take(ledger, 1, read(issue(severity=Severity.CRITICAL), by="codex"))

    assert only(silent).status is FindingStatus.OPEN
    assert labeled[0].label == "new"
    assert only(agreeing).flagged_by == ("claude", "codex")
    assert only(agreeing).severity is Severity.CRITICAL
    assert only(agreeing).history == ((1, "new"),)


def test_a_finding_that_only_the_second_critic_still_reports_was_never_fixed() -> None:
    """Two critics that disagree must not look like a fault that comes and goes."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    changed = f"{TEXT} More."
    ledger, _ = take(ledger, 2, read(by="claude"), text=changed)

    ledger, labeled = take(ledger, 2, read(issue(), by="codex"), text=changed)

    assert labeled[0].label == "still_open"
    assert only(ledger).returns == 0
    assert only(ledger).history == ((1, "new"), (2, "still_open"))


def test_a_report_about_an_older_text_of_the_round_does_not_count_for_the_newer_one() -> None:
    """Draft, review, fix, then two review steps: the second of them may find it fixed."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    ledger, _ = take(ledger, 1, read(of="style"), text="fixed")

    ledger, _ = take(ledger, 1, read(), text="fixed")

    assert only(ledger).status is FindingStatus.FIXED


def test_an_ignored_report_does_not_reopen_an_ignored_finding() -> None:
    """A second critic's ignored remark changes nothing."""
    aside = issue(behavior="ignore")
    ledger, _ = take(Ledger(), 1, read(aside, by="claude"))

    ledger, _ = take(ledger, 1, read(aside, by="codex"))

    assert only(ledger).status is FindingStatus.IGNORED


def test_a_quote_that_was_reworded_several_times_and_restored_is_the_same_finding() -> None:
    """An author that undoes its changes has not caused another fault."""
    quotes = [
        LIMIT,
        "We accept every number of user.",
        "We excepted every numbers of user!",
        LIMIT,
    ]
    ledger, ids = Ledger(), []

    for iteration, quote in enumerate(quotes, 1):
        ledger, labeled = take(ledger, iteration, read(issue(quote)), text=quote)
        ids.append(labeled[0].finding_id)

    assert len(set(ids)) == 1


def test_a_very_different_passage_does_not_count_as_reworded() -> None:
    """An author that replaces a sentence has fixed it, even if the new one is bad too."""
    other = "We accept ten users, and no more than that."
    ledger, first = take(Ledger(), 1, read(issue()))

    ledger, second = take(ledger, 2, read(issue(other)), text=other, before=TEXT)

    assert second[0].label == "caused_by_fix"
    assert ledger.findings[first[0].finding_id].status is FindingStatus.FIXED


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"behavior": "ignore"}, FindingStatus.IGNORED),
        ({"behavior": "halt"}, FindingStatus.OPEN),
        ({"unverified": True, "severity": Severity.MEDIUM}, FindingStatus.IGNORED),
        ({"unverified": True, "severity": Severity.LOW}, FindingStatus.IGNORED),
        ({"unverified": True, "severity": Severity.HIGH}, FindingStatus.OPEN),
        ({"unverified": True, "severity": Severity.CRITICAL}, FindingStatus.OPEN),
    ],
)
def test_a_finding_that_the_judge_never_sees_is_kept_but_not_open(
    fields: dict[str, Any], status: FindingStatus
) -> None:
    """An artifact with nothing but ignored findings can be approved."""
    ledger, _ = take(Ledger(), 1, read(issue(**fields)))

    assert only(ledger).status is status
    assert sum(summarize_round(ledger, 1)["open"].values()) == (status is FindingStatus.OPEN)


def test_a_finding_is_open_if_one_of_its_reports_is_not_set_aside() -> None:
    """Of two severities the worse one counts."""
    ledger, _ = take(
        Ledger(),
        1,
        read(issue(behavior="ignore", severity=Severity.LOW), by="a"),
        read(issue(behavior="halt"), by="b"),
    )

    assert only(ledger).status is FindingStatus.OPEN


def decided(finding: Finding, status: Pursuit, iteration: int) -> Adjudication:
    decision = AdjudicationDecision("c-001", status=status, finding_id=finding.id)
    stray = AdjudicationDecision("x", status=status, finding_id="unknown")
    return Adjudication(iteration, Verdict.REWRITE, (decision, stray))


def test_a_dismissal_does_not_take_the_passage_of_an_open_finding() -> None:
    """The open one has moved to the line of the dismissed one, which is gone: it still blocks."""
    before = f"{LIMIT}\none\n{LIMIT}\ntwo\n"
    after = f"intro\nmore\n{LIMIT}\nother\n"
    issues = [issue(location=f"line {line}", id=f"c-{line}") for line in (1, 3)]
    ledger, (still, dismissed) = take(Ledger(), 1, read(*issues), text=before)
    choice = AdjudicationDecision("c-3", status=Pursuit.DISMISSED, finding_id=dismissed.finding_id)
    ledger = ledger.apply(Adjudication(1, Verdict.REWRITE, (choice,)))

    found = read(issue(location="line 3"), round_=2)
    ledger, _ = take(ledger, 2, found, text=after, before=before)

    assert [each.id for each in ledger.open()] == [still.finding_id]


def test_a_dismissed_finding_stays_dismissed_while_its_passage_is_unchanged() -> None:
    """A critic repeats itself; the judge has already answered."""
    ledger, _ = take(Ledger(), 1, read(issue()))

    dismissed = ledger.apply(decided(only(ledger), Pursuit.DISMISSED, 1))
    again, labeled = take(dismissed, 2, read(issue()))
    gone, _ = take(dismissed, 2, read(), text="changed")

    assert only(dismissed).status is FindingStatus.DISMISSED
    assert summarize_round(dismissed, 1)["open"]["HIGH"] == 0
    assert only(again).status is FindingStatus.DISMISSED
    assert summarize_round(again, 2)["open"]["HIGH"] == 0
    assert is_set_aside(labeled[0])
    assert only(gone).status is FindingStatus.DISMISSED


def test_a_dismissed_finding_comes_back_if_it_is_now_more_severe() -> None:
    """The judge dismissed something minor, not this."""
    ledger, _ = take(Ledger(), 1, read(issue(severity=Severity.MEDIUM)))
    dismissed = ledger.apply(decided(only(ledger), Pursuit.DISMISSED, 1))

    again, labeled = take(dismissed, 2, read(issue(severity=Severity.CRITICAL)))

    assert only(again).status is FindingStatus.OPEN
    assert not is_set_aside(labeled[0])


def test_a_dismissed_omission_comes_back_when_the_artifact_changes() -> None:
    """The passage of something missing is the whole artifact."""
    missing = issue(OMISSION)
    ledger, _ = take(Ledger(), 1, read(missing))
    dismissed = ledger.apply(decided(only(ledger), Pursuit.DISMISSED, 1))

    same, _ = take(dismissed, 2, read(missing))
    other, _ = take(dismissed, 2, read(missing), text=f"{TEXT} And more.")

    assert only(same).status is FindingStatus.DISMISSED
    assert only(other).status is FindingStatus.OPEN


def test_a_humans_decision_holds_until_the_passage_changes() -> None:
    """Nobody is asked twice about the same words."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    settled = ledger.decide([only(ledger).id, "unknown"], "keep it")

    same, _ = take(settled, 2, read(issue()))
    missing, _ = take(Ledger(), 1, read(issue(OMISSION)))
    changed, _ = take(
        missing.decide([only(missing).id], "leave it out"), 2, read(issue(OMISSION)), text="new"
    )

    assert only(same).decision == "keep it"
    assert only(changed).decision == ""


def test_a_judge_may_pursue_a_finding_that_an_earlier_one_dismissed() -> None:
    """With the scope `all`, a second judge of a round sees the same critiques."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    dismissed = ledger.apply(decided(only(ledger), Pursuit.DISMISSED, 1))

    pursued = dismissed.apply(decided(only(ledger), Pursuit.PURSUING, 1))

    assert only(pursued).status is FindingStatus.OPEN
    assert summarize_round(pursued, 1)["open"]["HIGH"] == 1


def test_rounds_count_the_open_findings_at_their_end_and_the_changes() -> None:
    """The plot and the stop rules depend on these numbers."""
    high, low = issue(), issue(PRICE, severity=Severity.LOW)
    ledger, _ = take(Ledger(), 1, read(high, low))
    ledger, _ = take(ledger, 2, read(low, issue("Fresh.")), text=f"{PRICE} Fresh.", before=TEXT)
    ledger, _ = take(ledger, 3, read(high, low))

    counted = [summarize_round(ledger, number) for number in (1, 2, 3)]
    columns = ("round", "new", "still_open", "back", "caused_by_fix", "fixed")
    assert [tuple(each[name] for name in columns) for each in counted] == [
        (1, 2, 0, 0, 0, 0),
        (2, 0, 1, 0, 1, 1),
        (3, 0, 1, 1, 0, 1),
    ]
    assert {tuple(each["open"].items()) for each in counted} == {
        (("CRITICAL", 0), ("HIGH", 1), ("MEDIUM", 0), ("LOW", 1))
    }


def test_a_finding_that_was_never_open_is_not_counted_as_fixed() -> None:
    """A round that fixed one finding and no longer reports an ignored one fixed one."""
    ignored = issue(PRICE, id="c-002", severity=Severity.LOW, behavior="ignore")
    ledger, _ = take(Ledger(), 1, read(issue(), ignored))

    ledger, _ = take(ledger, 2, read(round_=2), text="# Offer\n", before=TEXT)

    counted = [summarize_round(ledger, number) for number in (1, 2)]
    assert [(each["new"], each["fixed"]) for each in counted] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("rule", "claim", "status"),
    [
        ("", "not an exact number", FindingStatus.DISMISSED),
        ("", "it leaks a password", FindingStatus.OPEN),
        ("vague", "it leaks a password", FindingStatus.DISMISSED),
    ],
)
def test_a_dismissal_without_a_rule_holds_for_the_same_claim_only(
    rule: str, claim: str, status: FindingStatus
) -> None:
    """A critic that names no rule may report anything about the same passage."""
    ledger, _ = take(Ledger(), 1, read(issue(rule_id=rule)))
    dismissal = AdjudicationDecision("c-001", status=Pursuit.DISMISSED, finding_id=only(ledger).id)
    ledger = ledger.apply(Adjudication(1, Verdict.REWRITE, (dismissal,)))

    ledger, _ = take(ledger, 2, read(issue(rule_id=rule, finding=claim)))

    assert only(ledger).status is status


@pytest.mark.parametrize(
    ("severity", "status"),
    [(Severity.HIGH, FindingStatus.DISMISSED), (Severity.CRITICAL, FindingStatus.OPEN)],
)
def test_a_dismissal_by_wording_names_the_finding_and_covers_no_higher_severity(
    severity: Severity, status: FindingStatus
) -> None:
    """Without a shared rule the reader has to see which finding it was taken for."""
    ledger, _ = take(Ledger(), 1, read(issue(rule_id="")))
    dismissal = AdjudicationDecision("c-001", status=Pursuit.DISMISSED, finding_id=only(ledger).id)
    ledger = ledger.apply(Adjudication(1, Verdict.REWRITE, (dismissal,)))

    again = issue(rule_id="", finding="not an exact number", severity=severity)
    ledger, (reported,) = take(ledger, 2, read(again))

    assert only(ledger).status is status
    shown = f"dismissed as the same as {only(ledger).id}: no reason given"
    assert reported.set_aside == (shown if status is FindingStatus.DISMISSED else "")


def test_a_thousand_findings_of_one_rule_are_recorded_quickly() -> None:
    """Fifty such rounds must not cost more than a model call; here a third is reworded."""
    quotes = [f"number {n} of the many {n * 7919} lines in question {n * n}" for n in range(1000)]
    ledger, _ = take(Ledger(), 1, read(*map(issue, quotes)), text="\n".join(quotes))
    changed = [q.replace("lines", "line") if n % 3 else q for n, q in enumerate(quotes)]

    started = time.thread_time()
    after, labeled = take(ledger, 2, read(*map(issue, changed)), text="\n".join(changed))
    recorded = time.thread_time() - started

    assert len(after.findings) == 1000
    assert {each.label for each in labeled} == {"still_open"}
    assert recorded < 5


def test_a_finding_that_was_not_confirmed_is_never_fixed() -> None:
    """It was never there, and later rounds should know why it was set aside."""
    refuted = issue(set_aside="not confirmed by bob: it is exact")
    ledger, _ = take(Ledger(), 1, read(refuted))

    gone, _ = take(ledger, 2, read(), text="changed")

    assert only(ledger).reason == "not confirmed by bob: it is exact"
    assert only(gone).status is FindingStatus.IGNORED


def test_a_finding_that_nobody_touched_is_not_fixed_by_silence() -> None:
    """An approval must not rest on a critic that overlooked a problem the second time."""
    ledger, _ = take(Ledger(), 1, read(issue(), issue(PRICE)))

    ledger, _ = take(ledger, 2, read(), text=f"# Offer\n\n{LIMIT}\n", before=TEXT)

    kept, gone = ledger.findings.values()
    assert (kept.status, kept.label) == (FindingStatus.OPEN, Label.STILL_OPEN)
    assert kept.not_reported_again
    assert kept.history == ((1, "new"), (2, "still_open"))
    assert gone.status is FindingStatus.FIXED
    assert ledger.open() == [kept]


def test_something_missing_stays_open_until_the_artifact_changes() -> None:
    """Its passage is the whole artifact."""
    missing = issue(OMISSION)
    ledger, _ = take(Ledger(), 1, read(missing))

    same, _ = take(ledger, 2, read())
    changed, _ = take(ledger, 2, read(), text=f"{TEXT}More.", before=TEXT)

    assert (only(same).label, only(same).not_reported_again) == (Label.STILL_OPEN, True)
    assert only(changed).status is FindingStatus.FIXED


def test_a_finding_that_is_reported_every_other_round_never_returns() -> None:
    """It was there all the time, so the loop does not oscillate."""
    ledger = Ledger()
    for iteration in range(1, 6):
        found = [issue()] if iteration % 2 else []
        ledger, _ = take(ledger, iteration, read(*found))

    assert only(ledger).returns == 0
    assert [label for _, label in only(ledger).history] == ["new", *["still_open"] * 4]


@pytest.mark.parametrize("fields", [{"unverified": True}, {"confidence": 0.1}])
def test_a_misquote_or_a_doubt_does_not_close_a_finding(fields: dict[str, Any]) -> None:
    """What is set aside would not be shown to the judge, and the finding would be gone."""
    medium = issue(severity=Severity.MEDIUM)
    ledger, _ = take(Ledger(), 1, read(medium))

    ledger, reported = take(ledger, 2, read(replace(medium, **fields)))

    assert (only(ledger).status, only(ledger).label) == (FindingStatus.OPEN, Label.STILL_OPEN)
    assert only(ledger).not_reported_again
    assert not only(ledger).unverified
    assert reported[0].label == "ignored"


def test_silence_about_what_a_human_decided_settles_it() -> None:
    """Critics are told to report it only if the decision is not followed."""
    ledger, _ = take(Ledger(), 1, read(issue()))
    ledger = ledger.decide([only(ledger).id], "leave it")

    ledger, _ = take(ledger, 2, read())

    assert only(ledger).status is FindingStatus.DISMISSED
    assert only(ledger).reason == "a human decided about it"


def test_the_silence_of_a_program_or_a_human_shows_that_a_finding_is_fixed() -> None:
    """A check counts words, and a cut anywhere in the text can be the fix."""
    ledger, _ = take(Ledger(), 1, read(issue(), by="wordcount"))

    ledger, _ = ledger.record(
        iteration=2, critiques=[read(by="wordcount")], artifact=TEXT, certain={("c", "wordcount")}
    )

    assert only(ledger).status is FindingStatus.FIXED


def test_an_ignored_finding_that_is_not_reported_again_stays_ignored() -> None:
    """It was never sent to a fixer, so it cannot have been fixed."""
    ledger, _ = take(Ledger(), 1, read(issue(behavior="ignore")))

    ledger, _ = take(ledger, 2, read(), text="All is new.", before=TEXT)

    assert only(ledger).status is FindingStatus.IGNORED
    assert only(ledger).history == ((1, "ignored"),)
