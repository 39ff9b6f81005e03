"""What happens when an issue of some severity is found, and which level decides it.

Four levels, the strongest first: the constraint's own file, the flow's entry for that
constraint, the flow's default, the built-in one. Each is asked per severity, so a level
that names only one severity leaves the others to the levels below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from signoff.review.severity import Severity


class IssueBehavior(StrEnum):
    """What an issue does to the review it was found in."""

    HALT = "halt"
    """Ends the critique step; what was found goes to the judge."""
    CONTINUE = "continue"
    """Is kept for the judge; the review goes on."""
    ESCALATE = "escalate"
    """Goes to a person before anything else happens."""
    IGNORE = "ignore"
    """Is logged and kept from the judge."""


@dataclass(frozen=True)
class ConstraintBehavior:
    """Behaviours by severity, as one level states them; severities it does not name are absent."""

    by_severity: Mapping[Severity, IssueBehavior] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, str]) -> ConstraintBehavior:
        """Reads `{critical: halt}` in any case; raises ValueError for a name that is none."""
        return cls(
            {
                Severity(str(severity).strip().upper()): IssueBehavior(str(said).strip().lower())
                for severity, said in raw.items()
            }
        )

    def get(self, severity: Severity) -> IssueBehavior | None:
        """Returns what this level says about a severity, or None."""
        return self.by_severity.get(severity)

    def to_json(self) -> dict[str, str]:
        """Returns the level as it is written in files."""
        return {severity.value.lower(): said.value for severity, said in self.by_severity.items()}


class Level(StrEnum):
    """Who decided a behaviour, the strongest first."""

    CONSTRAINT = "the constraint's own file"
    FLOW = "constraint_behaviors of the flow"
    DEFAULT = "default_behavior of the flow"
    BUILT_IN = "the built-in default"


BUILT_IN = ConstraintBehavior(
    {
        Severity.CRITICAL: IssueBehavior.HALT,
        Severity.HIGH: IssueBehavior.HALT,
        Severity.MEDIUM: IssueBehavior.CONTINUE,
        Severity.LOW: IssueBehavior.IGNORE,
    }
)


@dataclass(frozen=True)
class ResolvedBehavior:
    """A behaviour, and the level that decided it."""

    behavior: IssueBehavior
    level: Level
    by_level: tuple[tuple[Level, IssueBehavior | None], ...]
    """What every level says, the strongest first; None where it says nothing."""


def resolve_behavior(
    severity: Severity,
    own: ConstraintBehavior | None = None,
    of_flow: ConstraintBehavior | None = None,
    default: ConstraintBehavior | None = None,
) -> ResolvedBehavior:
    """Returns what an issue of a severity does, and who says so."""
    silent = ConstraintBehavior()
    levels = (
        (Level.CONSTRAINT, own or silent),
        (Level.FLOW, of_flow or silent),
        (Level.DEFAULT, default or silent),
        (Level.BUILT_IN, BUILT_IN),
    )
    by_level = tuple((level, said.get(severity)) for level, said in levels)
    level, behavior = next((lv, b) for lv, b in by_level if b is not None)
    return ResolvedBehavior(behavior, level, by_level)
