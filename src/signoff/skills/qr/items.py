"""The items of a quality review: what is checked, how much it matters, and what was found.

Models write these items, so words are read leniently and in the safe direction: an unknown
severity still blocks at first, and an unknown status is nothing that has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from signoff.core.severity import WORST
from signoff.core.severity import Severity as IssueSeverity


class Severity(StrEnum):
    """How much an item matters, the worst first."""

    MUST = "MUST"
    """Knowledge would be lost, or the damage could not be undone."""
    SHOULD = "SHOULD"
    """The work would be harder to maintain."""
    COULD = "COULD"
    """A tool or the next reader would fix it in passing."""

    @classmethod
    def read(cls, word: object) -> Severity:
        """Returns the severity that a word means; `SHOULD` if it is unknown."""
        text = str(word).strip()
        if text.upper() in cls.__members__:
            return cls[text.upper()]
        worst = IssueSeverity.named(text) is WORST or text.lower() in _OTHER_WORDS_FOR_MUST
        return cls.MUST if worst else cls.SHOULD


_OTHER_WORDS_FOR_MUST = frozenset({"blocking", "fatal", "mandatory", "required"})
"""Besides those for the worst severity of a review. No word lowers a severity: a guess could let
a failure pass."""


class ItemStatus(StrEnum):
    """What is known about an item."""

    TODO = "TODO"
    PASS = "PASS"  # noqa: S105  # not a password
    FAIL = "FAIL"

    @classmethod
    def read(cls, word: object) -> ItemStatus:
        """Returns the status that a word names, in any case; `TODO` if it is unknown."""
        return cls.__members__.get(str(word).strip().upper(), cls.TODO)


@dataclass(frozen=True)
class QRItem:
    """One thing to check."""

    id: str
    check: str = ""
    """What has to be true."""
    scope: str = "*"
    """Where to look; `*` is everywhere."""
    status: ItemStatus = ItemStatus.TODO
    version: int = 1
    finding: str | None = None
    """What is wrong, if it failed."""
    parent_id: str | None = None
    """The item it was split off from."""
    group_id: str | None = None
    """Items of one group are verified by the same reviewer."""
    severity: Severity = Severity.SHOULD

    def __post_init__(self) -> None:
        """Reads the words for status and severity, whoever wrote them."""
        object.__setattr__(self, "status", ItemStatus.read(self.status))
        object.__setattr__(self, "severity", Severity.read(self.severity))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QRItem:
        """Returns an item from the entries of a file; what is missing or unknown has its default.

        A file that could not hold such an item is refused before: see `record_file`.
        """
        version = value.get("version")
        return cls(
            id=str(value.get("id", "")),
            check=_text(value.get("check")) or "",
            scope=_text(value.get("scope")) or "*",
            status=value.get("status", ItemStatus.TODO),
            version=version if isinstance(version, int) else 1,
            finding=_text(value.get("finding")),
            parent_id=_text(value.get("parent_id")),
            group_id=_text(value.get("group_id")),
            severity=value.get("severity", Severity.SHOULD),
        )

    @property
    def group(self) -> str:
        """The group it is verified in; an item without one is a group of its own."""
        return self.group_id or self.id


def _text(value: object) -> str | None:
    return str(value) if value is not None and value != "" else None
