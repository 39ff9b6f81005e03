"""`python -m benchmarks`: this engine compared with the raw SQLite floor."""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.contestants import FLOOR, SIGNOFF, Contestant
from benchmarks.rounds import Rounds, Samples
from benchmarks.rows import ROWS, Row
from benchmarks.table import number, table, times

NOTE = """\
Best of {rounds}, floor and engine in turn. SQLite in WAL with synchronous=FULL on both sides.
The run directory is not written in the measured time, except in W1-dir, W9 and W11.
"by round" is the lowest and highest ratio within one round; where these lie far apart, the
machine was busy and "met" means little: run again with --rounds 9."""

FULL_TIME = """\
about 10 minutes on two quiet cores, longer on busy ones; --quick (make bench QUICK=1) gives
rough figures within one minute"""
QUICK_TIME = "at most one minute on two quiet cores; its figures are rough"

ROUGH = """\
ROUGH FIGURES: one sample each, of smaller sizes than the table says, so "met" means little. Run
without --quick (make bench) for figures to compare."""


def main() -> int:
    """Measures, prints the table and reports whether all targets were met."""
    given = _arguments()
    rows = [row for row in ROWS if not given.only or row.work.split("-")[0] in given.only]
    rounds = Rounds(given.rounds or (1 if given.quick else 3), given.quick, say)
    entries = _entries(rows)
    if not given.only and not given.rounds:
        print(f"This takes {QUICK_TIME if given.quick else FULL_TIME}.", file=sys.stderr)
    for place, (work, contestants) in enumerate(entries, 1):
        rounds.say = partial(_say_where, f"work {place} of {len(entries)}")
        rounds.take(work, contestants)
    clear_progress()
    samples = rounds.samples
    print(table(_HEAD, [_cells(row, samples) for row in rows]))
    print(NOTE.format(rounds=rounds.rounds))
    if given.quick:
        print(ROUGH)
    for failure in rounds.failures:
        print(failure, file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps(_report(rows, samples, given.quick), indent=1) + "\n")
    missed = [row for row in rows if _met(row, samples) is False]
    return 1 if rounds.failures or (given.strict and missed) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    works = sorted({row.work.split("-")[0] for row in ROWS})
    parser.add_argument("--only", action="append", choices=works, help="leave the others out")
    parser.add_argument("--rounds", type=int, help="samples of each (3)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one sample: rough figures in a minute"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    return parser.parse_args()


def _entries(rows: Sequence[Row]) -> list[tuple[str, list[Contestant]]]:
    """Returns each workload once, with its contestants; a floor may belong to another workload."""
    works = dict.fromkeys(row.work for row in rows)
    floors = {row.floor[0] for row in rows if row.floor is not None}
    return [(work, [FLOOR, SIGNOFF] if work in floors else [SIGNOFF]) for work in works]


_HEAD = ("work", "", "floor", "signoff", "signoff / floor", "by round", "target", "met")


def _cells(row: Row, samples: Samples) -> list[str]:
    floor, value = row.floor_value(samples), row.value(samples, SIGNOFF.name)
    met = {True: "yes", False: "NO", None: ""}[_met(row, samples)]
    return [
        row.work,
        row.title,
        number(floor, row.unit),
        number(value, row.unit),
        times(row.ratio(value, floor)),
        _by_round(row, samples),
        str(row.target or ""),
        met,
    ]


def _by_round(row: Row, samples: Samples) -> str:
    spread = row.spread(samples, SIGNOFF.name)
    return "" if spread is None else f"{spread[0]:.2f} - {spread[1]:.2f}"


def _met(row: Row, samples: Samples) -> bool | None:
    value = row.value(samples, SIGNOFF.name)
    if row.target is None or value is None:
        return None
    return row.target.met(value, row.floor_value(samples))


def _report(rows: Sequence[Row], samples: Samples, quick: bool) -> dict[str, object]:
    return {
        "quick": quick,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.system(),
        "rows": [
            {
                "work": row.work,
                "title": row.title,
                "unit": row.unit,
                "floor": row.floor_value(samples),
                "signoff": row.value(samples, SIGNOFF.name),
                "target": str(row.target or ""),
                "met": _met(row, samples),
            }
            for row in rows
        ],
        "samples": samples,
    }


def _say_where(where: str, text: str) -> None:
    say(f"{where}: {text}")


def say(text: str) -> None:
    """Shows progress: on one line of a terminal, elsewhere on a line of its own."""
    start, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
    print(f"{start}{text}", end=end, file=sys.stderr, flush=True)


def clear_progress() -> None:
    """Removes the line of progress from a terminal."""
    if sys.stderr.isatty():
        say("")


if __name__ == "__main__":
    sys.exit(main())
