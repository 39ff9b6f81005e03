"""Decides which issues of several critics and rounds are the same finding.

A finding is what one rule of one constraint says about one passage, or about one location
where something is missing. Files are distinguished: the same words in two files are two findings. A
passage that was reworded between two rounds is recognized by its
similarity, but never confused with another passage that is in the artifact at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from signoff.core.digest import SHORT, text_digest
from signoff.light_dataclass import light_dataclass
from signoff.review.artifact import ArtifactVersion
from signoff.review.critique import Critique, CritiqueIssue, quotes_nothing
from signoff.review.finding import Finding, normalize, passage_words, subject_of
from signoff.review.typography import find_words

SIMILAR = 85.0
"""How similar two quotes must be, in percent, for one to be the other reworded."""
MISQUOTED = 60.0
"""How similar a quote that is not in the artifact must be: it cannot mean another passage."""
MOST_COMPARED = 1_000
"""Characters of a quote that are compared; longer ones differ early or not at all."""


def identify(
    existing: Iterable[Finding],
    critiques: Sequence[Critique],
    artifact: str | Mapping[str, str] | ArtifactVersion,
) -> list[list[str]]:
    """Returns the finding id of every issue, critique by critique, in their order."""
    files = ArtifactVersion.of(artifact).files
    register = _Register({path: _Passages(text) for path, text in files.items()})
    for finding in existing:
        register.add(_Candidate.from_finding(finding))
    return [register.identify(critique) for critique in critiques]


_Group = tuple[str, str, bool, str]
"""A constraint, a rule, whether a passage is quoted, and the file."""


@light_dataclass(frozen=True)
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

    @classmethod
    def from_finding(cls, finding: Finding) -> _Candidate:
        rule, text = normalize(finding.rule), normalize(finding.finding)
        quoted = not finding.omission
        about = (finding.constraint, rule, finding.subject, text)
        return cls(finding.id, *about, quoted, path=finding.path)

    @classmethod
    def from_issue(cls, issue: CritiqueIssue, constraint: str) -> _Candidate:
        about = partial(
            subject_of, issue.evidence, issue.location, issue.finding, omission=issue.omission
        )
        rule, text = normalize(issue.rule_id), normalize(issue.finding)
        quoted = not quotes_nothing(issue.evidence)
        # A location ("Introduction") and a quote can be the same text, so the id tells them apart.
        kind = "quote" if quoted else "omission"
        # Ids of findings in a single text never had a path in them.
        file = [issue.path] if issue.path else []
        id_ = _short_digest(constraint, rule, kind, about(exact=True), *file)
        return cls(id_, constraint, rule, about(), text, quoted, issue.unverified, issue.path)

    @property
    def group(self) -> _Group:
        """Only findings of one group can be the same."""
        return (self.constraint, self.rule, self.quoted, self.path)

    @property
    def statement(self) -> tuple[str, ...]:
        """Identifies an issue within its critique; equal statements are duplicates."""
        return (self.rule, "quote" if self.quoted else "", self.subject, self.text, self.path)

    @property
    def compared(self) -> str:
        """The text that is compared if the subjects differ."""
        return (self.subject if self.quoted else self.text)[:MOST_COMPARED]


_Ids = dict[tuple[str, ...], str]
"""Finding ids by statement."""


@light_dataclass()
class _Passages:
    """A text that is normalized on first use and searched once per passage."""

    text: str
    _plain: str | None = None
    _spans: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    def distinct(self, one: str, other: str) -> bool:
        """Whether both passages occur in the text without overlapping."""
        first, second = self._span(one), self._span(other)
        if first is None or second is None:
            return False
        return first[1] <= second[0] or second[1] <= first[0]

    def _span(self, passage: str) -> tuple[int, int] | None:
        if self._plain is None:
            self._plain = passage_words(self.text)
        if passage not in self._spans:
            start = find_words(self._plain, passage)
            self._spans[passage] = (start, start + len(passage)) if start >= 0 else None
        return self._spans[passage]


class _Register:
    """All findings so far, indexed by what they are about."""

    def __init__(self, passages: Mapping[str, _Passages]) -> None:
        self._passages = passages
        self._ids: dict[str, _Candidate] = {}
        self._subjects: dict[tuple[_Group, str], list[_Candidate]] = {}
        self._groups: dict[_Group, list[_Candidate]] = {}

    def add(self, candidate: _Candidate) -> None:
        self._ids[candidate.id] = candidate
        self._subjects.setdefault((candidate.group, candidate.subject), []).append(candidate)
        self._groups.setdefault(candidate.group, []).append(candidate)

    def identify(self, critique: Critique) -> list[str]:
        """Returns the finding ids of a critique's issues; different issues get different ids.

        The rules go from certain to uncertain, and each sees only the issues and findings that
        the rules before it left over. So an exact match is never lost to a similar one.
        """
        issues = [_Candidate.from_issue(issue, critique.constraint_id) for issue in critique.issues]
        # Issues with the same words are duplicates and share one id.
        distinct = list({issue.statement: issue for issue in issues}.values())
        ids: _Ids = {}
        for find in (self._same_text, self._same_subject, self._reworded, self._new):
            remaining = [issue for issue in distinct if issue.statement not in ids]
            ids |= find(remaining, frozenset(ids.values()))
        return [ids[issue.statement] for issue in issues]

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
        matches = self._subjects.get((issue.group, issue.subject), [])
        if not matches and issue.id in self._ids:
            # The passage was reworded since, and now has its first wording again.
            matches = [self._ids[issue.id]]
        return [candidate for candidate in matches if candidate.id not in claimed]

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
        unique = len(similar) == 1 or (len(similar) > 1 and similar[0][0] > similar[1][0])
        return similar[:1] if unique else []

    def _are_distinct(self, one: _Candidate, other: _Candidate) -> bool:
        passages = self._passages.get(other.path)
        return passages is not None and passages.distinct(one.subject, other.subject)

    def _new(self, issues: Sequence[_Candidate], _: frozenset[str]) -> _Ids:
        """Adds the remaining issues as new findings, each with an unused id."""
        return {issue.statement: self._add_new(issue) for issue in issues}

    def _add_new(self, issue: _Candidate) -> str:
        finding_id = issue.id
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


def _short_digest(*parts: str) -> str:
    return text_digest("\x1f".join(parts))[:SHORT]
