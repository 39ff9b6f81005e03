"""Finds a judge's answer and its work order in a text reply.

A judge is asked for two sections, each under a marker on a line of its own. Markers are
recognized in any common spelling. They separate sections and prove nothing: which verdict counts
is decided by the objects in the sections, and an object quoted from the material never counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from signoff.review.fields import Unreadable
from signoff.review.own_words import Material
from signoff.review.reply_text import (
    ADJUDICATION,
    MOST_ANSWERS,
    QUOTED,
    PossibleAnswer,
    check_length,
    has_answer_keys,
    is_alone,
    object_spans,
    own_answers,
    possible_answers,
    sole_answer,
)
from signoff.review.work_order import LONGEST_WORK_ORDER, parse_work_order, work_order_entries

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
    sections = _sections(text)
    heads = [each for each in sections if not each.is_work_order]
    if len(heads) > MOST_ANSWERS:
        raise Unreadable("it has too many adjudications; write one")
    bodies = "\n".join(text[each.body : each.end] for each in heads)
    alone = _has_only_objects(bodies)
    own: list[PossibleAnswer] = []
    problems: list[tuple[JudgeSection, Unreadable]] = []
    is_quoted = False
    for section in heads:
        try:
            found = _answers_in(text, section, material)
            here = own_answers(found, material, ADJUDICATION, alone=alone)
        except Unreadable as error:
            problems.append((section, error))
            continue
        own += here
        is_quoted = is_quoted or len(found) > len(here)
    if not own:
        raise problems[0][1] if problems else _no_answer(text, is_quoted=is_quoted)
    answer = sole_answer(own)
    work_order, end = _work_order(text, sections, answer, material)
    for section, problem in problems:
        # The text before the first marker is a draft if the answer follows it, and what follows
        # the marker of the work order belongs to the work order, whatever it looks like.
        is_draft = not section.marker and answer.start >= section.end
        if section.start < end and not is_draft:
            raise problem
    return answer.value, work_order


def _has_only_objects(text: str) -> bool:
    try:
        return is_alone(text, object_spans(text))
    except Unreadable:
        return False


def _sections(text: str) -> list[JudgeSection]:
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
    if before in ("-", "*") and match["before"][-1] in " \t":
        return False
    if before or after.strip(":"):
        return True
    return name.isupper() or (after == ":" and name != name.lower())


def _answers_in(text: str, section: JudgeSection, material: Material) -> list[PossibleAnswer]:
    """Returns the objects of a section that look like an answer, in JSON or in YAML.

    YAML that contains JSON is read as YAML: the object in its work order is not the answer.
    """
    body = text[section.body : section.end]
    lines = list(islice((match.group() for match in _YAML_FIELD.finditer(body)), MOST_LINES))
    if all(map(material.contains, lines)):
        spans = object_spans(text, section.body, section.end)
        found = possible_answers(text, spans, ADJUDICATION)
        if found or not lines:
            return found

    value = read_yaml(body)
    is_answer = has_answer_keys(value, ADJUDICATION)
    return [PossibleAnswer(body, section.body, value)] if is_answer else []


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
) -> tuple[str, int]:
    """Returns the work order beside an answer, and where the answer's own part ends."""
    orders = [section for section in sections if section.is_work_order]
    after = [section for section in orders if section.start >= answer.end]
    own = (each for each in after[:MOST_LINES] if not _is_quoted(text, each, material))
    if after:
        section = next(own, after[0])
        return text[section.body :].strip("\r\n"), section.start
    before = "\n".join(text[each.body : each.end] for each in orders) or text[: answer.start]
    if (orders or _has_entries(before)) and _has_own_lines(before, material):
        raise Unreadable(
            "`=== BILL_OF_WORK ===` comes before `=== ADJUDICATION ===`; write it after"
        )
    rest = _CLOSING_FENCE.sub("", text[answer.end :])
    if _has_entries(rest):
        return rest.strip("\r\n"), answer.end
    return "", len(text)


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


LONGEST = 200_000
"""Characters; parsing more would take longer than asking again."""
MOST_EVENTS = 10_000
"""What the parser reports about a reply: enough for a thousand decisions."""
DEEPEST = 50
"""The parser's time grows with the square of the depth."""


def read_yaml(text: str) -> Mapping[str, Any]:
    """Returns the single mapping in a text, fenced or not; raises `Unreadable`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    body = _body(text)
    try:
        _check_effort(YAML(typ="safe", pure=True).parse(body))
        value = YAML(typ="safe", pure=True).load(body)
        # Python refuses to print numbers of thousands of digits, so such a reply would fail later.
        str(value)
    except (YAMLError, ValueError, RecursionError) as error:
        raise Unreadable("it is neither a JSON object nor YAML") from error
    if not isinstance(value, Mapping):
        raise Unreadable("it is not a JSON object" if body.strip() else "it is empty")
    return value


def _check_effort(events: Iterable[Any]) -> None:
    """Raises `Unreadable` for a reply that takes long to read.

    With aliases, a reply of a few hundred characters has more values than any machine can hold.
    Nothing that a judge is asked for needs them.
    """
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    for number, event in enumerate(events):
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable("it uses anchors or aliases of YAML; write each value out")
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if number > MOST_EVENTS or depth > DEEPEST:
            raise Unreadable("it is too long or nested too deep to be read as YAML")


def _body(text: str) -> str:
    if len(text) > LONGEST:
        raise Unreadable("it contains no JSON object")
    lines = text.split("\n")
    fences = [index for index, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return text
    if len(fences) != 2:
        raise Unreadable("it must contain exactly one complete fenced block")
    return "\n".join(lines[fences[0] + 1 : fences[1]])
