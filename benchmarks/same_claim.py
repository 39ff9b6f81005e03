"""Measures how well `same_claim` tells whether two review comments name the same problem.

`python -m benchmarks.same_claim PAIRS.jsonl`: a pair per line, with `a`, `b`, `same` and the pull
request `pr`. Cross-validated means: for each pull request, the share is chosen on the others, as
the smallest one that confuses at most a tenth of their different pairs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.review.pure.similarity import SAME_CLAIM, claim_overlap, same_claim

MOST_CONFUSED = 0.10


@dataclass(frozen=True)
class Pair:
    """Two comments, and whether they are about the same problem."""

    group: str
    same: bool
    overlap: float
    recognized: bool


def main() -> int:
    """Prints the shares of equal pairs that are recognized and of different ones confused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_claim")
    parser.add_argument("pairs", type=Path, help="labeled pairs, one JSON object a line")
    pairs = read(parser.parse_args().pairs)
    print(f"{len(pairs)} pairs of {len({each.group for each in pairs})} pull requests")
    report(f"the rule ({SAME_CLAIM:g})", pairs, [each.recognized for each in pairs])
    report("cross-validated", pairs, cross_validated(pairs))
    return 0


def read(path: Path) -> list[Pair]:
    """Returns the pairs of a file, compared."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [
        Pair(
            row["pr"],
            row["same"],
            claim_overlap(row["a"], row["b"]),
            same_claim(row["a"], row["b"]),
        )
        for row in rows
    ]


def cross_validated(pairs: Sequence[Pair]) -> list[bool]:
    """Returns a decision for each pair, by a share that was chosen without its pull request."""
    shares = {
        group: chosen([each for each in pairs if each.group != group])
        for group in {each.group for each in pairs}
    }
    return [each.overlap >= shares[each.group] for each in pairs]


def chosen(pairs: Sequence[Pair]) -> float:
    """Returns the smallest share that confuses few different pairs."""
    different = [each.overlap for each in pairs if not each.same]
    most = MOST_CONFUSED * len(different)
    shares = sorted({each.overlap for each in pairs})
    return next(share for share in shares if sum(each >= share for each in different) <= most)


def report(title: str, pairs: Sequence[Pair], decided: Sequence[bool]) -> None:
    """Prints both shares of a list of decisions."""
    equal = [yes for each, yes in zip(pairs, decided, strict=True) if each.same]
    different = [yes for each, yes in zip(pairs, decided, strict=True) if not each.same]
    recognized, confused = sum(equal) / len(equal), sum(different) / len(different)
    print(f"{title}: {recognized:.3f} of the same recognized, {confused:.3f} of others confused")


if __name__ == "__main__":
    raise SystemExit(main())
