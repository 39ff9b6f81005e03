"""A literal change to a text, exact enough to be applied without an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class EditKind(StrEnum):
    """What happens to the text that `find` names."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit:
    """One change; it is applied only if `find` occurs exactly once in the artifact."""

    kind: EditKind
    find: str
    text: str = ""
    """The replacement or the inserted text; empty for a deletion."""
    issue: str = ""
    """The id of the issue it fixes."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {"kind": self.kind.value, "find": self.find, "text": self.text, "issue": self.issue}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Edit:
        """Reads the output of `to_json` or of a check; raises ValueError or KeyError."""
        kind = EditKind(str(raw.get("kind", EditKind.REPLACE)))
        return cls(kind, str(raw["find"]), str(raw.get("text", "")), str(raw.get("issue", "")))
