"""What an artifact must satisfy. Its author sees the summaries, critics see every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from signoff.review.behaviors import ConstraintBehavior
from signoff.review.severity import Severity

DEFAULT_PRIORITY = 10


@dataclass(frozen=True)
class Rule:
    """One thing a critic looks for."""

    id: str
    text: str
    default_severity: Severity = Severity.HIGH
    violation: str = ""
    """An example that violates the rule."""
    compliant: str = ""
    """An example that complies with it."""


@dataclass(frozen=True)
class SourceBlock:
    """Material to work from: files, globs, programs that print it, or the text itself."""

    files: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    inline: str = ""

    def __bool__(self) -> bool:
        """Whether it names any material."""
        return bool(self.files or self.globs or self.scripts or self.inline)


@dataclass(frozen=True)
class Constraint:
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

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is written in its file, without empty values."""
        full: dict[str, Any] = {
            "id": self.id,
            "priority": self.priority,
            "summary": self.summary,
            "rules": [_rule_to_json(rule) for rule in self.rules],
            "agents": list(self.agents) if self.agents is not None else None,
            "behavior": self.behavior.to_json() if self.behavior else None,
            "script": self.script,
            "source": source_to_json(self.source),
        }
        return {key: value for key, value in full.items() if value not in (None, "", [], {})}


def source_to_json(source: SourceBlock) -> dict[str, Any]:
    """Returns a source block as it is written in files, without empty values."""
    values = {
        "files": list(source.files),
        "globs": list(source.globs),
        "scripts": list(source.scripts),
        "inline": source.inline,
    }
    return {key: value for key, value in values.items() if value}


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    examples = {"violation": rule.violation, "compliant": rule.compliant}
    present = {key: value for key, value in examples.items() if value}
    return {
        "id": rule.id,
        "text": rule.text,
        "default_severity": rule.default_severity.value,
        **({"examples": present} if present else {}),
    }


def compress_constraints(constraints: Sequence[Constraint]) -> str:
    """Returns the constraints for the author of an artifact: every summary, no rules."""
    if not constraints:
        return ""
    parts = [
        f"## {c.id.upper()} (Priority {c.priority})\n\n{c.summary.strip()}".rstrip()
        for c in sorted(constraints, key=lambda c: c.priority)
    ]
    return "# Constraints\n\n" + "\n\n".join(parts) + "\n"
