"""Decides what happens when a critic reports an issue of some severity.

Four levels can decide, the strongest first: the constraint's own file, the flow's entry for
that constraint, the flow's default, the built-in default. Each severity is looked up
separately, so a level that names only one severity leaves the others to the levels below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from signoff.core.severity import IssueBehavior, Severity
from signoff.review.record import Record

__all__ = [
    "BUILT_IN",
    "ConstraintBehavior",
    "IssueBehavior",
    "Level",
    "ResolvedBehavior",
    "resolve_behavior",
]


@dataclass(frozen=True)
class ConstraintBehavior(Record):
    """The behaviors that one level sets; severities it does not name are absent."""

    by_severity: Mapping[Severity, IssueBehavior] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, str]) -> ConstraintBehavior:
        """Reads a mapping such as `{critical: halt}`; raises ValueError for unknown names."""
        return cls(
            {
                Severity(str(severity).strip().upper()): IssueBehavior(str(name).strip().lower())
                for severity, name in raw.items()
            }
        )

    def get(self, severity: Severity) -> IssueBehavior | None:
        """Returns the behavior for a severity; None if this level does not set it."""
        return self.by_severity.get(severity)

    def to_json(self) -> dict[str, str]:
        """Returns the mapping as it is written in files."""
        return {s.key: behavior.value for s, behavior in self.by_severity.items()}


class Level(StrEnum):
    """Where a behavior was set, the strongest first."""

    CONSTRAINT = "the constraint's own file"
    FLOW = "constraint_behaviors of the flow"
    DEFAULT = "default_behavior of the flow"
    BUILT_IN = "the built-in default"


BUILT_IN = ConstraintBehavior({each: each.defaults.behavior for each in Severity})


@dataclass(frozen=True)
class ResolvedBehavior:
    """A behavior, and the level that set it."""

    behavior: IssueBehavior
    level: Level
    by_level: tuple[tuple[Level, IssueBehavior | None], ...]
    """The behavior that each level sets, the strongest first; None if it sets none."""


def resolve_behavior(
    severity: Severity,
    own: ConstraintBehavior | None = None,
    of_flow: ConstraintBehavior | None = None,
    default: ConstraintBehavior | None = None,
) -> ResolvedBehavior:
    """Returns the behavior of issues with a severity, and the level that set it."""
    unset = ConstraintBehavior()
    levels = (
        (Level.CONSTRAINT, own or unset),
        (Level.FLOW, of_flow or unset),
        (Level.DEFAULT, default or unset),
        (Level.BUILT_IN, BUILT_IN),
    )
    by_level = tuple((level, behaviors.get(severity)) for level, behaviors in levels)
    level, behavior = next((lv, b) for lv, b in by_level if b is not None)
    return ResolvedBehavior(behavior, level, by_level)
