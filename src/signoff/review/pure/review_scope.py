"""What one critic reviews in one call: its constraints, and the files that it is shown.

With one constraint, every issue is about it, whatever rule it names. With several, an issue names
its rule together with the constraint, and the critique is split into one for each constraint. So
everything after it works as if each constraint had been reviewed by itself.

An answer is sent back as a whole, although only some of its issues may be wrong. Its valid issues
count until the critic withdraws them: otherwise the next answer could lose a true finding by not
mentioning it, and nobody would know why.

A file is shown as a whole, or, in a review of changes, as a unified diff. A critic names the file
of each issue. A name that was not among those it was given is a problem of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from signoff.core.one_line import one_line
from signoff.core.severity import DEFAULT_BLOCK_ON, DEFAULT_SEVERITY, Severity
from signoff.review.pure.artifact import ArtifactVersion, locate
from signoff.review.pure.constraint import SEPARATOR, Constraint
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.diff import changes, diff_files
from signoff.review.pure.parsing import with_unique_ids
from signoff.review.pure.prompt_text import enclose, flat
from signoff.review.pure.similarity import calculate_similarity


@dataclass(frozen=True)
class ReviewScope:
    """One or several constraints, the most important ones first."""

    constraints: tuple[Constraint, ...]

    @property
    def first(self) -> Constraint:
        """The constraint of everything that cannot be assigned to one."""
        return self.constraints[0]

    @property
    def several(self) -> bool:
        """Whether rules have to be named with their constraint."""
        return len(self.constraints) > 1

    @property
    def names(self) -> str:
        """The constraints in a sentence."""
        ids = [repr(each.id) for each in self.constraints]
        return " and ".join(filter(None, (", ".join(ids[:-1]), ids[-1])))

    @property
    def rules(self) -> list[str]:
        """The names under which the prompt lists the rules."""
        if not self.several:
            return [rule.id for rule in self.first.rules]
        # A constraint without rules is itself the rule.
        full = ([f"{c.id}{SEPARATOR}{r.id}" for r in c.rules] or [c.id] for c in self.constraints)
        return list(chain.from_iterable(full))

    def owner(self, issue: CritiqueIssue) -> str:
        """Returns the id of the constraint that an issue is about; the first one in doubt."""
        return self._assignment(issue)[0]

    def unknown_rules(self, critique: Critique) -> list[str]:
        """Returns messages to the critic about issues that name no rule of these constraints."""
        wrong = [issue for issue in critique.issues if not self.is_known(issue)]
        if not wrong:
            return []
        named = [f"{issue.id} names the rule {issue.rule_id[:80]!r}" for issue in wrong]
        return [*named, f"`rule_id` must be one of: {', '.join(self.rules)}"]

    def is_known(self, issue: CritiqueIssue) -> bool:
        """Whether an issue names a rule of these constraints; a single one owns every issue."""
        return not self.several or issue.rule_id in self._assignments

    @cached_property
    def severities(self) -> Mapping[str, Severity]:
        """The severity of each rule, by every name that a critic may use for it."""
        own = {(c.id, rule.id): rule.default_severity for c in self.constraints for rule in c.rules}
        return {name: own.get(rule, DEFAULT_SEVERITY) for name, rule in self._assignments.items()}

    def split(
        self, critique: Critique, block_on: Sequence[Severity] = DEFAULT_BLOCK_ON
    ) -> list[Critique]:
        """Returns one critique for each constraint; one without issues passes.

        If some issues block, a critique that has none of them passes as well. What the critic and
        the engine say about the whole goes with the first one. An issue that names no rule of these
        constraints counts as well: it must not get lost.
        """
        if not self.several:
            return [replace(critique, issues=self._issues(critique, self.first))]
        # A finding under an unknown rule still blocks. It goes to the most important constraint
        # rather than to none.
        lost = [issue.id for issue in critique.issues if not self.is_known(issue)]
        note = f"counted for {self.first.id!r}, as no known rule is named: {', '.join(lost)}"
        notes = (*critique.notes, note) if lost else critique.notes
        blocking = [issue for issue in critique.issues if issue.severity in block_on]
        cause = blocking or critique.issues
        parts = [self._part(critique, each, cause) for each in self.constraints]
        with_whole = replace(
            parts[0],
            approved_sections=critique.approved_sections,
            summary=critique.summary,
            notes=notes,
        )
        return [with_whole, *parts[1:]]

    def _issues(self, critique: Critique, constraint: Constraint) -> tuple[CritiqueIssue, ...]:
        rules = ((issue, *self._assignment(issue)) for issue in critique.issues)
        return tuple(
            issue if issue.rule_id == rule else replace(issue, rule_id=rule)
            for issue, owner, rule in rules
            if owner == constraint.id
        )

    def _part(
        self, critique: Critique, constraint: Constraint, cause: Sequence[CritiqueIssue]
    ) -> Critique:
        """Returns the critique of a constraint; it fails if an issue of it is the cause."""
        issues = self._issues(critique, constraint)
        # An error is not a verdict, so it is the same for all of them.
        failed = any(self.owner(issue) == constraint.id for issue in cause)
        passed = not failed and critique.overall is not Overall.ERROR
        return Critique(
            constraint_id=constraint.id,
            reviewer=critique.reviewer,
            round=critique.round,
            overall=Overall.PASS if passed else critique.overall,
            issues=issues,
            decided_by=critique.decided_by,
            answered_by=critique.answered_by,
        )

    def _assignment(self, issue: CritiqueIssue) -> tuple[str, str]:
        """Returns the constraint of an issue and its rule, without the constraint's name."""
        return self._assignments.get(issue.rule_id, (self.first.id, issue.rule_id))

    @cached_property
    def _assignments(self) -> Mapping[str, tuple[str, str]]:
        """The constraint and the rule by each name that can only mean this one."""
        short: dict[str, set[tuple[str, str]]] = {}
        for each in self.constraints:
            for name in (each.id, *(rule.id for rule in each.rules)):
                short.setdefault(name, set()).add((each.id, name))
        clear = {name: next(iter(found)) for name, found in short.items() if len(found) == 1}
        # No id of a constraint contains the separator, so a full name means one rule only.
        full = {
            f"{each.id}{SEPARATOR}{rule.id}": (each.id, rule.id)
            for each in self.constraints
            for rule in each.rules
        }
        return {**clear, **full}


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
        # Only a stated reason withdraws a finding: a critic that was asked to correct its form may
        # simply forget the rest.
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
    # Equal findings about equal lines are told apart by their places first, so that each is paired
    # with its own repetition.
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


CONTEXT = 12
"""Lines around a change that critics see."""
NOT_CHANGED = "not on a changed line"
"""Why a finding about an old line is set aside in a review of changes."""


class ShownFile(NamedTuple):
    """One file in the prompt of a critic."""

    path: str
    text: str
    """The whole text, or the diff."""
    diff: bool = False

    @property
    def enclosed(self) -> str:
        """The file between delimiters."""
        kind = "CHANGES" if self.diff else "FILE"
        return enclose(f"{kind} {flat(self.path)}", self.text)


def show_files(
    files: Mapping[str, str], base: Mapping[str, str], paths: Sequence[str]
) -> list[ShownFile]:
    """Returns files for a critic: a changed one as a diff, a new one and any other as a whole."""
    return [
        ShownFile(path, diff_text(base[path], files[path]), diff=True)
        if base.get(path)
        else ShownFile(path, files[path])
        for path in paths
    ]


def diff_text(old: str, new: str) -> str:
    """Returns the changes between two texts as the hunks of a unified diff."""
    hunks = diff_files({"": old}, {"": new}, context=CONTEXT).get("", ())
    return "\n".join(line for hunk in hunks for line in (hunk.header, *hunk.lines))


def assign_files(
    critique: Critique, shown: Sequence[ShownFile], version: ArtifactVersion
) -> tuple[Critique, list[str]]:
    """Returns a critique whose issues name files that were shown, and messages about the others.

    An issue that names no file is about the only one, or the only one with its quote. One that
    names another file is a mistake; if its quote is in one file only, it is about that one, and
    otherwise it has no valid evidence.
    """
    problems: list[str] = []
    issues = [_assigned(issue, shown, version, problems) for issue in critique.issues]
    if problems:
        problems.append(f"`path` must be one of: {', '.join(flat(each.path) for each in shown)}")
    return replace(critique, issues=tuple(issues)), problems


def _assigned(
    issue: CritiqueIssue,
    shown: Sequence[ShownFile],
    version: ArtifactVersion,
    problems: list[str],
) -> CritiqueIssue:
    diffs = {each.path: each.diff for each in shown}
    name = issue.path.strip().removeprefix("./")
    # A finding about a file that the critic was not shown cannot be checked, and may be invented.
    if name not in diffs:
        wrong = name
        having = [path for path in diffs if _quote_in(issue, version, path, diff=diffs[path])]
        by_quote = having if not (wrong and issue.omission) else []
        candidates = list(diffs) if len(diffs) == 1 and not wrong else by_quote
        name = candidates[0] if len(candidates) == 1 else ""
        what = f"the file {flat(issue.path)[:200]!r}, which is not part of this review"
        if wrong or not name:
            problems.append(f"{issue.id} names {what if wrong else 'no file'}")
    if not name:
        return replace(issue, path="", unverified=True)
    quote = _quote_in(issue, version, name, diff=diffs[name])
    return replace(issue, path=name, evidence=quote or issue.evidence)


def _quote_in(
    issue: CritiqueIssue, version: ArtifactVersion, path: str, *, diff: bool
) -> str | None:
    """Returns the quote as a file has it: without the marks of a diff; None if it has not."""
    text = version.text(path)
    if issue.omission or text.contains(issue.evidence):
        return issue.evidence
    lines = issue.evidence.split("\n")
    if diff and all(line[:1] in ("+", " ", "") for line in lines):
        unmarked = "\n".join(line[1:] for line in lines)
        return unmarked if unmarked.strip() and text.contains(unmarked) else None
    return None


def unchanged_line(issue: CritiqueIssue, version: ArtifactVersion, base: Mapping[str, str]) -> str:
    """Returns why an issue about a line that a change did not touch is set aside, else ""."""
    is_old = issue.path in base and not _is_on_change(issue, version, base[issue.path])
    return NOT_CHANGED if is_old else ""


def _is_on_change(issue: CritiqueIssue, version: ArtifactVersion, old: str) -> bool:
    """Whether an issue is about a changed line; what is missing may be missing anywhere."""
    found = locate(version, issue.evidence, issue.path, issue.line)
    # In doubt a finding counts: setting one aside by mistake would hide it from everybody.
    if not old or issue.omission or found is None:
        return True
    changed = _changed_lines(old, version.files[issue.path])
    return any(line in changed for line in range(found.line, found.end_line + 1))


@lru_cache(maxsize=256)
def _changed_lines(old: str, new: str) -> frozenset[int]:
    """Returns the new or changed lines, from 1; where lines were removed, those next to it."""
    after = new.split("\n")
    found: set[int] = set()
    for change in changes(old.split("\n"), after):
        if change.new_start < change.new_end:
            found.update(range(change.new_start + 1, change.new_end + 1))
        else:
            found.update(n for n in (change.new_start, change.new_start + 1) if n <= len(after))
    return frozenset(found - {0})
