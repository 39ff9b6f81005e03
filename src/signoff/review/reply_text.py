"""Finds the object that is a reviewer's answer in a text reply.

The object is chosen by its keys, so prose and other objects around it do not matter. Objects that
are quoted from the material do not count; two answers that differ are an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from signoff.agents.answer import replace_lone_surrogates
from signoff.documents.lenient_json import NotJson, find_objects, load
from signoff.errors import AgentBadOutput
from signoff.review.own_words import Claim, Material

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
        "decisions": ("rationale", "guidance", "adjudication"),
        "tension_analysis": ("current_position", "target", "guidance"),
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
