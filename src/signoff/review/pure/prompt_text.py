"""Material as it appears in prompts: enclosed, on one line, or as a list.

Everything that a model or a user wrote is either enclosed in delimiters or put on one line, so
that no text can imitate another part of the prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from signoff.core.digest import SHORT, text_digest
from signoff.core.one_line import one_line
from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.constraint import SEPARATOR, Constraint, Rule
from signoff.review.pure.critique import Adjudication, Critique, CritiqueIssue, Verdict
from signoff.review.pure.finding import LISTED, Finding, blocking_first, describe_equal, group_equal
from signoff.review.pure.findings import Ledger
from signoff.review.pure.work_order import Edit, EditKind, is_detail

SUMMARY_FOR_JUDGES = 200
"""Characters of the summary of a constraint without issues; the others are shown in full."""


LONGEST_GOAL = 20_000
"""Characters of the goal that reviewers and fixers get; the author gets all of it."""


@dataclass(frozen=True)
class ConstraintMaterial:
    """A constraint with what a critic gets to review by it."""

    constraint: Constraint
    sources: str = ""
    analysis: str = ""
    """The output of the constraint's script."""


class Guidance(NamedTuple):
    """What a human was asked, and decided."""

    question: str
    answer: str

    @property
    def text(self) -> str:
        """Both as one text, which identifies recorded requests."""
        return f"{self.question}\n{self.answer}"


def enclose(name: str, text: str) -> str:
    """Returns a text between delimiters that contain its digest; "" for an empty text."""
    if not text.strip():
        return ""
    mark = f"{name} {text_digest(text)[:SHORT]}"
    return f"<<<{mark}\n{text}\n{mark}>>>"


def within_budget(goal: str) -> str:
    """Returns a goal for reviewers and fixers; a long one says how much is missing."""
    omitted = len(goal) - LONGEST_GOAL
    return f"{goal[:LONGEST_GOAL]}\n[{omitted:,} characters omitted]" if omitted > 0 else goal


def bullets(texts: Sequence[str]) -> str:
    """Returns texts as a list, each on one line; empty ones are left out."""
    return "\n".join(f"- {flat(text)}" for text in texts if text.strip())


def format_guidance(guidance: Sequence[Guidance]) -> str:
    """Returns decisions of humans as a list.

    A question may quote the artifact, so the decision has a line of its own.
    """
    return "\n".join(f"- Question: {flat(q)}\n  Decision: {flat(a)}" for q, a in guidance)


def format_rule(rule: Rule, prefix: str = "") -> str:
    """Returns a rule with its examples."""
    lines = [f"- {prefix}{rule.id} ({rule.default_severity}): {rule.text.strip()}"]
    lines += [f"  violation: {flat(rule.violation)}"] if rule.violation else []
    lines += [f"  compliant: {flat(rule.compliant)}"] if rule.compliant else []
    return "\n".join(lines)


def sentences(work_order: str) -> Iterator[str]:
    """Yields the sentences of a work order without headings and markup."""
    for line in work_order.splitlines():
        text = line.lstrip("> ").strip()
        if text and not text.startswith(("#", "```")) and not is_detail(line):
            yield text if text.endswith((".", "!", "?", ":")) else f"{text}."


def constraint_line(constraint: Constraint) -> str:
    """Returns a constraint on one line, shortened."""
    summary = flat(constraint.summary)
    if len(summary) > SUMMARY_FOR_JUDGES:
        summary = f"{summary[:SUMMARY_FOR_JUDGES]}…"
    return f"- {constraint.id} (priority {constraint.priority}): {summary}"


def full_constraint(
    heading: str, material: ConstraintMaterial, *, qualified: bool = False, above: str = ""
) -> str:
    """Returns everything that is needed to review by a constraint, or to check such a review.

    Qualified rules are listed with the id of their constraint, so that an answer about several
    constraints can name them. Sources that the prompt has shown `above` are not shown again.
    """
    constraint = material.constraint
    sources = _introduced("Material to compare the artifact with:", "SOURCES", material.sources)
    if above and material.sources == above:
        sources = "The material to compare the artifact with is GOAL_SOURCES above."
    prefix = f"{constraint.id}/" if qualified else ""
    parts = [
        f"{heading} {constraint.id} (priority {constraint.priority})",
        _summary(constraint),
        "\n".join(format_rule(rule, prefix) for rule in constraint.rules),
        sources,
        _introduced("A program checked the artifact and printed:", "ANALYSIS", material.analysis),
    ]
    return "\n\n".join(part for part in parts if part)


def _summary(constraint: Constraint) -> str:
    """Returns the summary; empty for a constraint in one line, which is also its only rule."""
    summary = constraint.summary.strip()
    return "" if [rule.text.strip() for rule in constraint.rules] == [summary] else summary


def _introduced(sentence: str, name: str, text: str) -> str:
    enclosed = enclose(name, text)
    return f"{sentence}\n\n{enclosed}" if enclosed else ""


def format_tension(axis: str, guidance: str, winner: str) -> str:
    """Returns two conflicting goals, and which one to favor."""
    line = f"- {axis}: {flat(guidance)}" if guidance else f"- {axis}"
    return f"{line} (in conflict, {winner} wins)" if winner else line


def format_critiques(critiques: Sequence[Critique], block_on: Collection[Severity]) -> str:
    """Returns critiques with every issue under a name of its own, what blocks first."""
    # A judge decides by these names. If two critics have used the same one, a dismissal would be
    # ambiguous and could hit the wrong finding.
    uses = Counter(issue.id for critique in critiques for issue in critique.issues)
    blocks = {id(c): any(issue.severity in block_on for issue in c.issues) for c in critiques}
    in_order = sorted(critiques, key=lambda each: not blocks[id(each)])
    return "\n\n".join(_critique(critique, uses, block_on) for critique in in_order)


def _critique(critique: Critique, id_uses: Counter[str], block_on: Collection[Severity]) -> str:
    # A critique may have failed only because of issues that are not shown.
    overall = critique.overall if critique.issues else "nothing to decide"
    heading = f"## {critique.constraint_id}, reviewed by {critique.reviewer}: {overall}"
    groups = group_equal(sorted(critique.issues, key=blocking_first(block_on)))
    return "\n".join([heading, *(_issue(group, id_uses) for group in groups)])


def _name(issue: CritiqueIssue, id_uses: Counter[str]) -> str:
    # If two critics used the same id, a decision about it would be ambiguous.
    return issue.finding_id if id_uses[issue.id] > 1 and issue.finding_id else issue.id


def _equal(group: Sequence[CritiqueIssue], id_uses: Counter[str]) -> str:
    """Returns the names of equal issues with their places: a judge decides about each of them."""
    places = (f"line {each.line}" if each.line else flat(each.location) for each in group)
    names = (
        f"{_name(each, id_uses)}{f' ({place})' if place else ''}"
        for each, place in zip(group, places, strict=True)
    )
    return f"{len(group):,}, decide about each: {', '.join(names)}"


def _issue(group: Sequence[CritiqueIssue], id_uses: Counter[str]) -> str:
    issue, several = group[0], len(group) > 1
    name = _name(issue, id_uses)
    marks = " (unverified)" if issue.unverified else ""
    marks += " (not reported again)" if issue.not_reported_again else ""
    heading = f"[{issue.severity}] {name}: {flat(issue.finding)}{marks}"
    details = {
        "file": issue.path,
        "quote": issue.evidence,
        "impact": issue.impact,
        "rule": issue.rule_id,
        "location": "" if several else issue.location,
        "equal passages": _equal(group, id_uses) if several else "",
        "fix": issue.suggested_fix or "",
        "confidence": "not stated" if issue.confidence is None else f"{issue.confidence:g}",
    }
    lines = [f"  {name}: {flat(text)}" for name, text in details.items() if text.strip()]
    return "\n".join([heading, *lines, *edit_lines(issue.edit)])


def edit_lines(edit: Edit | None) -> Iterator[str]:
    """Yields a critic's exact edit, literally: an agent copies it.

    The mark in front of each line keeps it from imitating another entry.
    """
    if edit is None:
        return
    yield f"  exact edit, the text after each |: {edit.kind.value.replace('_', ' ')}"
    yield from (f"    |{line}" for line in edit.find.split("\n"))
    if edit.text:
        yield "  with" if edit.kind is EditKind.REPLACE else "  this"
        yield from (f"    |{line}" for line in edit.text.split("\n"))


def flat(text: str) -> str:
    """Returns a text on one line, so that it cannot imitate a heading or another entry."""
    return " ".join(text.split())


MOST_KNOWN = 30
"""Entries that are listed, what blocks first."""
LONGEST_QUOTE = 160
LONGEST_TEXT = 240


def known_findings(
    ledger: Ledger,
    constraint: str,
    block_on: Collection[Severity],
    *,
    qualified: bool,
    paths: Collection[str] = (),
) -> list[str]:
    """Returns what earlier rounds know about a constraint, for its critic.

    Rules are named as the prompt lists them: with their constraint if they are `qualified`. A
    critic has no use for the ids of findings, because its answer does not name any. A critic of
    files gets what is known about these.
    """
    findings = [
        each
        for each in ledger.findings.values()
        if each.constraint == constraint and each.path in (paths or ("",))
    ]
    return _listed(findings, block_on, partial(_line, qualified=qualified))


def earlier_findings(ledger: Ledger, iteration: int, block_on: Collection[Severity]) -> list[str]:
    """Returns what a judge should know: findings of earlier rounds, and what came of each."""
    findings = [finding for finding in ledger.findings.values() if finding.first < iteration]
    return _listed(findings, block_on, partial(_line, qualified=True), with_ids=True)


def held_back_by(
    last: Adjudication | None, iteration: int, block_on: Iterable[Severity]
) -> list[str]:
    """Returns the findings that held an approval of an earlier round back, as KNOWN names them."""
    if last is None or last.round >= iteration or last.stated is not Verdict.APPROVED:
        return []
    return [f"{each.finding_id} ({each.severity.value})" for each in last.pursued(block_on)]


def _listed(
    findings: Iterable[Finding],
    block_on: Collection[Severity],
    line: Callable[[Finding], str],
    *,
    with_ids: bool = False,
) -> list[str]:
    """Returns findings in the order of a list; those with the same words are one entry.

    Those that were set aside without a reason of their own, such as a behavior, are left out.
    """
    known = [each for each in findings if each.status is not FindingStatus.IGNORED or each.reason]
    # The list is bounded, so the order decides what a critic does not get to know.
    in_order = sorted(known, key=blocking_first(block_on))
    # The list is cut: what was dismissed matters more to a critic than what was fixed.
    in_order.sort(key=lambda each: LISTED.index(each.status))
    groups = group_equal(in_order, lambda each: (each.path, line(each)))
    lines = []
    for group in groups[:MOST_KNOWN]:
        name = f"{group[0].id} " if with_ids else ""
        times = f" ({describe_equal(group)})" if len(group) > 1 else ""
        lines.append(f"{name}{line(group[0])}{times}")
    left = sum(map(len, groups[MOST_KNOWN:]))
    return [*lines, f"and {left:,} more"] if left else lines


def _line(finding: Finding, *, qualified: bool) -> str:
    line = (
        f"[{_rule(finding, qualified=qualified)}, {finding.severity.value}, {_status(finding)}] "
        f"{_passage(finding)}{one_line(finding.finding, LONGEST_TEXT)}"
    )
    if finding.reason:
        line += f" Reason: {one_line(finding.reason, LONGEST_TEXT)}"
    if finding.decision:
        line += f" A human decided: {one_line(finding.decision, LONGEST_TEXT)}"
    return line


def _rule(finding: Finding, *, qualified: bool) -> str:
    if finding.rule in ("", finding.constraint):
        return finding.constraint
    rule = one_line(finding.rule, 80)
    return f"{finding.constraint}{SEPARATOR}{rule}" if qualified else rule


def _passage(finding: Finding) -> str:
    """Returns where to look, or for a fixed finding, what was there."""
    if finding.omission:
        return "something missing: "
    was = "was " if finding.status is FindingStatus.FIXED else ""
    return f'{was}"{one_line(finding.quote, LONGEST_QUOTE)}": '


def _status(finding: Finding) -> str:
    match finding.status:
        case FindingStatus.OPEN:
            silent = ", not reported again" if finding.not_reported_again else ""
            return f"open since round {finding.first}{silent}"
        case FindingStatus.IGNORED:
            return "set aside"
        case other:
            return other.value
