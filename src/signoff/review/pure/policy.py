"""The rules of a review: which verdicts hold, what rules alone decide, and when a run stops.

A judge may dismiss issues and explain. It cannot change who reported an issue or lower its
severity, and it cannot approve while a blocking finding is open, whether it had to decide about
that one or not. Rules about single issues say why one does not count (`ISSUE_RULES`). Stop rules
(`STOP_RULES`) end a run in addition to its round limit, where more rounds will not
help; they look only at recorded data, so a replayed run stops in the same round for the same
reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.core.words import Label
from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Pursuit,
    Verdict,
)
from signoff.review.pure.finding import Finding, is_set_aside
from signoff.review.pure.findings import Ledger
from signoff.review.pure.lasting_decision import LastingDecision, comment_about, decision_about
from signoff.review.pure.review_scope import unchanged_line
from signoff.review.pure.work_order import Edit, format_work_order, without_issues


def check_verdict(
    adjudication: Adjudication,
    critiques: Sequence[Critique],
    block_on: Sequence[Severity] = DEFAULT_BLOCK_ON,
) -> Adjudication:
    """Returns a judge's answer with one decision per finding, and notes on what was changed."""
    cases = _cases(critiques)
    notes: list[str] = []
    assigned = _assign(adjudication.decisions, cases, notes)
    decisions = tuple(_decision(case, assigned.get(case.key, []), notes) for case in cases)
    # What no critic reported is not fixed either, and its literal edits are not applied.
    work_order = without_issues(adjudication.bill_of_work, _unreported(adjudication, cases))
    checked = replace(adjudication, decisions=decisions, bill_of_work=work_order)
    # The judge's word is compared with its own decisions. One of them may be a slip, and only the
    # mistake of fixing too much can be repaired in the next round.
    blocking = checked.pursued(block_on)
    if checked.status is Verdict.APPROVED and blocking:
        issues = ", ".join(f"{d.issue_id} ({d.severity.value})" for d in blocking)
        notes.append(f"it cannot pass while these findings have to be fixed: {issues}")
        checked = replace(checked, status=Verdict.REWRITE, stated=Verdict.APPROVED)
    if checked.status is Verdict.REWRITE and not checked.pursued():
        notes.append("the judge asks for changes but names nothing to fix")
    return replace(checked, notes=(*checked.notes, *notes))


def policy_judge(
    critiques: Sequence[Critique],
    *,
    iteration: int,
    block_on: Sequence[Severity] = DEFAULT_BLOCK_ON,
) -> Adjudication:
    """Returns the verdict of the rules alone: every finding is pursued, and no agent is asked."""
    cases = _cases(critiques)
    decisions = tuple(
        replace(_decision(case, [], []), guidance=case.worst[1].suggested_fix) for case in cases
    )
    rewrite = Adjudication(iteration, Verdict.REWRITE, decisions, bill_of_work=_work_order(cases))
    blocked = rewrite.pursued(block_on)
    return rewrite if blocked else replace(rewrite, status=Verdict.APPROVED)


def conflicting_criticals(adjudication: Adjudication) -> list[AdjudicationDecision]:
    """Returns the critical decisions if there are several and one names a competing constraint."""
    # One critical finding alone contradicts nothing, and several may be fixed together. A human is
    # needed only where fixing one breaks the rule of another.
    critical = adjudication.pursued(Severity.CRITICAL.or_worse)
    conflict = any(decision.competing_constraint for decision in critical)
    return critical if len(critical) > 1 and conflict else []


def for_judge(critiques: Sequence[Critique]) -> list[Critique]:
    """Returns the critiques as a judge sees them, without the issues that are set aside."""
    return [
        replace(critique, issues=tuple(i for i in critique.issues if not is_set_aside(i)))
        for critique in critiques
    ]


@dataclass(frozen=True)
class _Case:
    """One finding that needs a decision, with all its reports."""

    key: str
    name: str
    """Its name in the verdict: the id of its issue, unless two findings share that id."""
    reports: tuple[tuple[Critique, CritiqueIssue], ...]

    @property
    def worst(self) -> tuple[Critique, CritiqueIssue]:
        return min(self.reports, key=lambda report: report[1].severity.rank)

    @property
    def critics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(critique.reviewer for critique, _ in self.reports))

    @property
    def names(self) -> set[str]:
        """All names that a judge may use for it."""
        return {self.key, self.name, *(issue.id for _, issue in self.reports)}


def _cases(critiques: Sequence[Critique]) -> list[_Case]:
    """Returns the findings to decide about; one that several critics report is one case."""
    reports: dict[str, list[tuple[Critique, CritiqueIssue]]] = {}
    for critique in for_judge(critiques):
        for issue in critique.issues:
            key = issue.finding_id or f"{critique.constraint_id}/{critique.reviewer}/{issue.id}"
            reports.setdefault(key, []).append((critique, issue))
    # A judge names findings as its prompt does. The id that stays the same over rounds is used only
    # where two critics have called their issues the same.
    names = {key: case_reports[0][1].id for key, case_reports in reports.items()}
    uses = Counter(names.values())
    return [
        _Case(key, key if uses[names[key]] > 1 else names[key], tuple(case_reports))
        for key, case_reports in reports.items()
    ]


def _unreported(adjudication: Adjudication, cases: Sequence[_Case]) -> set[str]:
    """Returns the issues that the judge decided about although no critic reported them."""
    reported = set[str]().union(*(case.names for case in cases))
    named = {d.issue_id for d in adjudication.decisions if d.finding_id not in reported}
    return named - reported


def _assign(
    decisions: Sequence[AdjudicationDecision], cases: Sequence[_Case], notes: list[str]
) -> dict[str, list[AdjudicationDecision]]:
    """Returns the judge's decisions by finding; those about unknown issues are dropped."""
    by_name: dict[str, list[_Case]] = {}
    for case in cases:
        for name in case.names:
            by_name.setdefault(name, []).append(case)
    assigned: dict[str, list[AdjudicationDecision]] = {}
    for decision in decisions:
        matches = _matching_cases(decision, by_name)
        if not matches:
            notes.append(f"{decision.issue_id}: decided by the judge but never reported; dropped")
        # An ambiguous dismissal must not close a finding that the judge did not look at.
        if len(matches) > 1 and decision.status is Pursuit.DISMISSED:
            names = ", ".join(case.name for case in matches)
            notes.append(f"{decision.issue_id}: could be any of {names}; none is dismissed")
            continue
        for case in matches:
            assigned.setdefault(case.key, []).append(decision)
    return assigned


def _matching_cases(
    decision: AdjudicationDecision, by_name: Mapping[str, Sequence[_Case]]
) -> Sequence[_Case]:
    """Returns the findings a decision may be about.

    A finding id is exact, but several critics may have used the same issue id. Then the
    constraint and the critics that the decision names narrow it down.
    """
    matches = by_name.get(decision.finding_id) or by_name.get(decision.issue_id, ())
    if len(matches) > 1 and decision.constraint:
        matches = [c for c in matches if c.worst[0].constraint_id == decision.constraint] or matches
    if len(matches) > 1 and decision.flagged_by:
        matches = [c for c in matches if set(c.critics) & set(decision.flagged_by)] or matches
    return matches


def _decision(
    case: _Case, decisions: Sequence[AdjudicationDecision], notes: list[str]
) -> AdjudicationDecision:
    """Returns the decision about a finding; in doubt, it is pursued."""
    critique, issue = case.worst
    # A judge that decides twice has not decided. The decision that keeps the finding open counts,
    # because a wrong dismissal is never looked at again.
    pursuing = [decision for decision in decisions if decision.status is Pursuit.PURSUING]
    if pursuing and len(pursuing) < len(decisions):
        notes.append(f"{case.name}: both to fix and dismissed by the judge; it has to be fixed")
    chosen = (*pursuing, *decisions, AdjudicationDecision(case.name))[0]
    return replace(
        chosen,
        issue_id=case.name,
        constraint=critique.constraint_id,
        severity=issue.severity,
        flagged_by=case.critics,
        finding_id=issue.finding_id,
    )


def _work_order(cases: Sequence[_Case]) -> str:
    edits: list[Edit] = []
    notes: list[tuple[str, str, str]] = []
    for case in sorted(cases, key=lambda case: case.worst[1].severity.rank):
        case_edits = dict.fromkeys(issue.edit for _, issue in case.reports if issue.edit)
        if case_edits:
            edits.extend(replace(edit, issue=case.name) for edit in case_edits)
            continue
        _, issue = case.worst
        instruction = issue.suggested_fix or f"Fix this problem: {issue.finding}"
        notes.append((case.name, issue.severity.value, instruction))
    severities = {case.name: case.worst[1].severity.value for case in cases}
    details = {case.name: _details(case.worst[1]) for case in cases}
    return format_work_order(edits, notes, severities, details) if cases else ""


def _details(issue: CritiqueIssue) -> dict[str, str]:
    """Returns what an agent has to know about an issue besides what to do about it."""
    finding = issue.finding if issue.edit or issue.suggested_fix else ""
    fix = issue.suggested_fix if issue.edit else ""
    return {
        "problem": finding,
        "impact": issue.impact,
        "fix": fix or "",
        "quote": issue.evidence,
        "rule": issue.rule_id,
        "location": issue.location,
    }


def check_approval(
    approval: Adjudication, ledger: Ledger, block_on: Sequence[Severity]
) -> Adjudication:
    """Returns an approval that holds, or a rewrite that pursues the open findings that block it."""
    # The judge saw the findings in its scope. Earlier rounds and other critics may have left more,
    # and an approval is about the text and not about the scope.
    still_open = [each for each in ledger.open(block_on) if each.severity in block_on]
    if not still_open:
        return approval
    names = ", ".join(f"{each.id} ({each.severity.value})" for each in still_open)
    note = f"it cannot pass while these findings are open: {names}"
    decided = {decision.finding_id for decision in approval.decisions}
    pursued = tuple(pursue(each) for each in still_open if each.id not in decided)
    return replace(
        approval,
        status=Verdict.REWRITE,
        stated=Verdict.APPROVED,
        decisions=(*approval.decisions, *pursued),
        notes=(*approval.notes, note),
    )


def pursue(finding: Finding) -> AdjudicationDecision:
    """Returns the decision that a finding has to be fixed, whoever reported it."""
    return AdjudicationDecision(
        finding.id,
        constraint=finding.constraint,
        severity=finding.severity,
        flagged_by=finding.flagged_by,
        finding_id=finding.id,
    )


@dataclass(frozen=True)
class IssueContext:
    """What rules about single issues look at."""

    content: ArtifactVersion
    base: Mapping[str, str] = field(default_factory=dict)
    """In a review of changes, the texts before them."""
    trusted: Mapping[str, str] | None = None
    """The texts whose comments may dismiss findings; None if those of the files may."""
    decisions: Sequence[LastingDecision] = ()
    """Decisions about everything that a rule reports."""


def _ignored(issue: CritiqueIssue, constraint: str, about: IssueContext) -> str:
    return comment_about(issue, constraint, about.content, about.trusted)


def _decided(issue: CritiqueIssue, constraint: str, about: IssueContext) -> str:
    return decision_about(issue, constraint, about.decisions)


def _unchanged(issue: CritiqueIssue, _constraint: str, about: IssueContext) -> str:
    return unchanged_line(issue, about.content, about.base)


@dataclass(frozen=True)
class IssueRule:
    """A reason for which an issue does not count although a critic reports it."""

    sets: Literal["dismissed", "set_aside"]
    """The field of the issue that gets the reason."""
    reason: Callable[[CritiqueIssue, str, IssueContext], str]
    """Returns the reason for an issue of a constraint, or an empty text."""
    by_line: bool = True
    """Whether it depends on the line of the issue."""


ISSUE_RULES = (
    IssueRule("dismissed", _ignored),
    IssueRule("dismissed", _decided, by_line=False),
    IssueRule("set_aside", _unchanged),
)
"""What is asked about each issue, in this order; the first reason for a field stays."""


def apply_issue_rules(critique: Critique, about: IssueContext) -> Critique:
    """Returns a critique in which the issues say why they do not count."""

    def ruled(issue: CritiqueIssue) -> CritiqueIssue:
        for rule in ISSUE_RULES:
            if not getattr(issue, rule.sets):
                why: dict[str, Any] = {rule.sets: rule.reason(issue, critique.constraint_id, about)}
                issue = replace(issue, **why)
        return issue

    return replace(critique, issues=tuple(map(ruled, critique.issues)))


def is_excused(constraint: str, issue: CritiqueIssue, about: IssueContext) -> bool:
    """Whether an issue would not count on its line."""
    return any(rule.by_line and rule.reason(issue, constraint, about) for rule in ISSUE_RULES)


MOST_LISTED = 5
"""Findings that an explanation lists; the rest are only counted."""


@dataclass(frozen=True)
class Stop:
    """A reason to stop a run."""

    rule: str
    evidence: str


@dataclass(frozen=True)
class LoopProgress:
    """What stop rules look at: all rounds so far."""

    rounds: Sequence[Mapping[str, Any]]
    """The open findings of each round in numbers."""
    ledger: Ledger
    to_fix: Sequence[Sequence[str]]
    """The findings that had to be fixed in each round."""
    unchanged: bool = False
    """Whether the text is as it was when the judge last asked for changes."""


def find_stop_reason(progress: LoopProgress, numbers: Mapping[str, int]) -> Stop | None:
    """Returns why a run does not converge, or None; `numbers` are those of the rules that are on.

    The first rule of `STOP_RULES` with a reason wins.
    """
    if numbers and progress.unchanged:
        number = progress.rounds[-1]["round"]
        return Stop("unchanged", f"the text is the same as before round {number}")
    if not progress.ledger.open():
        return None
    for name, number in numbers.items():
        if evidence := STOP_RULES[name](progress, number):
            return Stop(name, evidence)
    return None


def to_fix_in_a_row(to_fix_by_round: Sequence[Sequence[str]], threshold: int) -> list[str]:
    """Returns the findings that were pursued in each of the last `threshold + 1` rounds."""
    # The first request for a fix is no repetition, so one round more than the threshold is needed.
    window = to_fix_by_round[-(threshold + 1) :]
    if len(window) < threshold + 1:
        return []
    always = set(window[0]).intersection(*window)
    return [finding_id for finding_id in dict.fromkeys(window[-1]) if finding_id in always]


def weight(summary: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns a sort key for rounds, best first: the open findings, most severe first."""
    return tuple(int(summary["open"].get(severity.value, 0)) for severity in Severity)


def _oscillation(progress: LoopProgress, returns: int) -> str:
    returned = [finding for finding in progress.ledger.open() if finding.returns >= returns]
    return f"fixed and back again: {_list_findings(returned)}" if returned else ""


def _thrashing(progress: LoopProgress, rounds: int) -> str:
    ids = set(to_fix_in_a_row(progress.to_fix, rounds - 1))
    stuck = [finding for finding in progress.ledger.open() if finding.id in ids]
    how = f"sent to be fixed {rounds} times in a row and still open"
    return f"{how}: {_list_findings(stuck)}" if stuck else ""


def _only_new(progress: LoopProgress, length: int) -> str:
    """Every fix was followed by new findings only, for `length` rounds in a row."""
    # In the first round every finding is new, so it does not count.
    latest = progress.rounds[1:][-length:]
    if len(latest) < length or not all(map(_all_new, latest)):
        return ""
    counts = ", ".join(f"{sum(weight(each))} in round {each['round']}" for each in latest)
    return f"only new findings: {counts}"


def _all_new(summary: Mapping[str, Any]) -> bool:
    return 0 < sum(weight(summary)) == int(summary[Label.NEW] + summary[Label.CAUSED_BY_FIX])


def _plateau(progress: LoopProgress, length: int) -> str:
    rounds = progress.rounds
    if len(rounds) <= length:
        return ""
    best = min(rounds[:-length], key=weight)
    latest = rounds[-length:]
    if any(weight(each) < weight(best) for each in latest):
        return ""
    counts = ", ".join(f"round {s['round']}: {_format_counts(s)}" for s in (best, *latest))
    return f"no better than before ({counts}); open: {_list_findings(progress.ledger.open())}"


StopRule = Callable[[LoopProgress, int], str]
"""Returns the evidence that a run does not converge, or an empty text; the number is its own."""
STOP_RULES: Mapping[str, StopRule] = {
    "oscillation": _oscillation,
    "thrashing": _thrashing,
    "only_new": _only_new,
    "plateau": _plateau,
}
"""Each stop rule by its key in `convergence:`; those that name a finding come first."""


def _format_counts(summary: Mapping[str, Any]) -> str:
    counts = [f"{n} {s.value}" for s, n in zip(Severity, weight(summary), strict=True) if n]
    return " ".join(counts) or "none"


def _list_findings(findings: Sequence[Finding]) -> str:
    descriptions = [_describe(finding) for finding in findings[:MOST_LISTED]]
    rest = len(findings) - len(descriptions)
    return ", ".join([*descriptions, f"and {rest} more"] if rest else descriptions)


def _describe(finding: Finding) -> str:
    first, last, returns = finding.first, finding.last, finding.returns
    rounds = f"round {first}" if first == last else f"rounds {first}-{last}"
    back = f", back {returns} times" if returns > 1 else ", back once"
    tail = back if returns else ""
    return f"{finding.id} ({finding.severity.value} {finding.constraint}, {rounds}{tail})"
