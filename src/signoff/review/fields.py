"""Reads fields of an agent's reply by type; a value of the wrong type is never converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.agents.answer import replace_lone_surrogates
from signoff.errors import AgentBadOutput

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
