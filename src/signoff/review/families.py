"""Finds critics of the author's model family, because they share its blind spots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from signoff.runtime.ports import Capabilities

_NAME_PATTERNS = {
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
    """The author's model family; None if unknown."""
    same: tuple[str, ...] = ()
    """Critics of the same family."""
    unknown: tuple[str, ...] = ()
    """Critics that cannot be compared: their family or the author's is unknown."""

    @property
    def independent(self) -> bool:
        """Whether no critic is, or may be, of the author's family."""
        return not self.same and not self.unknown

    def __str__(self) -> str:
        """Describes why the critics are not independent."""
        reasons = []
        if self.same:
            family = f" {self.author}" if self.author else ""
            reasons.append(f"of the author's family{family}: {', '.join(self.same)}")
        if self.unknown:
            reasons.append(f"of an unknown family: {', '.join(self.unknown)}")
        return "; ".join(reasons) or "no critic is of the author's family"


@dataclass(frozen=True)
class ModelUse:
    """An agent and the model it uses."""

    agent: str
    """The agent's name."""
    kind: str
    model: str | None
    capabilities: Capabilities

    def is_same(self, other: ModelUse) -> bool:
        """Whether both are certainly one model, even if its family is unknown.

        Two agents of a kind that names no model, such as two programs, may be anything.
        """
        if self.model is None:
            return (self.agent, other.model) == (other.agent, None)
        return (self.kind, self.model) == (other.kind, other.model)

    @property
    def family(self) -> str | None:
        """The model's family; None if unknown."""
        if self.capabilities.own_models_only or not self.model:
            return self.capabilities.model_family
        return _family_of_model(self.model)

    @property
    def no_model(self) -> bool:
        """Whether a human or a program answers: neither shares a model's blind spots."""
        return self.capabilities.answered_by_human or self.capabilities.deterministic


def find_relatives(author: ModelUse, critics: Mapping[str, ModelUse]) -> Relatives:
    """Returns which critics are of the author's family."""
    family = author.family
    if author.no_model:
        return Relatives(None)
    models = {name: critic for name, critic in critics.items() if not critic.no_model}
    same = tuple(
        name
        for name, critic in models.items()
        if critic.is_same(author) or (family and critic.family == family)
    )
    unknown = (name for name, c in models.items() if c.family is None or family is None)
    return Relatives(family, same, tuple(name for name in unknown if name not in same))


def _family_of_model(model: str) -> str | None:
    """Returns the family whose pattern matches first in a model's name.

    The part after the provider counts more: `openai/gemma-3` is a google model.
    """
    name = model.casefold()
    for part in (name.rsplit("/", 1)[-1], name):
        matches = [(match.start(), family) for family, match in _matches(part)]
        if matches:
            return min(matches)[1]
    return None


def _matches(text: str) -> list[tuple[str, re.Match[str]]]:
    searches = ((name, re.search(pattern, text)) for name, pattern in _NAME_PATTERNS.items())
    return [(name, match) for name, match in searches if match is not None]
