"""Tells a reviewer's own verdict from one that it quotes.

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
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from signoff.review.adjudication import Verdict
from signoff.review.critique import Overall
from signoff.review.typography import limit_marks

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
        total = sum(map(hash, source.split(" ")))
        return any(total in text.verdicts.sums for text in self._read)

    def contains(self, text: str) -> bool:
        """Whether the words of a text occur in the material one after the other."""
        return self._has(_words(text))

    @cached_property
    def _read(self) -> list[_MaterialText]:
        return list(map(_read, self._texts))

    def _has(self, words: str) -> bool:
        return any(text.has(words) for text in self._read)

    def _copied(self, text: str) -> bool:
        verdicts = [each.verdicts for each in self._read]
        parts = filter(None, map(_words, _ELLIPSIS.split(text)))
        # Whole words only: "ok" is not copied from "broken".
        if all(any(f" {part} " in each.text for each in verdicts) for part in parts):
            return True
        runs = list(_runs(_words(text)))
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
_read = lru_cache(maxsize=4)(_MaterialText)


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
