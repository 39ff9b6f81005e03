"""Finds the object that is a reviewer's answer in a text reply.

The object is chosen by its keys, so prose and other objects around it do not matter. Objects that
are quoted from the material do not count; two answers that differ are an error.

An artifact, a source or a prompt may contain a complete verdict, and a reviewer may quote it: as
it is, in a block quote, with another indentation, with its keys in another order. These rules
decide about an object in a text reply, in this order:

1. It is quoted if its words occur in the material one after the other.
2. It is the reviewer's own if the material contains no such verdict.
3. It is the reviewer's own if it says something in the reviewer's own words: if one of its texts
   (a summary, a finding, a reason) is not, or not nearly, in an object with a verdict there.
4. Without own words it is quoted, unless the reply consists of nothing else and no object in the
   material has the same entries.

A refusal costs one retry that asks for a summary; a quotation that counts costs an approval that
no reviewer gave. So wherever it is uncertain, an object is quoted.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from signoff.core.errors import AgentBadOutput
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.documents.lenient_json import NotJson, find_objects, load
from signoff.review.pure.critique import Overall, Verdict
from signoff.review.pure.evidence import limit_marks

MOST_TEXTS = 200
"""Texts of an object that are compared, the longest first; the first own one decides."""
NEIGHBORHOOD = 100
"""Words around a verdict in the material that is in no object, such as one in YAML."""
RUN = 3
"""Words in a row that are compared to find a text that differs a little."""
COPIED_SHARE = 0.6
"""The share of such runs that makes a text a copy; a changed word breaks three of them."""

_KEYS = ("overall", "status", "confirmed")
_VALUES = frozenset(value.casefold() for value in (*Overall, *Verdict, "true", "false"))
# A format such as "PASS or FAIL" lists the verdicts and gives none.
_ALTERNATIVES = tuple(f" or {value}" for value in _VALUES)
_TOKEN = re.compile(r"[^\W_]+|[{}\[\]]")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf])")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\0]")
_ELLIPSIS = re.compile(r"\.{3,}|\u2026")


@dataclass(frozen=True)
class Claim:
    """An object in a reply that could be the reviewer's verdict."""

    source: str
    """Its text in the reply."""
    verdict: tuple[str, str] | None
    """The key and the value of its verdict; None if it has none."""
    texts: tuple[str, ...]
    """What it says in words."""
    alone: bool
    """Whether the reply consists of nothing else."""


class Material:
    """What a reviewer was given: artifact, sources, goal, guidance and the prompt itself.

    A reviewer's own earlier replies are not material.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def quotes(self, claim: Claim) -> bool:
        """Whether a claim counts as quoted from the material."""
        # Words are compared and not characters: quoting changes spaces, quotation marks and
        # escapes.
        source = _words(claim.source)
        if self._has(source):
            return True
        if claim.verdict is not None and not self._has(_words(" ".join(claim.verdict))):
            return False
        texts = sorted(filter(_words, set(claim.texts)), key=len, reverse=True)
        if texts:
            return all(map(self._copied, texts[:MOST_TEXTS]))
        if claim.verdict is not None and not claim.alone:
            return True
        # The sum does not depend on the order of the keys, so an object that was quoted with its
        # keys in another order is still found.
        total = sum(map(hash, source.split(" ")))
        return any(total in text.verdicts.sums for text in self._read)

    def contains(self, text: str) -> bool:
        """Whether the words of a text occur in the material one after the other."""
        return self._has(_words(text))

    @cached_property
    def _read(self) -> list[_MaterialText]:
        return list(map(_material_text, self._texts))

    def _has(self, words: str) -> bool:
        return any(text.has(words) for text in self._read)

    def _copied(self, text: str) -> bool:
        verdicts = [each.verdicts for each in self._read]
        parts = filter(None, map(_words, _ELLIPSIS.split(text)))
        # Whole words only: "ok" is not copied from "broken".
        if all(any(f" {part} " in each.text for each in verdicts) for part in parts):
            return True
        runs = list(_runs(_words(text)))
        # A copy with one changed word is still a copy. Whole texts are too coarse for that and
        # single words too fine, so runs of words are counted.
        copied = sum(any(run in each.runs for each in verdicts) for run in runs)
        return bool(runs) and copied >= COPIED_SHARE * len(runs)


class _MaterialText:
    """One text of the material; nothing is found across its end."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)

    def has(self, words: str) -> bool:
        """Whether words occur here one after the other, and not in a list of alternatives."""
        start = self._words.find(words) if words else -1
        while start >= 0:
            end = start + len(words)
            if not self._words.startswith(_ALTERNATIVES, end):
                return True
            start = self._words.find(words, end)
        return False

    @cached_property
    def verdicts(self) -> _Verdicts:
        """The objects here that have a verdict."""
        return _Verdicts(self._words.split(" "))


# All critics of a step get the same goal and artifact, and often reply at the same time.
_material_text = lru_cache(maxsize=4)(_MaterialText)


class _Verdicts:
    """The objects in a text that have a verdict, found in one pass however deep they are.

    Only these are searched for copied texts: elsewhere, a reviewer uses the words of the material
    because it writes about it.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.sums: set[int] = set()
        """For each object, the sum of its words' hashes, which no order of the keys changes."""
        spans: list[tuple[int, int]] = []
        open_objects: list[tuple[int, int]] = []
        loose: dict[int, list[int]] = {}
        total, last = 0, -1
        for position, word in enumerate(words):
            if word == "{":
                open_objects.append((position, total))
            total += hash(word)
            if word in _KEYS and _is_verdict(words[position + 1 : position + 4]):
                last = position
                innermost = open_objects[-1][0] if open_objects else -1
                loose.setdefault(innermost, []).append(position)
            if word == "}" and open_objects:
                start, before = open_objects.pop()
                if last > start:
                    self.sums.add(total - before)
                if loose.pop(start, None):
                    spans.append((start, position + 1))
        for positions in loose.values():
            spans += [(max(0, each - NEIGHBORHOOD), each + NEIGHBORHOOD) for each in positions]
        self._excerpts = [" ".join(words[start:end]) for start, end in _merge(spans)]

    @cached_property
    def text(self) -> str:
        """The words of these objects, each between spaces."""
        return f" {' | '.join(self._excerpts)} "

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        """The runs of words in these objects."""
        return frozenset(run for excerpt in self._excerpts for run in _runs(excerpt))


def _is_verdict(words: Sequence[str]) -> bool:
    """Whether words after the key of a verdict are a verdict, and not a list of all verdicts."""
    if not words or words[0] not in _VALUES:
        return False
    return not (len(words) > 2 and words[1] == "or" and words[2] in _VALUES)


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns spans without overlaps, so that each word of nested objects is used once."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _words(text: str) -> str:
    """Returns the words and brackets of a text, separated by single spaces.

    Case, punctuation, quotation marks, escapes, invisible characters and Unicode forms do not
    matter: text is often changed in these ways when it is quoted.
    """
    plain = html.unescape(text) if "&" in text else text
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", plain)
    plain = unicodedata.normalize("NFKD", limit_marks(_INVISIBLE.sub("", plain).casefold()))
    return " ".join(_TOKEN.findall(plain))


def _runs(words: str) -> Iterable[tuple[str, ...]]:
    tokens = words.split(" ")
    return zip(*(tokens[offset:] for offset in range(RUN)), strict=False)


LONGEST = 10_000
"""Characters that are kept of a text; of a longer quote only the beginning is checked."""


class Unreadable(AgentBadOutput):
    """A reply cannot be read as an answer; the message tells its author why."""


@dataclass(frozen=True)
class Fields:
    """A mapping from an agent's reply, and its location there for messages."""

    raw: Mapping[Any, Any]
    location: str

    def text(self, name: str, most: int = LONGEST) -> str:
        """Returns a text, "" if it is missing; a number counts as text."""
        value = self.raw.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._unreadable(name, "a string")
        text = clean(str(value)).strip()
        return text if len(text) <= most else text[:most] + "…"

    def texts(self, name: str) -> list[str]:
        """Returns a list of texts; a single text counts as a list with one item."""
        value = self.raw.get(name) or []
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._unreadable(name, "a list of strings")
        return [clean(text)[:200] for text in texts[:100]]

    def items(self, name: str) -> list[Mapping[Any, Any]]:
        """Returns a list of mappings, empty if it is missing."""
        value = self.raw.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self._unreadable(name, "a list of objects")
        return value

    def _unreadable(self, name: str, expected: str) -> Unreadable:
        return Unreadable(f"`{name}` of {self.location} must be {expected}")


def clean(text: str) -> str:
    """Returns a text without characters that files or databases cannot store."""
    return replace_lone_surrogates(text).replace("\0", "\ufffd")


LONGEST_REPLY = 8_000_000
MOST_ANSWERS = 50
"""Objects with a verdict in a reply; each is looked up in the material."""

QUOTED = (
    "the only verdict in it also occurs in the material or in the prompt, so it may be a "
    "quotation; answer with your own JSON object, and with a `summary` in your own words"
)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w-]*[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True)
class ReplyFormat:
    """How an answer of one kind is recognized."""

    verdict: str
    """The key of the verdict."""
    entries: str
    """The key of its findings or decisions; an answer has this key or that of the verdict."""
    entry: str
    """The key that only an entry has, so that a single entry does not pass for an answer."""
    texts: Mapping[str, Sequence[str]]
    """The keys of what a reviewer says in its own words, by the list they are in; "" is the
    object itself."""


CRITIQUE = ReplyFormat(
    verdict="overall",
    entries="issues",
    entry="rule_id",
    texts={
        "": ("summary",),
        "issues": ("finding", "impact", "suggested_fix"),
        "approved_sections": ("note",),
        "withdrawn": ("reason",),
    },
)
ADJUDICATION = ReplyFormat(
    verdict="status",
    entries="decisions",
    entry="issue_id",
    texts={
        "": ("summary", "bill_of_work"),
        "decisions": ("rationale", "guidance"),
    },
)


@dataclass(frozen=True)
class PossibleAnswer:
    """An object of a reply with the keys of an answer."""

    source: str
    start: int
    """Where its text begins in the reply."""
    value: Mapping[Any, Any]
    problem: str = ""
    """Why it cannot be read; its value is empty then."""

    @property
    def end(self) -> int:
        """Where its text ends in the reply."""
        return self.start + len(self.source)


def find_answer(text: str, material: Material, form: ReplyFormat) -> Mapping[Any, Any]:
    """Returns the object that is a reviewer's answer; raises `Unreadable`."""
    check_length(text)
    spans = object_spans(text)
    found = possible_answers(text, spans, form)
    own = own_answers(found, material, form, alone=is_alone(text, spans))
    if own:
        return sole_answer(own).value
    if found:
        raise Unreadable(QUOTED)
    if spans:
        keys = " or ".join(f"`{key}`" for key in dict.fromkeys((form.verdict, form.entries)))
        raise Unreadable(f"the JSON object has no {keys}")
    raise Unreadable("it contains no JSON object" if text.strip() else "it is empty")


def check_length(text: str) -> None:
    """Raises `Unreadable` for a reply that is too long to be read."""
    if len(text) > LONGEST_REPLY:
        raise Unreadable(f"it is longer than {LONGEST_REPLY:,} characters")


def object_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Returns the start and end of each outermost object in a part of a reply."""
    try:
        return [(start + a, start + b) for a, b in find_objects(text[start:end])]
    except NotJson as error:
        raise Unreadable(f"the JSON object cannot be read: {error}") from error


def possible_answers(
    text: str, spans: Iterable[tuple[int, int]], form: ReplyFormat
) -> list[PossibleAnswer]:
    """Returns the objects that have the keys of an answer, or cannot be read but name them."""
    sources = ((start, text[start:end]) for start, end in spans)
    relevant = ((a, each) for a, each in sources if form.verdict in each or form.entries in each)
    found = list(islice(filter(None, (_read(each, a, form) for a, each in relevant)), MOST_ANSWERS))
    if len(found) == MOST_ANSWERS:
        raise Unreadable(f"it contains {MOST_ANSWERS} or more verdicts; write exactly one")
    return found


def _read(source: str, start: int, form: ReplyFormat) -> PossibleAnswer | None:
    try:
        value = load(source)
    except NotJson as error:
        return PossibleAnswer(source, start, {}, str(error))
    return PossibleAnswer(source, start, value) if has_answer_keys(value, form) else None


def has_answer_keys(value: Mapping[Any, Any], form: ReplyFormat) -> bool:
    """Whether an object has the keys of an answer."""
    return form.entries in value or (form.verdict in value and form.entry not in value)


def own_answers(
    found: Iterable[PossibleAnswer], material: Material, form: ReplyFormat, *, alone: bool
) -> list[PossibleAnswer]:
    """Returns the answers that are not quoted; raises `Unreadable` if one cannot be read."""
    own = [each for each in found if not material.quotes(_claim(each, form, alone))]
    for each in own:
        if each.problem:
            raise Unreadable(f"the JSON object cannot be read: {each.problem}")
    return own


def sole_answer(own: Sequence[PossibleAnswer]) -> PossibleAnswer:
    """Returns the first of several identical answers; raises `Unreadable` if two differ."""
    if len(own) == 1:
        return own[0]
    # A reviewer may repeat its answer, as in a summary. Two answers that differ are another matter:
    # nobody can tell which one counts.
    contents = {json.dumps(each.value, sort_keys=True, default=str) for each in own}
    if len(contents) > 1:
        raise Unreadable(
            f"it contains {len(contents)} answers that differ; write exactly one JSON object"
        )
    return own[0]


def is_alone(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a text has nothing but its objects and the code fences around them."""
    rest, position = [], 0
    for start, end in spans:
        rest.append(text[position:start])
        position = end
    return not _FENCE.sub("", "".join([*rest, text[position:]])).strip()


def _claim(answer: PossibleAnswer, form: ReplyFormat, alone: bool) -> Claim:
    verdict = answer.value.get(form.verdict)
    return Claim(
        source=answer.source,
        verdict=(form.verdict, str(verdict)) if isinstance(verdict, str | bool) else None,
        texts=tuple(_texts(answer.value, form)),
        alone=alone,
    )


def _texts(value: Mapping[Any, Any], form: ReplyFormat) -> Iterator[str]:
    for name, keys in form.texts.items():
        holders = value.get(name) if name else [value]
        for holder in holders if isinstance(holders, list) else []:
            texts = (holder.get(key) for key in keys) if isinstance(holder, Mapping) else ()
            yield from (text for text in texts if isinstance(text, str))
