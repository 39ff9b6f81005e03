"""What an artifact must satisfy. Its author sees the summaries, critics see every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from signoff.documents.globs import matches
from signoff.review.behaviors import ConstraintBehavior
from signoff.review.record import Record
from signoff.review.severity import DEFAULT_SEVERITY, Severity

DEFAULT_PRIORITY = 10


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
