"""Summarizes a pair for `show` and for the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.pair.turns import turn_lines


@dataclass(frozen=True)
class PairReport:
    """What a pair reports beyond its steps and its cost."""

    summary: str = ""
    details: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> PairReport:
    """Returns the report on a pair from the state of its run."""
    turns = list(state.get("turns", ()))
    final = state.get("final")
    names = ("task", "preset", "model_name", "max_turns", "final_turn")
    facts = {
        "turns": turns,
        "final": final,
        **{name: state[name] for name in names if name in state},
    }
    summary = f"{state.get('preset', 'text')}: {final}" if final else ""
    return PairReport(summary, "\n".join(_lines(turns, state)), {"pair": facts})


def _lines(turns: list[Mapping[str, Any]], state: Mapping[str, Any]) -> Iterator[str]:
    for turn in turns:
        first, *rest = turn_lines(turn, state["max_turns"])
        yield first
        yield from (f"  {line}" for line in rest)
