"""Summarizes a session for `show` and for the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SessionReport:
    """What a session reports beyond its steps and its cost."""

    summary: str = ""
    details: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> SessionReport:
    """Returns the report on a session from its state."""
    artifacts = list(state.get("artifacts", ()))
    lines = []
    if verdict := state.get("verdict"):
        lines.append(f"last review: {verdict}")
    lines += map(describe_override, state.get("overrides", ()))
    latest = max((each["iteration"] for each in artifacts), default=0)
    files = [each["path"] for each in artifacts if each["iteration"] == latest]
    details = [f"generated files: {len(files)}", *(f"  {path}" for path in files)] if files else []
    facts = {
        "verdict": state.get("verdict"),
        "overrides": state.get("overrides"),
        "artifacts": artifacts,
    }
    return SessionReport(
        "\n".join(lines),
        "\n".join(details),
        {name: value for name, value in facts.items() if value},
    )


def describe_override(override: Mapping[str, Any]) -> str:
    """Returns who overruled which verdict, on one line."""
    stated = override.get("verdict") or "neither PASS nor FAIL"
    return (
        f"round {override['round']}: {override.get('by') or 'a human'} decided "
        f"{override['decided']} (the review says {stated})"
    )
