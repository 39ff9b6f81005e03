"""Measures how easy a text is to read; the same text always measures the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_END = re.compile(r"[.!?]+(?=\s|$)")
_VOWELS = re.compile(r"[aeiouy]+", re.IGNORECASE)


@dataclass(frozen=True)
class Measures:
    """What was counted in a text."""

    words: int
    sentences: int
    ease: float
    """Flesch's reading ease: higher is easier, 60 to 70 is plain English."""

    def to_json(self) -> dict[str, float]:
        """Returns it as plain values."""
        return asdict(self)


def measure(text: str) -> Measures:
    """Measures one text."""
    words = _WORD.findall(text)
    sentences = max(1, len(_END.findall(text)))
    if not words:
        return Measures(0, 0, 0.0)
    syllables = sum(max(1, len(_VOWELS.findall(word))) for word in words)
    ease = 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)
    return Measures(len(words), sentences, round(ease, 1))


def overall(texts: Iterable[str]) -> Measures:
    """Measures several texts as one."""
    return measure("\n\n".join(texts))
