"""Valid issues of a critic's answer that was sent back: they count until they are withdrawn.

An answer is sent back as a whole, although only some of its issues may be wrong. Without this,
the next answer could lose a true finding by not mentioning it, and nobody would know why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from signoff.core.one_line import one_line
from signoff.core.severity import Severity
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.parsing import with_unique_ids
from signoff.review.similarity import calculate_similarity

WITHDRAWAL_RULE = (
    "the issues below are valid and stay open even if you leave them out; to withdraw one, or to "
    'change its severity, add {"id": "its id", "reason": "why it is wrong"} to `withdrawn`'
)
"""The advice that a critic gets with the list of its valid issues."""
ALIKE = 0.8
"""How alike two findings without a common passage have to be to count as the same one."""
LONGEST_FINDING = 200
MOST_NAMED = 10


class OpenIssues:
    """Collects the valid issues of one critic's answers about one text.

    It is made anew whenever the handler runs, and filled by reading the recorded answers in their
    order, so a replay ends with the same issues.
    """

    def __init__(self) -> None:
        self.issues: tuple[CritiqueIssue, ...] = ()
        """The valid issues so far, each with the id under which it can be withdrawn."""

    def keep(self, issues: Sequence[CritiqueIssue]) -> list[str]:
        """Keeps the valid issues of an answer; returns what to tell the critic about them."""
        self.issues = tuple(issues)
        listed = [
            f"{issue.id} ({issue.severity}) stays open: {one_line(issue.finding, LONGEST_FINDING)}"
            for issue in issues
        ]
        return [WITHDRAWAL_RULE, *listed] if listed else []

    def merged(
        self,
        critique: Critique,
        owner: Callable[[CritiqueIssue], str],
        block_on: Sequence[Severity],
    ) -> Critique:
        """Returns the next answer with the issues that it neither repeats nor withdraws."""
        withdrawn, notes = self._withdrawn(critique)
        standing = [issue for issue in self.issues if issue.id not in withdrawn]
        repeats = _pair(standing, critique.issues)
        left_out = [issue for issue in standing if issue.id not in repeats]
        if left_out:
            names = ", ".join(issue.id for issue in left_out[:MOST_NAMED])
            notes.append(f"left out but not withdrawn, so it still counts: {names}")
        others = [issue for issue in critique.issues if issue not in repeats.values()]
        lowered = [i for i in standing if i.id in repeats and repeats[i.id].severity != i.severity]
        blocked = any(issue.severity in block_on for issue in (*left_out, *lowered))
        first = [_repeated(issue, repeats.get(issue.id)) for issue in standing]
        return replace(
            critique,
            overall=Overall.FAIL if blocked else critique.overall,
            issues=tuple(with_unique_ids([*first, *others], owner)),
            withdrawn=(),
            notes=(*critique.notes, *notes),
        )

    def _withdrawn(self, critique: Critique) -> tuple[set[str], list[str]]:
        """Returns the ids of issues that are withdrawn with a reason, and notes about all."""
        issues = {issue.id: issue for issue in self.issues}
        reasons = {each.id: each.reason for each in critique.withdrawn if each.reason}
        valid = {id_: reason for id_, reason in reasons.items() if id_ in issues}
        notes = [f"withdrawn: {id_} ({issues[id_].severity}): {valid[id_]}" for id_ in valid]
        ignored = dict.fromkeys(each.id for each in critique.withdrawn if each.id not in valid)
        if ignored:
            names = ", ".join(repr(id_[:80]) for id_ in [*ignored][:MOST_NAMED])
            notes.append(f"withdrawals without a reason or of unknown issues are ignored: {names}")
        return set(valid), notes


def _pair(
    standing: Sequence[CritiqueIssue], answered: Sequence[CritiqueIssue]
) -> dict[str, CritiqueIssue]:
    """Returns the issue of an answer that repeats a standing one, by the standing one's id.

    Equal lines may each have an issue, so those at the same location are paired first.
    """
    pairs: dict[str, CritiqueIssue] = {}
    unused = list(answered)
    for is_same in (_same_place, _same):
        for issue in standing:
            if issue.id in pairs:
                continue
            found = next((each for each in unused if is_same(issue, each)), None)
            if found is not None:
                pairs[issue.id] = found
                unused.remove(found)
    return pairs


def _same_place(one: CritiqueIssue, other: CritiqueIssue) -> bool:
    return one.location == other.location and _same(one, other)


def _same(one: CritiqueIssue, other: CritiqueIssue) -> bool:
    if (one.path, one.rule_id) != (other.path, other.rule_id) or one.omission != other.omission:
        return False
    if not one.omission and one.evidence.split() == other.evidence.split():
        return True
    return calculate_similarity(one.finding, other.finding) >= ALIKE


def _repeated(issue: CritiqueIssue, repeat: CritiqueIssue | None) -> CritiqueIssue:
    """Returns the later wording of an issue; its severity is lowered only by a withdrawal."""
    if repeat is None:
        return issue
    worst = min(issue.severity, repeat.severity, key=lambda severity: severity.rank)
    passage = repeat if repeat.evidence.strip() == issue.evidence.strip() else issue
    edit = replace(passage.edit, issue=issue.id) if passage.edit else None
    return replace(passage, id=issue.id, severity=worst, location=issue.location, edit=edit)
