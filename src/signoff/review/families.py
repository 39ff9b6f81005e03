"""Which models are relatives: a critic that shares the author's family shares its blind spots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PERSON = "person"
RULES = "rules"
_NO_MODEL = frozenset({PERSON, RULES})
"""These have no blind spots of a model; two of a kind do not count as relatives."""

_OF_KIND = {
    "anthropic": "anthropic",
    "claude": "anthropic",
    "codex": "openai",
    "openai": "openai",
    "gemini": "google",
    "local": "smollm",
    "manual": PERSON,
    "check": RULES,
    "policy": RULES,
}
"""What an agent runs when nobody names a model."""

_OWN_MODELS_ONLY = frozenset({"anthropic", "claude", "gemini"})
"""Kinds that run nothing but their maker's models, whatever the name; others serve any."""

_OF_MODEL = {
    "anthropic": r"claude|opus|sonnet|haiku",
    "openai": r"gpt|chatgpt|codex|davinci|\bo[1-9]\b",
    "google": r"gemini|gemma|palm",
    "meta": r"(?<!o)llama|vicuna",
    "mistral": r"mistral|mixtral|(code|mini|magi|dev|pix)stral",
    "qwen": r"qwen|qwq",
    "deepseek": r"deepseek",
    "smollm": r"smollm",
    "microsoft": r"\bphi-?\d",
    "cohere": r"\bcommand-|\baya\b",
    "xai": r"grok",
    "moonshot": r"kimi|moonshot",
    "zhipu": r"\bglm",
    "ibm": r"granite",
    "nvidia": r"nemotron",
    "amazon": r"\bnova-|titan",
    "ai21": r"jamba",
    "tii": r"falcon",
    "minimax": r"minimax",
}


@dataclass(frozen=True)
class Relatives:
    """Whether the critics of a flow are independent of its author."""

    author: str | None
    """The author's family; None where nobody can tell."""
    same: tuple[str, ...] = ()
    """Critics of that family."""
    unknown: tuple[str, ...] = ()
    """Critics whose family, or whose author's, nobody can tell."""

    @property
    def independent(self) -> bool:
        """Tells whether no critic is, or may be, a relative."""
        return not self.same and not self.unknown

    def __str__(self) -> str:
        """Says in words what keeps the critics from being independent."""
        told = []
        if self.same:
            told.append(
                f"of the author's family {self.author or ''}".rstrip() + f": {_and(self.same)}"
            )
        if self.unknown:
            told.append(f"of a family nobody can tell: {_and(self.unknown)}")
        return "; ".join(told) or "no critic is of the author's family"


def family(kind: str, model: str | None) -> str | None:
    """Returns the family of the model an agent runs, `person`, `rules`, or None when unknown."""
    of_kind = _OF_KIND.get(kind)
    if of_kind in _NO_MODEL or kind in _OWN_MODELS_ONLY or not model:
        return of_kind
    return _of_model(model)


def shared(
    author: tuple[str, str | None], critics: Mapping[str, tuple[str, str | None]]
) -> Relatives:
    """Returns which critics are of the author's family; both are (kind, model)."""
    own = family(*author)
    if own in _NO_MODEL:
        return Relatives(own)
    of = {name: family(*each) for name, each in critics.items()}
    twins = {name for name, each in critics.items() if each == author}
    same = tuple(n for n, each in of.items() if n in twins or (each and each == own))
    unclear = (
        n for n, each in of.items() if each is None or (own is None and each not in _NO_MODEL)
    )
    return Relatives(own, same, tuple(n for n in unclear if n not in same))


def _of_model(model: str) -> str | None:
    """Returns the family a model's name begins with; the part after the provider says most."""
    plain = model.casefold()
    for part in (plain.rsplit("/", 1)[-1], plain):
        found = [(match.start(), name) for name, match in _matches(part)]
        if found:
            return min(found)[1]
    return None


def _matches(text: str) -> list[tuple[str, re.Match[str]]]:
    searched = ((name, re.search(pattern, text)) for name, pattern in _OF_MODEL.items())
    return [(name, match) for name, match in searched if match is not None]


def _and(names: tuple[str, ...]) -> str:
    return ", ".join(names)
