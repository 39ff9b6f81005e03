"""A literal change to a text, exact enough for a machine to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class EditKind(StrEnum):
    """What is done with the text that is found."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit:
    """One change; `find` must stand in the artifact exactly once for it to be made."""

    kind: EditKind
    find: str
    text: str = ""
    """What takes its place, or is put after it; nothing for a deletion."""
    issue: str = ""
    """The id of the finding it answers."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {"kind": self.kind.value, "find": self.find, "text": self.text, "issue": self.issue}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Edit:
        """Reads what `to_json` wrote, or what a check states; raises ValueError, KeyError."""
        kind = EditKind(str(raw.get("kind", EditKind.REPLACE)))
        return cls(kind, str(raw["find"]), str(raw.get("text", "")), str(raw.get("issue", "")))
