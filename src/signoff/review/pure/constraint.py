"""What an artifact must satisfy, and what happens when a critic reports an issue about it.

The author of an artifact sees the summaries of its constraints, critics see every rule. Four levels
decide what an issue of some severity does, the strongest first: the constraint's own file, the
flow's entry for that constraint, the flow's default, the built-in default. Each severity is looked
up separately, so a level that names only one severity leaves the others to the levels below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from signoff.core.severity import DEFAULT_SEVERITY, IssueBehavior, Severity
from signoff.documents.globs import matches
from signoff.review.pure.record import Record


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
    # All levels are returned and not just the winner: `policy explain` shows what each one says.
    by_level = tuple((level, behaviors.get(severity)) for level, behaviors in levels)
    level, behavior = next((lv, b) for lv, b in by_level if b is not None)
    return ResolvedBehavior(behavior, level, by_level)


DEFAULT_PRIORITY = 10
SEPARATOR = "/"
"""Between a constraint and its rule, as in `tone/no-shouting`."""


@dataclass(frozen=True)
class Rule(Record):
    """One thing a critic looks for."""

    id: str
    text: str
    default_severity: Severity = DEFAULT_SEVERITY
    violation: str = ""
    """An example that violates the rule."""
    compliant: str = ""
    """An example that complies with it."""

    omit_empty: ClassVar = frozenset({"violation", "compliant"})

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is written in its file, with the examples in a mapping."""
        values = super().to_json()
        examples = {name: values.pop(name) for name in ("violation", "compliant") if name in values}
        return {**values, "examples": examples} if examples else values


@dataclass(frozen=True)
class SourceBlock(Record):
    """Material to work from: files, globs, programs that print it, or the text itself."""

    files: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    inline: str = ""

    omit_empty: ClassVar = frozenset({"files", "globs", "scripts", "inline"})

    def __bool__(self) -> bool:
        """Whether it names any material."""
        return bool(self.files or self.globs or self.scripts or self.inline)


@dataclass(frozen=True)
class Constraint(Record):
    """One requirement, with its rules."""

    id: str
    priority: int = DEFAULT_PRIORITY
    """1 is the most important; lists are sorted by it."""
    summary: str = ""
    rules: tuple[Rule, ...] = ()
    agents: tuple[str, ...] | None = None
    """The agents that review it; None leaves the choice to the routing."""
    behavior: ConstraintBehavior | None = None
    script: str = ""
    """A program that reads the artifact from stdin; critics get its output."""
    source: SourceBlock = SourceBlock()
    """Material that critics compare the artifact with."""
    paths: tuple[str, ...] = ()
    """The files it applies to, as patterns of a `.gitignore`; empty for all."""

    omit_empty: ClassVar = frozenset(
        {"summary", "rules", "agents", "behavior", "script", "source", "paths"}
    )

    def applies_to(self, path: str) -> bool:
        """Whether a file is reviewed against it; a text without a name always is."""
        return not (path and self.paths) or matches(self.paths, path)


def compress_constraints(constraints: Sequence[Constraint]) -> str:
    """Returns the constraints for the author of an artifact: every summary, no rules."""
    if not constraints:
        return ""
    parts = [
        f"## {c.id} (priority {c.priority})\n\n{c.summary.strip()}".rstrip()
        for c in sorted(constraints, key=lambda c: c.priority)
    ]
    return "# Constraints\n\n" + "\n\n".join(parts) + "\n"
