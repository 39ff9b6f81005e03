"""Checks that work beside the reviewers, or without one: pure functions of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

TextCheck: TypeAlias = Callable[[str], str]
"""Returns what is wrong with a text; empty if nothing."""


def parse_check(rule: str) -> TextCheck:
    """Returns the check that a rule such as `words=8` names; raises `ValueError` for any other."""
    name, separator, value = (part.strip() for part in rule.partition("="))
    if name not in _KINDS or not separator or not value:
        valid = ", ".join(f"{kind}={example}" for kind, (_, example) in _KINDS.items())
        raise ValueError(f"{rule!r} is not a check (valid: {valid})")
    make, _ = _KINDS[name]
    return make(value)


def _at_most(noun: str, count: Callable[[str], int]) -> Callable[[str], TextCheck]:
    def make(value: str) -> TextCheck:
        if not value.isascii() or not value.isdigit() or int(value) < 1:
            raise ValueError(f"{noun}s={value}: must be a whole number from 1")
        most = int(value)

        def problem(text: str) -> str:
            number = count(text)
            plural = "" if most == 1 else "s"
            return f"It has {number} {noun}s; use at most {most} {noun}{plural}." * (number > most)

        return problem

    return make


def _contains(value: str) -> TextCheck:
    found = _finder(value)
    return lambda text: "" if found(text) else f'It does not contain "{value}"; add it.'


def _avoids(value: str) -> TextCheck:
    found = _finder(value)
    return lambda text: f'It contains "{value}"; leave it out.' if found(text) else ""


def _finder(value: str) -> Callable[[str], bool]:
    """Returns a search for whole words, in any case and with any blanks between them."""
    # Whole words only: a slogan with "waterproof" does not contain "water".
    words = r"\s+".join(map(re.escape, value.casefold().split()))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)")
    return lambda text: pattern.search(text.casefold()) is not None


_KINDS: Mapping[str, tuple[Callable[[str], TextCheck], str]] = {
    "words": (_at_most("word", lambda text: len(text.split())), "8"),
    "characters": (_at_most("character", len), "60"),
    "lines": (_at_most("line", lambda text: len(text.splitlines())), "1"),
    "contains": (_contains, "water"),
    "avoids": (_avoids, "amazing"),
}
