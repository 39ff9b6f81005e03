"""Summarizes a session for `show` and for the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import RunReport


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> RunReport:
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
    return RunReport(
        "\n".join(lines),
        "\n".join(details),
        lambda: {name: value for name, value in facts.items() if value},
    )


def describe_override(override: Mapping[str, Any]) -> str:
    """Returns who overruled which verdict, on one line."""
    stated = override.get("verdict") or "neither PASS nor FAIL"
    return (
        f"round {override['round']}: {override.get('by') or 'a human'} decided "
        f"{override['decided']} (the review says {stated})"
    )
