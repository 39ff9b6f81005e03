"""`python -m benchmarks.peers`: the same workloads on this engine and on others, in turn."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.__main__ import clear_progress, say
from benchmarks.contestants import FLOOR, SIGNOFF, Contestant
from benchmarks.peers.environments import environment
from benchmarks.rounds import Rounds, Samples
from benchmarks.rows import ROWS, Row
from benchmarks.table import number, table, times

NOTE = """\
Best of {rounds}, contestants in turn; every figure, and how many times signoff's cost it is.
Steps are durable (synchronous=FULL) everywhere: floor and signoff in WAL, LangGraph in WAL with
durability sync, Burr as it comes and in WAL. signoff's run directory is not written meanwhile."""


def main() -> int:
    """Measures all engines and prints one table."""
    given = _arguments()
    rows = _shared_rows(given.only)
    peers = _peers()
    rounds = Rounds(given.rounds or (1 if given.quick else 3), given.quick, say)
    for work in dict.fromkeys(row.work for row in rows):
        rounds.take(work, [FLOOR, SIGNOFF, *peers])
    clear_progress()
    head = ("work", "", "floor", "signoff", *(peer.name for peer in peers))
    print(table(head, [_cells(row, rounds.samples, peers) for row in rows]))
    print(NOTE.format(rounds=rounds.rounds))
    for failure in rounds.failures:
        print(failure, file=sys.stderr)
    if given.json:
        report = {"quick": given.quick, "samples": rounds.samples}
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if rounds.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    works = sorted({row.work.split("-")[0] for row in ROWS})
    parser.add_argument("--only", action="append", choices=works, help="leave the others out")
    parser.add_argument("--rounds", type=int, help="samples of each (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one sample")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    return parser.parse_args()


def _peers() -> list[Contestant]:
    langgraph, burr = environment("langgraph"), environment("burr")
    works = "benchmarks.peers.burr_works"
    return [
        Contestant("LangGraph", "benchmarks.peers.langgraph_works", langgraph),
        Contestant("Burr", works, burr),
        Contestant("Burr in WAL", works, burr, {"BURR_JOURNAL_MODE": "WAL"}),
    ]


def _shared_rows(only: Sequence[str] | None) -> list[Row]:
    """Returns the rows that apply to every engine."""
    shared = [row for row in ROWS if row.floor is not None and row.floor == (row.work, row.figure)]
    return [row for row in shared if not only or row.work.split("-")[0] in only]


def _cells(row: Row, samples: Samples, peers: Sequence[Contestant]) -> list[str]:
    ours = row.value(samples, SIGNOFF.name)
    cells = [row.work, row.title]
    for who in (FLOOR, SIGNOFF, *peers):
        value = row.value(samples, who.name)
        ratio = "" if who is SIGNOFF else times(row.ratio(value, ours))
        cells.append(f"{number(value, row.unit)} ({ratio})" if ratio else number(value, row.unit))
    return cells


if __name__ == "__main__":
    sys.exit(main())
