"""Stop rules beside the iteration limit: what tells that more rounds will not help.

Every rule looks only at what is recorded, so the same run is always stopped at the same
round for the same reason, and the reason names the numbers and findings it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.severity import Severity

MOST_NAMED = 5
"""Findings an explanation names before it only counts them."""


class StopRules(Protocol):
    """How many rounds in a row each rule takes (oscillation: returns of one finding)."""

    @property
    def plateau(self) -> int | None: ...
    @property
    def oscillation(self) -> int | None: ...
    @property
    def thrashing(self) -> int | None: ...
    @property
    def only_new(self) -> int | None: ...


@dataclass(frozen=True)
class Stop:
    """A reason not to go on."""

    rule: str
    evidence: str


def find_stop_reason(
    rounds: Sequence[Mapping[str, Any]],
    ledger: Ledger,
    pursued_by_round: Sequence[Sequence[str]],
    config: StopRules,
) -> Stop | None:
    """Returns why a run does not converge, or None; the rule that says most comes first."""
    if not ledger.open():
        return None
    found = (
        _oscillation(ledger, config.oscillation),
        _thrashing(ledger, pursued_by_round, config.thrashing),
        _only_new(rounds, config.only_new),
        _plateau(rounds, ledger, config.plateau),
    )
    return next((stop for stop in found if stop is not None), None)


def pursued_in_a_row(pursued_by_round: Sequence[Sequence[str]], threshold: int) -> list[str]:
    """Returns what was pursued again `threshold` times in a row, in the latest order."""
    window = pursued_by_round[-(threshold + 1) :]
    if len(window) < threshold + 1:
        return []
    always = set(window[0]).intersection(*window)
    return [each for each in dict.fromkeys(window[-1]) if each in always]


def weight(counted: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns what orders rounds from good to bad: the open findings, the worst first."""
    return tuple(int(counted["open"].get(severity.value, 0)) for severity in Severity)


def _oscillation(ledger: Ledger, returns: int | None) -> Stop | None:
    if returns is None:
        return None
    back = [each for each in ledger.open() if each.returns >= returns]
    if not back:
        return None
    return Stop("oscillation", f"fixed and back again: {_listed(back)}")


def _thrashing(
    ledger: Ledger, pursued_by_round: Sequence[Sequence[str]], rounds: int | None
) -> Stop | None:
    if rounds is None:
        return None
    named = set(pursued_in_a_row(pursued_by_round, rounds - 1))
    stuck = [each for each in ledger.open() if each.id in named]
    if not stuck:
        return None
    return Stop("thrashing", f"pursued {rounds} times in a row, in vain: {_listed(stuck)}")


def _only_new(rounds: Sequence[Mapping[str, Any]], wanted: int | None) -> Stop | None:
    """Everything asked for was mended, and each time as much else was found; not so at first."""
    latest = rounds[1:][-wanted:] if wanted is not None else []
    if wanted is None or len(latest) < wanted or not all(map(_all_new, latest)):
        return None
    counted = ", ".join(f"{sum(weight(each))} in round {each['iteration']}" for each in latest)
    return Stop("only_new", f"only findings that had not been there before: {counted}")


def _all_new(counted: Mapping[str, Any]) -> bool:
    return 0 < sum(weight(counted)) == int(counted["new"] + counted["introduced"])


def _plateau(
    rounds: Sequence[Mapping[str, Any]], ledger: Ledger, wanted: int | None
) -> Stop | None:
    if wanted is None or len(rounds) <= wanted:
        return None
    best = min(rounds[:-wanted], key=weight)
    latest = rounds[-wanted:]
    if any(weight(each) < weight(best) for each in latest):
        return None
    story = ", ".join(f"round {each['iteration']}: {_counted(each)}" for each in (best, *latest))
    return Stop("plateau", f"no better than before ({story}); open: {_listed(ledger.open())}")


def _counted(counted: Mapping[str, Any]) -> str:
    said = [f"{n} {s.value}" for s, n in zip(Severity, weight(counted), strict=True) if n]
    return " ".join(said) or "none"


def _listed(findings: Sequence[Finding]) -> str:
    said = [_told(each) for each in findings[:MOST_NAMED]]
    rest = len(findings) - len(said)
    return ", ".join([*said, f"and {rest} more"] if rest else said)


def _told(each: Finding) -> str:
    rounds = "round" if each.first == each.last else "rounds"
    since = str(each.first) if each.first == each.last else f"{each.first}-{each.last}"
    back = f", back {each.returns} times" if each.returns > 1 else ", back once"
    tail = back if each.returns else ""
    return f"{each.id} ({each.severity.value} {each.constraint}, {rounds} {since}{tail})"
