"""Which models are relatives: a critic that shares the author's family shares its blind spots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from signoff.runtime.ports import Capabilities

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


@dataclass(frozen=True)
class ModelUse:
    """An agent and the model it is asked for."""

    kind: str
    model: str | None
    capabilities: Capabilities = field(compare=False)

    @property
    def family(self) -> str | None:
        """The model's family; None where it is not known."""
        own = self.capabilities
        if own.own_models_only or not self.model:
            return own.model_family
        return _of_model(self.model)

    @property
    def no_model(self) -> bool:
        """Whether a human or a program answers: neither shares a model's blind spots."""
        return self.capabilities.answered_by_human or self.capabilities.deterministic


def find_relatives(author: ModelUse, critics: Mapping[str, ModelUse]) -> Relatives:
    """Returns which critics are of the author's family."""
    own = author.family
    if author.no_model:
        return Relatives(None)
    models = {name: each for name, each in critics.items() if not each.no_model}
    same = tuple(n for n, each in models.items() if each == author or (own and each.family == own))
    unclear = (n for n, each in models.items() if each.family is None or own is None)
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
