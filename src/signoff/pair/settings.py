"""The settings of one pair, as its run records them in its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from signoff.pair.checks import TextCheck, parse_check
from signoff.pair.presets import PRESETS, PairPreset

SETTINGS = "settings"
"""The parameter of a run with everything that its pair goes by, complete and checked."""
SEATS = "seats"
"""The writer and the reviewers among them."""
WRITER = "writer"


@dataclass(frozen=True)
class Seat:
    """The writer or a reviewer: which agent is asked, and how."""

    name: str
    agent: str
    model: str | None = None
    specialty: str = ""
    """What a reviewer looks at, if not at everything."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of each request: temperature, tokens, server."""
    timeout: float | None = None
    takes_schema: bool = False
    takes_seed: bool = False
    is_check: bool = False
    """Whether a program or a function computes the review from the bare text."""

    def to_json(self) -> dict[str, Any]:
        """Returns the seat as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class PairSettings:
    """Everything that a pair goes by."""

    task: str
    preset: PairPreset
    criteria: str
    verdict: str
    strict: bool
    max_turns: int
    candidates: int
    keep: str
    similarity: float
    checks: Sequence[TextCheck]
    writer: Seat
    reviewers: Sequence[Seat]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Returns the settings that a run was started with."""
        seats = data[SEATS]
        plain = ("task", "criteria", "verdict", "strict", "max_turns", "candidates", "keep")
        return cls(
            **{name: data[name] for name in plain},
            preset=PRESETS[data["preset"]],
            similarity=data["similarity"],
            checks=[parse_check(each) for each in data["checks"]],
            writer=Seat(**seats[WRITER]),
            reviewers=[Seat(**each) for each in seats["reviewers"]],
        )
