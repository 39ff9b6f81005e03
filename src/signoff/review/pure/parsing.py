"""Parses the replies of critics and judges: tolerant of slips, strict where a fault could pass.

Half an answer, two answers that differ, an answer of the wrong shape and one that is quoted from
the material are all `Unreadable`. The parser never guesses what such a reply was meant to say.

A judge is asked for two sections, each under a marker on a line of its own. Markers are
recognized in any common spelling. They separate sections and prove nothing: which verdict counts
is decided by the objects in the sections, and an object quoted from the material never counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from signoff.core.effects import Reply
from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, Severity
from signoff.documents.lenient_json import find_closed_objects, load_strict
from signoff.review.pure.critique import (
    MOST_ISSUES,
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
    Withdrawal,
)
from signoff.review.pure.reply_text import (
    ADJUDICATION,
    CRITIQUE,
    LONGEST_REPLY,
    MOST_ANSWERS,
    QUOTED,
    Claim,
    Fields,
    Material,
    PossibleAnswer,
    Unreadable,
    check_length,
    clean,
    find_answer,
    is_alone,
    object_spans,
    own_answers,
    possible_answers,
    sole_answer,
)
from signoff.review.pure.work_order import (
    LONGEST_WORK_ORDER,
    Edit,
    EditKind,
    parse_work_order,
    work_order_entries,
)

__all__ = ["Unreadable", "parse_adjudication", "parse_critique"]

MOST_DECISIONS = 5_000
MOST_SECTIONS = 200
MOST_PROBLEMS = 20
MOST_WITHDRAWALS = 500
LAST_LINE = 10**9
LONGEST_EDIT = 200_000
_ISSUE_KEYS = ("finding", "evidence")
"""What an object in a broken reply has if it is an issue."""

# Ids that are safe in decisions and file names; any other id from an agent is replaced.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}")


def parse_critique(
    reply: Reply | str,
    *,
    constraint_id: str,
    reviewer: str,
    iteration: int,
    rules: Mapping[str, Severity] | None = None,
    owner: Callable[[CritiqueIssue], str] | None = None,
    material: Material | None = None,
    paths: Sequence[str] = (),
) -> Critique:
    """Returns the critique in a reply; raises `Unreadable` with a message to its author.

    Constraint, reviewer and round come from the caller; what the reply claims about them is
    not read. `rules` gives the severity of an issue that names a rule but no severity, `owner` the
    constraint of an issue if there are several. In a text reply, nothing that is quoted from the
    `material` counts. `paths` are the files that were reviewed; only then does an issue name its
    file.
    """
    # A structured answer was produced for this question and cannot be a quotation. A text can be.
    value = _structured(reply)
    if value is None:
        value = find_answer(_text(reply), material or Material(), CRITIQUE)
    fields = Fields(value, "the answer")
    if "overall" not in fields.raw and "issues" not in fields.raw:
        raise Unreadable("the JSON object has no `overall` or `issues`")
    overall = Overall(_one_of(fields, "overall", Overall.FAIL, Overall.PASS))
    # Issues are read before anything is refused: what is valid in an answer counts even if the
    # answer as a whole is sent back.
    entries = [Fields(raw, f"issue {n}") for n, raw in enumerate(fields.items("issues"), start=1)]
    unknown_severities = _unknown_severities(entries)
    issues = with_unique_ids(
        [_issue(entry, rules or {}, by_file=bool(paths)) for entry in entries],
        owner or (lambda _issue: constraint_id),
    )
    critique = Critique(
        constraint_id=constraint_id,
        reviewer=reviewer,
        round=iteration,
        overall=overall,
        issues=tuple(issues),
        approved_sections=_sections(fields.raw.get("approved_sections")),
        summary=fields.text("summary", most=5_000),
        paths=tuple(paths),
        withdrawn=_withdrawals(fields.raw.get("withdrawn")),
    )
    if unknown_severities:
        raise Unreadable("", *unknown_severities, value=critique)
    return critique


def find_whole_issues(
    text: str,
    *,
    rules: Mapping[str, Severity],
    owner: Callable[[CritiqueIssue], str],
    material: Material,
    by_file: bool,
) -> list[CritiqueIssue]:
    """Returns the issues that are whole in a reply that is no critique, such as half of one.

    Nothing is repaired here, and nothing that is quoted from the `material` counts.
    """
    issues: list[CritiqueIssue] = []
    last = -1
    for start, end in find_closed_objects(text[:LONGEST_REPLY]):
        # An object around one that was taken is the critique itself.
        if start > last and len(issues) < MOST_ISSUES:
            issue = _whole_issue(text[start:end], rules, material, by_file=by_file)
            issues += [issue] if issue is not None else []
            last = start if issue is not None else last
    return with_unique_ids(issues, owner)


def _whole_issue(
    source: str, rules: Mapping[str, Severity], material: Material, *, by_file: bool
) -> CritiqueIssue | None:
    if not all(f'"{key}"' in source for key in _ISSUE_KEYS):
        return None
    try:
        value = load_strict(source, strict=False)
        if not all(isinstance(value.get(key), str) for key in _ISSUE_KEYS):
            return None
        issue = _issue(Fields(value, "the issue"), rules, by_file=by_file)
    except (ValueError, Unreadable):
        return None
    texts = tuple(filter(None, (issue.finding, issue.impact, issue.suggested_fix)))
    return None if material.quotes(Claim(source, None, texts, alone=False)) else issue


def limit_issues(
    critique: Critique, most: int, always: Callable[[CritiqueIssue], bool]
) -> Critique:
    """Returns a critique with so many issues, the most severe, and `always` some of them."""
    issues = critique.issues
    if len(issues) <= most:
        return critique
    # The cap is there to protect a judge from floods of small remarks. It must never be a way to
    # lose a finding that blocks.
    by_severity = sorted(issues, key=lambda issue: issue.severity.rank)
    kept = [issue for issue in by_severity if always(issue)]
    others = [issue for issue in by_severity if not always(issue)]
    kept += others[: max(0, most - len(kept))]
    note = f"{len(issues)} issues were reported; only the {len(kept)} most severe are kept"
    return replace(
        critique,
        issues=tuple(sorted(kept, key=lambda issue: issue.severity.rank)),
        notes=(*critique.notes, *([note] if len(kept) < len(issues) else [])),
    )


def with_unique_ids(
    issues: Sequence[CritiqueIssue], owner: Callable[[CritiqueIssue], str]
) -> list[CritiqueIssue]:
    """Returns issues whose valid ids are kept at their first use.

    All other ids are made from the id of a constraint.
    """
    # Ids go into file names and into the decisions of judges, so only harmless ones are kept, and
    # each of them only once.
    valid = {issue.id for issue in issues if _ID.fullmatch(issue.id)}
    unused: dict[str, Iterator[str]] = {}
    used: set[str] = set()
    result = []
    for issue in issues:
        constraint = owner(issue)
        numbered = unused.setdefault(constraint, _numbered_ids(constraint, valid))
        keep = issue.id in valid and issue.id not in used
        name = issue.id if keep else next(numbered)
        used.add(name)
        edit = replace(issue.edit, issue=name) if issue.edit else None
        same = keep and edit is None
        result.append(issue if same else replace(issue, id=name, edit=edit))
    return result


def parse_adjudication(
    reply: Reply | str, *, iteration: int, material: Material | None = None
) -> Adjudication:
    """Returns the adjudication in a reply; raises `Unreadable` with a message to its author.

    In a text reply, nothing that is quoted from the `material` counts. The reply's `termination`
    is not read: it is counted from the decisions.
    """
    value, work_order = _structured(reply), ""
    if value is None:
        value, work_order = find_adjudication(_text(reply), material or Material())
    fields = Fields(value, "the adjudication")
    if "status" not in fields.raw and "decisions" not in fields.raw:
        raise Unreadable("the JSON object has no `status` or `decisions`")
    entries = fields.items("decisions")
    if len(entries) > MOST_DECISIONS:
        raise Unreadable(f"it has {len(entries)} decisions; at most {MOST_DECISIONS} are allowed")
    notes: list[str] = []
    decisions: dict[str, AdjudicationDecision] = {}
    for number, entry in enumerate(entries, start=1):
        _add_decision(decisions, _decision(Fields(entry, f"decision {number}"), notes), notes)
    # A judge may write one part of the work order into the object and the other one beside it.
    orders = dict.fromkeys([fields.text("bill_of_work", most=LONGEST_REPLY), clean(work_order)])
    return Adjudication(
        round=iteration,
        status=Verdict(_one_of(fields, "status", Verdict.REWRITE, Verdict.APPROVED)),
        decisions=tuple(decisions.values()),
        bill_of_work="\n\n".join(filter(str.strip, orders)),
        notes=tuple(notes),
    )


def _structured(reply: Reply | str) -> Mapping[Any, Any] | None:
    """Returns the object of a structured reply; it is the reviewer's own whatever it contains."""
    value = None if isinstance(reply, str) else reply.value
    if value is None or isinstance(value, Mapping):
        return value
    raise Unreadable("it is not a JSON object")


def _text(reply: Reply | str) -> str:
    return reply if isinstance(reply, str) else reply.text


def _one_of(fields: Fields, name: str, default: str, other: str) -> str:
    """Returns which of two words a reply has under a key; the default if it has no such key."""
    word = fields.text(name).upper() or default
    if word not in (default, other):
        raise Unreadable(f"`{name}` is {word[:40]!r}; it must be {other} or {default}")
    return word


def _issue(fields: Fields, rules: Mapping[str, Severity], *, by_file: bool) -> CritiqueIssue:
    rule = fields.text("rule_id", most=200)
    severity = fields.text("severity")
    finding = fields.text("finding")
    fix = fields.text("suggested_fix")
    if not (finding or fix or fields.text("evidence")):
        raise Unreadable(f"{fields.location} is empty; give it a `finding`")
    return CritiqueIssue(
        id=fields.text("id"),
        rule_id=rule,
        severity=Severity.read(severity) if severity else rules.get(rule, DEFAULT_SEVERITY),
        location=fields.text("location", most=500),
        finding=finding,
        impact=fields.text("impact", most=2_000),
        evidence=fields.text("evidence"),
        suggested_fix=fix or None,
        confidence=_confidence(fields.raw.get("confidence")),
        edit=_edit(fields.raw.get("edit")),
        path=fields.text("path", most=1_000) if by_file else "",
        line=_line(fields.raw.get("line")),
    )


def _line(value: object) -> int:
    """Returns the line that a critic names, 0 if it names none."""
    return value if type(value) is int and 0 < value < LAST_LINE else 0


def _numbered_ids(constraint: str, taken: set[str]) -> Iterator[str]:
    names = (f"{constraint}-{number:03}" for number in count(1))
    return (name for name in names if name not in taken)


def _unknown_severities(entries: Sequence[Fields]) -> list[str]:
    """Returns a message for every unknown severity, so that one retry can fix them all."""
    words = [(entry.location, entry.text("severity")) for entry in entries]
    problems = [
        f"the severity of {location} is {word[:40]!r}; it must be one of {SEVERITIES}"
        for location, word in words
        if word and Severity.named(word) is None
    ]
    return problems[:MOST_PROBLEMS]


def _confidence(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return None
    return float(min(max(raw, 0), 1))


def _edit(raw: object) -> Edit | None:
    """Reads a literal edit; a malformed one is dropped, and its issue is kept without it."""
    if not isinstance(raw, Mapping):
        return None
    find, text = raw.get("find"), raw.get("text") or ""
    if not isinstance(find, str) or not isinstance(text, str) or not find:
        return None
    if clean(find) != find or clean(text) != text or len(find) + len(text) > LONGEST_EDIT:
        return None
    # An edit is an offer to save a call. One that cannot be read is dropped, and its finding goes
    # to the agent like any other.
    kind = re.sub(r"[\s-]+", "_", str(raw.get("kind", EditKind.REPLACE)).strip().lower())
    if kind not in set(EditKind):
        return None
    return Edit(EditKind(kind), find, "" if kind == EditKind.DELETE else text)


def _sections(raw: object) -> tuple[Mapping[str, str], ...]:
    """Reads the approved sections; nothing depends on them, so invalid entries are dropped."""
    if not isinstance(raw, list):
        return ()
    sections = [entry if isinstance(entry, Mapping) else {"location": entry} for entry in raw]
    names = ("location", "note")
    return tuple(
        {name: clean(str(s[name]))[:1_000] for name in names if isinstance(s.get(name), str)}
        for s in sections[:MOST_SECTIONS]
    )


def _withdrawals(raw: object) -> tuple[Withdrawal, ...]:
    """Reads what a corrected answer withdraws; an invalid entry withdraws nothing."""
    entries = raw if isinstance(raw, list) else []
    pairs = [(e.get("id"), e.get("reason")) for e in entries if isinstance(e, Mapping)]
    return tuple(
        Withdrawal(clean(id_).strip()[:200], clean(reason).strip()[:1_000])
        for id_, reason in pairs[:MOST_WITHDRAWALS]
        if isinstance(id_, str) and isinstance(reason, str)
    )


def _decision(fields: Fields, notes: list[str]) -> AdjudicationDecision:
    issue = fields.text("issue_id", most=200)
    if not issue:
        raise Unreadable(f"{fields.location} has no `issue_id`")
    # Silence and unknown words keep the finding: only a clear dismissal dismisses.
    status = fields.text("status").lower() or Pursuit.PURSUING
    if status not in set(Pursuit):
        notes.append(f"{issue}: unknown decision {status[:40]!r}; it counts as one to fix")
        status = Pursuit.PURSUING
    return AdjudicationDecision(
        issue_id=issue,
        constraint=fields.text("constraint", most=200),
        severity=Severity.read(fields.text("severity")),
        status=Pursuit(status),
        flagged_by=tuple(fields.texts("flagged_by")),
        competing_constraint=fields.text("competing_constraint", most=200) or None,
        rationale=fields.text("rationale") or None,
        guidance=fields.text("guidance") or None,
    )


def _add_decision(
    decisions: dict[str, AdjudicationDecision], new: AdjudicationDecision, notes: list[str]
) -> None:
    """Adds a decision; if two about one issue disagree, the one that pursues it counts."""
    old = decisions.get(new.issue_id)
    if old is None:
        decisions[new.issue_id] = new
        return
    if old.status is not new.status:
        notes.append(f"{new.issue_id}: decided both ways; it has to be fixed")
        decisions[new.issue_id] = old if old.status is Pursuit.PURSUING else new


MOST_LINES = 50
"""Lines that are looked up in the material; each may take as long as reading all of it."""

# The quantifiers are possessive, so a hostile line takes linear time.
_MARKER = re.compile(
    r"^(?P<before>[=#*_<\[~\d.) \t-]*+)"
    r"(?P<name>adjudication|bill[ _-]of[ _-]work|work[ _-]order)"
    r"(?P<after>[=#*_>\]~: \t\r-]*+)$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBERING = " \t\r0123456789.)"
_YAML_FIELD = re.compile(
    r"^(?:round|status|decisions|tension_analysis|termination|bill_of_work):.*", re.MULTILINE
)
_CLOSING_FENCE = re.compile(r"\A\s*`{3,}[ \t\r]*(?:\n|\Z)")


@dataclass(frozen=True)
class JudgeSection:
    """A part of a reply, from a marker to the next one; the first part has no marker."""

    marker: str
    start: int
    body: int
    """Where its text begins, after the marker."""
    end: int

    @property
    def is_work_order(self) -> bool:
        """Whether it holds a work order; any other section may hold the verdict."""
        return bool(self.marker) and not self.marker.lower().startswith("adj")


def find_adjudication(text: str, material: Material) -> tuple[Mapping[Any, Any], str]:
    """Returns a judge's object and the work order beside it; raises `Unreadable`."""
    check_length(text)
    # The whole reply is divided first. What follows the marker of the work order is text for the
    # fixer, and an object in it must never be read as the verdict.
    sections = _judge_sections(text)
    heads = [each for each in sections if not each.is_work_order]
    if len(heads) > MOST_ANSWERS:
        raise Unreadable("it has too many adjudications; write one")
    found = [each for section in heads for each in _answers_in(text, section, material)]
    bodies = "\n".join(text[each.body : each.end] for each in heads)
    alone = is_alone(bodies, object_spans(bodies))
    own = own_answers(found, material, ADJUDICATION, alone=alone)
    if not own:
        raise _no_answer(text, is_quoted=bool(found))
    answer = sole_answer(own)
    return answer.value, _work_order(text, sections, answer, material)


def _judge_sections(text: str) -> list[JudgeSection]:
    markers = [match for match in _MARKER.finditer(text) if _is_marker(match)]
    ends = [*(match.start() for match in markers), len(text)]
    sections = [JudgeSection("", 0, 0, ends[0])]
    sections += [
        JudgeSection(match["name"], match.start(), match.end(), end)
        for match, end in zip(markers, ends[1:], strict=True)
    ]
    return sections


def _is_marker(match: re.Match[str]) -> bool:
    """Whether a line that consists of a section's name is a heading, not a list item or a key."""
    before, name, after = match["before"].strip(_NUMBERING), match["name"], match["after"].strip()
    # A list of things to do may have an entry called "work order", which is no heading.
    if before in ("-", "*") and match["before"][-1] in " \t":
        return False
    if before or after.strip(":"):
        return True
    return name.isupper() or (after == ":" and name != name.lower())


def _answers_in(text: str, section: JudgeSection, material: Material) -> list[PossibleAnswer]:
    """Returns the objects of a section that look like an answer."""
    body = text[section.body : section.end]
    # An object in the work order of an answer in YAML is not the answer: it could approve what
    # the judge has refused. So such an answer is sent back.
    lines = islice((match.group() for match in _YAML_FIELD.finditer(body)), MOST_LINES)
    if not all(map(material.contains, lines)):
        raise Unreadable("the answer is written as YAML; write it as one JSON object")
    return possible_answers(text, object_spans(text, section.body, section.end), ADJUDICATION)


def _no_answer(text: str, *, is_quoted: bool) -> Unreadable:
    """Returns why a reply has no answer of the judge's own."""
    if is_quoted:
        return Unreadable(QUOTED)
    if not text.strip():
        return Unreadable("it is empty")
    return Unreadable(
        "it contains no JSON object with `status` or `decisions`; write it before the work order"
    )


def _work_order(
    text: str, sections: Sequence[JudgeSection], answer: PossibleAnswer, material: Material
) -> str:
    """Returns the work order beside an answer."""
    orders = [section for section in sections if section.is_work_order]
    after = [section for section in orders if section.start >= answer.end]
    own = (each for each in after[:MOST_LINES] if not _is_quoted(text, each, material))
    if after:
        section = next(own, after[0])
        return text[section.body :].strip("\r\n")
    before = "\n".join(text[each.body : each.end] for each in orders) or text[: answer.start]
    if (orders or _has_entries(before)) and _has_own_lines(before, material):
        raise Unreadable(
            "`=== BILL_OF_WORK ===` comes before `=== ADJUDICATION ===`; write it after"
        )
    rest = _CLOSING_FENCE.sub("", text[answer.end :])
    return rest.strip("\r\n") if _has_entries(rest) else ""


def _is_quoted(text: str, section: JudgeSection, material: Material) -> bool:
    """Whether a marker and the line after it occur in the material."""
    first = next(filter(str.strip, text[section.body : section.end].split("\n")), "")
    return bool(first) and material.contains(text[section.start : section.body] + "\n" + first)


def _has_own_lines(body: str, material: Material) -> bool:
    """Whether a line is neither empty nor in a block quote nor in the material."""
    lines = (line for line in body.split("\n") if any(map(str.isalnum, line)))
    own = (line for line in lines if not line.lstrip().startswith(">"))
    return not all(map(material.contains, islice(own, MOST_LINES)))


def _has_entries(text: str) -> bool:
    return len(text) <= LONGEST_WORK_ORDER and bool(
        work_order_entries(text) or parse_work_order(text)
    )
