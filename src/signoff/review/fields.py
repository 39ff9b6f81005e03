"""Fields of something an agent wrote, read by type: what has the wrong one is never stretched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.agents.answer import whole_characters
from signoff.errors import AgentBadOutput

LONGEST = 10_000
"""Characters kept of a text nobody needs whole; a longer quote is checked by its beginning."""


class Unreadable(AgentBadOutput):
    """A reply cannot be taken for an answer; the message says why in words its author can use."""


@dataclass(frozen=True)
class Fields:
    """A mapping from an agent, and where it stands in the reply."""

    raw: Mapping[Any, Any]
    place: str

    def text(self, name: str, most: int = LONGEST) -> str:
        """Returns a text, "" where there is none; a number is one too."""
        value = self.raw.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._wrong(name, "a text")
        whole = clean(str(value)).strip()
        return whole if len(whole) <= most else whole[:most] + "…"

    def texts(self, name: str) -> list[str]:
        """Returns a list of texts; one text alone is a list of it."""
        value = self.raw.get(name) or []
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise self._wrong(name, "a list of texts")
        return [clean(each)[:200] for each in listed[:100]]

    def items(self, name: str) -> list[Mapping[Any, Any]]:
        """Returns a list of mappings, empty where there is none."""
        value = self.raw.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
            raise self._wrong(name, "a list of objects")
        return value

    def _wrong(self, name: str, wanted: str) -> Unreadable:
        return Unreadable(f"`{name}` of {self.place} must be {wanted}")


def clean(text: str) -> str:
    """Returns a text every file and database can hold."""
    return whole_characters(text).replace("\0", "\ufffd")
