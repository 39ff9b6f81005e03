"""Stop rules in addition to the round limit: they detect that more rounds will not help.

The rules look only at recorded data, so a replayed run stops in the same round for the same
reason. The reason names the numbers and findings that it is based on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signoff.core.words import Label
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.severity import Severity

MOST_LISTED = 5
"""Findings that an explanation lists; the rest are only counted."""


class StopRules(Protocol):
    """After how many rounds each rule stops a run (oscillation: returns of one finding)."""

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
    """A reason to stop a run."""

    rule: str
    evidence: str


def find_stop_reason(
    rounds: Sequence[Mapping[str, Any]],
    ledger: Ledger,
    to_fix_by_round: Sequence[Sequence[str]],
    config: StopRules,
) -> Stop | None:
    """Returns why a run does not converge, or None; the most specific rule wins."""
    if not ledger.open():
        return None
    reasons = (
        _oscillation(ledger, config.oscillation),
        _thrashing(ledger, to_fix_by_round, config.thrashing),
        _only_new(rounds, config.only_new),
        _plateau(rounds, ledger, config.plateau),
    )
    return next((stop for stop in reasons if stop is not None), None)


def to_fix_in_a_row(to_fix_by_round: Sequence[Sequence[str]], threshold: int) -> list[str]:
    """Returns the findings that were pursued in each of the last `threshold + 1` rounds."""
    window = to_fix_by_round[-(threshold + 1) :]
    if len(window) < threshold + 1:
        return []
    always = set(window[0]).intersection(*window)
    return [finding_id for finding_id in dict.fromkeys(window[-1]) if finding_id in always]


def weight(summary: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns a sort key for rounds, best first: the open findings, most severe first."""
    return tuple(int(summary["open"].get(severity.value, 0)) for severity in Severity)


def _oscillation(ledger: Ledger, returns: int | None) -> Stop | None:
    if returns is None:
        return None
    returned = [finding for finding in ledger.open() if finding.returns >= returns]
    if not returned:
        return None
    return Stop("oscillation", f"fixed and back again: {_list_findings(returned)}")


def _thrashing(
    ledger: Ledger, to_fix_by_round: Sequence[Sequence[str]], rounds: int | None
) -> Stop | None:
    if rounds is None:
        return None
    ids = set(to_fix_in_a_row(to_fix_by_round, rounds - 1))
    stuck = [finding for finding in ledger.open() if finding.id in ids]
    if not stuck:
        return None
    evidence = f"sent to be fixed {rounds} times in a row and still open: {_list_findings(stuck)}"
    return Stop("thrashing", evidence)


def _only_new(rounds: Sequence[Mapping[str, Any]], length: int | None) -> Stop | None:
    """Stops if every fix was followed by new findings only, for `length` rounds in a row."""
    # In the first round every finding is new, so it does not count.
    latest = rounds[1:][-length:] if length is not None else []
    if length is None or len(latest) < length or not all(map(_all_new, latest)):
        return None
    counts = ", ".join(f"{sum(weight(each))} in round {each['round']}" for each in latest)
    return Stop("only_new", f"only new findings: {counts}")


def _all_new(summary: Mapping[str, Any]) -> bool:
    return 0 < sum(weight(summary)) == int(summary[Label.NEW] + summary[Label.CAUSED_BY_FIX])


def _plateau(
    rounds: Sequence[Mapping[str, Any]], ledger: Ledger, length: int | None
) -> Stop | None:
    if length is None or len(rounds) <= length:
        return None
    best = min(rounds[:-length], key=weight)
    latest = rounds[-length:]
    if any(weight(each) < weight(best) for each in latest):
        return None
    counts = ", ".join(f"round {s['round']}: {_format_counts(s)}" for s in (best, *latest))
    open_findings = _list_findings(ledger.open())
    return Stop("plateau", f"no better than before ({counts}); open: {open_findings}")


def _format_counts(summary: Mapping[str, Any]) -> str:
    counts = [f"{n} {s.value}" for s, n in zip(Severity, weight(summary), strict=True) if n]
    return " ".join(counts) or "none"


def _list_findings(findings: Sequence[Finding]) -> str:
    descriptions = [_describe(finding) for finding in findings[:MOST_LISTED]]
    rest = len(findings) - len(descriptions)
    return ", ".join([*descriptions, f"and {rest} more"] if rest else descriptions)


def _describe(finding: Finding) -> str:
    first, last, returns = finding.first, finding.last, finding.returns
    rounds = f"round {first}" if first == last else f"rounds {first}-{last}"
    back = f", back {returns} times" if returns > 1 else ", back once"
    tail = back if returns else ""
    return f"{finding.id} ({finding.severity.value} {finding.constraint}, {rounds}{tail})"
