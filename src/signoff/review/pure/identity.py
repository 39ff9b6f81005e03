"""Decides which issues of several critics and rounds are the same finding.

A finding is what one rule of one constraint says about one passage, or about one location
where something is missing. Equal passages are different ones: `artifact.py` tells them apart. A
passage that was reworded between two rounds is recognized by its
similarity, but never confused with another passage that is in the artifact at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from signoff.core.digest import SHORT, text_digest
from signoff.core.words import FindingStatus
from signoff.review.pure.artifact import ArtifactVersion, nearest, place, stated_line
from signoff.review.pure.critique import Critique, CritiqueIssue, quotes_nothing
from signoff.review.pure.evidence import Occurrence, find_words
from signoff.review.pure.finding import Finding, normalize, passage_words, subject_of

SIMILAR = 85.0
"""How similar two quotes must be, in percent, for one to be the other reworded."""
MISQUOTED = 60.0
"""How similar a quote that is not in the artifact must be: it cannot mean another passage."""
MOST_COMPARED = 1_000
"""Characters of a quote that are compared; longer ones differ early or not at all."""


IsExcused = Callable[[str, CritiqueIssue], bool]
"""Tells whether an issue of a constraint would not count on its line."""


def _excuses_nothing(_constraint: str, _issue: CritiqueIssue) -> bool:
    return False


class IssueIdentity(NamedTuple):
    """The finding that an issue reports, and the passage that it means."""

    id: str
    passage: Occurrence | None
    """None if something is missing, or the quote is not in the text."""


def find_passages(
    existing: Iterable[Finding],
    critiques: Sequence[Critique],
    artifact: str | Mapping[str, str] | ArtifactVersion,
) -> list[list[IssueIdentity]]:
    """Returns the finding and the passage of every issue, critique by critique."""
    register = _Register(ArtifactVersion.of(artifact))
    register.add_findings(list(existing))
    return [register.identify(critique) for critique in critiques]


def assign_lines(
    critique: Critique,
    version: ArtifactVersion,
    findings: Iterable[Finding],
    is_excused: IsExcused = _excuses_nothing,
) -> Critique:
    """Returns a critique whose issues have the lines of the passages that they mean.

    A critic that names a line is believed. Without one, an issue means an equal passage that no
    other issue of the critique is about, in this order: those with an open finding, those
    without a finding, and those that were dismissed or that a comment excuses. So a critic that
    reports the same thing in the next round repeats itself, and only what it reports beyond
    that is new; and a decision never swallows what may be about another passage.
    """
    register = _Register(version)
    register.add_findings(list(findings))
    return register.with_lines(critique, is_excused)


_Group = tuple[str, str, bool, str]
"""A constraint, a rule, whether a passage is quoted, and the file."""
_Place = tuple[int, int]
"""The line of a passage and its number among the equal ones; zeros if it is not in the text."""
_NOWHERE: _Place = (0, 0)


@dataclass(frozen=True)
class _Candidate:
    """The part of a finding or an issue that identity depends on, normalized."""

    id: str
    constraint: str
    rule: str
    subject: str
    text: str
    quoted: bool
    misquoted: bool = False
    path: str = ""
    place: _Place = _NOWHERE
    end_line: int = 0

    @classmethod
    def from_finding(cls, finding: Finding, found: Occurrence | None) -> _Candidate:
        rule, text = normalize(finding.rule), normalize(finding.finding)
        quoted = not finding.omission
        about = (finding.constraint, rule, finding.subject, text)
        where = _where(found)
        return cls(finding.id, *about, quoted, path=finding.path, **where)

    @classmethod
    def from_issue(
        cls, issue: CritiqueIssue, constraint: str, found: Occurrence | None
    ) -> _Candidate:
        about = partial(
            subject_of, issue.evidence, issue.location, issue.finding, omission=issue.omission
        )
        rule, text = normalize(issue.rule_id), normalize(issue.finding)
        quoted = not quotes_nothing(issue.evidence)
        # A location ("Introduction") and a quote can be the same text, so the id tells them apart.
        kind = "quote" if quoted else "omission"
        around = [found.before, found.after, str(found.tie)] if found is not None else []
        id_ = _short_digest(constraint, rule, kind, about(exact=True), issue.path, *around)
        where = _where(found)
        values = (constraint, rule, about(), text, quoted, issue.unverified, issue.path)
        return cls(id_, *values, **where)

    @property
    def group(self) -> _Group:
        """Only findings of one group can be the same."""
        return (self.constraint, self.rule, self.quoted, self.path)

    @property
    def statement(self) -> tuple[str, ...]:
        """Identifies an issue within its critique; equal statements are duplicates."""
        place = f"{self.place[0]}.{self.place[1]}"
        kind = "quote" if self.quoted else ""
        return (self.rule, kind, self.subject, self.text, self.path, place)

    @property
    def compared(self) -> str:
        """The text that is compared if the subjects differ."""
        return (self.subject if self.quoted else self.text)[:MOST_COMPARED]


_Ids = dict[tuple[str, ...], str]
"""Finding ids by statement."""


class _Queue:
    """Equal passages in the order in which issues without a line mean them."""

    def __init__(self, found: Sequence[Occurrence], rank: Callable[[Occurrence], int]) -> None:
        self._found = found
        self._rank = rank
        self._taken: set[int] = set()
        self._order: Iterator[Occurrence] | None = None

    def take(self, line: int) -> Occurrence:
        """Takes the passage on a line, else the nearest one; of several, one that is left."""
        found = nearest(self._found, line)
        on_line = takewhile(lambda each: each.line == found.line, self._found[found.number - 1 :])
        free = (each for each in on_line if each.number not in self._taken)
        chosen = next(free, found)
        self._taken.add(chosen.number)
        return chosen

    def next(self) -> Occurrence:
        """Returns the next passage; once all are taken, the first one."""
        if self._order is None:
            self._order = iter(sorted(self._found, key=self._rank))
        free = (each for each in self._order if each.number not in self._taken)
        return next(free, self._found[0])


class _Register:
    """All findings so far, indexed by what they are about."""

    def __init__(self, version: ArtifactVersion) -> None:
        self._version = version
        self._plain: dict[str, str] = {}
        self._spans: dict[tuple[str, str], tuple[int, int] | None] = {}
        self._ids: dict[str, _Candidate] = {}
        self._subjects: dict[tuple[_Group, str, _Place], list[_Candidate]] = {}
        self._groups: dict[_Group, list[_Candidate]] = {}
        self._dismissed: frozenset[str] = frozenset()

    def add_findings(self, findings: Sequence[Finding]) -> None:
        placed = place(findings, self._version.text)
        for finding in findings:
            self.add(_Candidate.from_finding(finding, placed.get(finding.id)))
        dismissed = (f.id for f in findings if f.status is FindingStatus.DISMISSED)
        self._dismissed = frozenset(dismissed)

    def add(self, candidate: _Candidate) -> None:
        self._ids[candidate.id] = candidate
        key = (candidate.group, candidate.subject, candidate.place)
        self._subjects.setdefault(key, []).append(candidate)
        self._groups.setdefault(candidate.group, []).append(candidate)

    def identify(self, critique: Critique) -> list[IssueIdentity]:
        """Returns the findings of a critique's issues; different issues get different ids.

        The rules go from certain to uncertain, and each sees only the issues and findings that
        the rules before it left over. So an exact match is never lost to a similar one.
        """
        places = self._occurrences(critique, _excuses_nothing)
        issues = [
            _Candidate.from_issue(issue, critique.constraint_id, found)
            for issue, found in zip(critique.issues, places, strict=True)
        ]
        # Issues with the same words about the same passage are duplicates and share one id.
        distinct = list({issue.statement: issue for issue in issues}.values())
        ids: _Ids = {}
        # Each rule may take a finding only once. A loose rule that came first could give a reworded
        # issue the identity of another one that is reported word for word.
        for find in (self._same_text, self._same_subject, self._reworded, self._new):
            remaining = [issue for issue in distinct if issue.statement not in ids]
            ids |= find(remaining, frozenset(ids.values()))
        return [
            IssueIdentity(ids[issue.statement], found)
            for issue, found in zip(issues, places, strict=True)
        ]

    def with_lines(self, critique: Critique, is_excused: IsExcused) -> Critique:
        """Returns a critique whose issues have the lines of their passages."""
        places = self._occurrences(critique, is_excused)
        lines = (found.line if found is not None else 0 for found in places)
        issues = (
            issue if issue.line == line else replace(issue, line=line)
            for issue, line in zip(critique.issues, lines, strict=True)
        )
        return replace(critique, issues=tuple(issues))

    def _occurrences(self, critique: Critique, is_excused: IsExcused) -> list[Occurrence | None]:
        """Returns the passage that each issue means; None if it has none."""
        chosen: list[Occurrence | None] = []
        queues: dict[tuple[_Group, str], _Queue] = {}
        unclear: list[tuple[int, _Queue]] = []
        for number, issue in enumerate(critique.issues):
            chosen.append(None)
            quoted = not quotes_nothing(issue.evidence)
            found = self._version.text(issue.path).occurrences(issue.evidence) if quoted else ()
            if not found:
                continue
            line = issue.line or stated_line(issue.location)
            group = (critique.constraint_id, normalize(issue.rule_id), quoted, issue.path)
            about = (issue.evidence, issue.location, issue.finding)
            key = (group, subject_of(*about, omission=issue.omission))
            if key not in queues:
                queues[key] = _Queue(found, partial(self._rank, key, issue, is_excused))
            if len(found) == 1 or line:
                chosen[number] = queues[key].take(line)
            else:
                unclear.append((number, queues[key]))
        # Those that name a line come first: they leave the others to the rest.
        for number, queue in unclear:
            chosen[number] = queue.next()
        return chosen

    def _rank(
        self,
        about: tuple[_Group, str],
        issue: CritiqueIssue,
        is_excused: IsExcused,
        found: Occurrence,
    ) -> int:
        """Returns which passages an issue without a line means first: those with the least rank."""
        known = self._subjects.get((*about, (found.line, found.number)), ())
        dismissed = known and all(each.id in self._dismissed for each in known)
        constraint = about[0][0]
        if dismissed or is_excused(constraint, replace(issue, line=found.line)):
            return 2
        return 0 if known else 1

    def _same_text(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Ids:
        """Matches findings that are reported with the same subject and text."""
        ids = {}
        for issue in issues:
            matches = [c for c in self._find_by_subject(issue, claimed) if c.text == issue.text]
            if matches:
                ids[issue.statement] = matches[0].id
        return ids

    def _same_subject(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Ids:
        """Matches findings about the same subject that are described in other words."""
        ids: _Ids = {}
        for issue in issues:
            matches = self._find_by_subject(issue, claimed | frozenset(ids.values()))
            if matches:
                ids[issue.statement] = _closest_text(issue, matches).id
        return ids

    def _find_by_subject(self, issue: _Candidate, claimed: frozenset[str]) -> list[_Candidate]:
        """Returns the unclaimed findings about the same subject."""
        matches = self._subjects.get((issue.group, issue.subject, issue.place), [])
        if not matches and issue.place != _NOWHERE:
            # A passage that is back where it was before it was reworded or removed.
            first = self._ids.get(issue.id)
            matches = [first] if first is not None and first.place == _NOWHERE else []
            matches = matches or self._gone(issue)
        return [candidate for candidate in matches if candidate.id not in claimed]

    def _gone(self, issue: _Candidate) -> list[_Candidate]:
        """Returns findings about equal words that have no passage any more.

        A decision is not among them: it ends with its passage.
        """
        gone = self._subjects.get((issue.group, issue.subject, _NOWHERE), ())
        return [each for each in gone if each.id not in self._dismissed]

    def _reworded(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Ids:
        """Matches findings whose quote has changed a little; each goes to the closest issue."""
        free = {
            group: [c for c in self._groups.get(group, ()) if c.id not in claimed]
            for group in {issue.group for issue in issues}
        }
        texts = {group: [c.compared for c in candidates] for group, candidates in free.items()}
        matches = [
            (score, issue.statement, free[issue.group][index].id)
            for issue in issues
            for score, index in self._closest(issue, free[issue.group], texts[issue.group])
        ]
        statements: dict[str, tuple[str, ...]] = {}
        for _, statement, finding_id in sorted(matches, key=lambda match: -match[0]):
            statements.setdefault(finding_id, statement)
        return {statement: finding_id for finding_id, statement in statements.items()}

    def _closest(
        self, issue: _Candidate, free: Sequence[_Candidate], texts: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Returns score and index of the finding most similar to an issue; empty on a tie."""
        similar = [
            (score, index)
            for score, index in _find_similar(
                issue.compared, texts, MISQUOTED if issue.quoted and issue.misquoted else SIMILAR
            )
            # If both passages are in the text now, neither is the other one reworded.
            if not (issue.quoted and self._are_distinct(free[index], issue))
        ]
        # On a tie nobody knows which of the two was reworded, and a new finding is the safer
        # answer: it loses a history, where a wrong match would inherit a dismissal.
        unique = len(similar) == 1 or (len(similar) > 1 and similar[0][0] > similar[1][0])
        return similar[:1] if unique else []

    def _are_distinct(self, one: _Candidate, other: _Candidate) -> bool:
        if _NOWHERE not in (one.place, other.place):
            apart = one.end_line < other.place[0] or other.end_line < one.place[0]
            if apart or one.subject == other.subject:
                return True
        if one.subject == other.subject and one.id in self._dismissed:
            return True
        first, second = (self._span(other.path, each.subject) for each in (one, other))
        if first is None or second is None:
            return False
        return first[1] <= second[0] or second[1] <= first[0]

    def _span(self, path: str, passage: str) -> tuple[int, int] | None:
        """Returns where a passage is in the words of a file; each is looked up once."""
        if path not in self._plain:
            self._plain[path] = passage_words(self._version.files.get(path, ""))
        if (path, passage) not in self._spans:
            start = find_words(self._plain[path], passage)
            self._spans[path, passage] = (start, start + len(passage)) if start >= 0 else None
        return self._spans[path, passage]

    def _new(self, issues: Sequence[_Candidate], _: frozenset[str]) -> _Ids:
        """Adds the remaining issues as new findings, each with an unused id."""
        return {issue.statement: self._add_new(issue) for issue in issues}

    def _add_new(self, issue: _Candidate) -> str:
        finding_id = issue.id
        # Ids are digests of what a finding is about, so they are stable over runs. Two findings
        # about the same words differ in what they say about them.
        while finding_id in self._ids:
            finding_id = _short_digest(finding_id, issue.text)
        self.add(replace(issue, id=finding_id))
        return finding_id


def _closest_text(issue: _Candidate, candidates: Sequence[_Candidate]) -> _Candidate:
    if len(candidates) == 1:
        return candidates[0]
    from rapidfuzz import fuzz

    return max(candidates, key=lambda candidate: fuzz.ratio(candidate.text, issue.text))


def _find_similar(text: str, others: Sequence[str], least: float) -> list[tuple[float, int]]:
    """Returns score and index of every similar text, the most similar first."""
    if not others:
        return []
    from rapidfuzz import fuzz, process

    matches = process.extract(text, others, scorer=fuzz.ratio, score_cutoff=least, limit=None)
    return [(score, index) for _, score, index in matches]


def _where(found: Occurrence | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {"place": (found.line, found.number), "end_line": found.end_line}


def _short_digest(*parts: str) -> str:
    return text_digest("\x1f".join(parts))[:SHORT]
