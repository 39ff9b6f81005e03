"""`python -m benchmarks.stores`: both stores side by side, and the floor of PostgreSQL.

A real server is started on this machine, with its usual guarantees: every commit reaches the disk.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.contestants import Contestant
from benchmarks.rounds import Rounds, Samples
from benchmarks.table import number, table, times

VARIABLE = "SIGNOFF_BENCH_SERVER"
"""The URL of the server, for the processes of the contestants."""

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
           "shared_buffers": "128MB", "autovacuum": "on"}  # fmt: skip


class Line(NamedTuple):
    """One line of the table, with the limits of both ratios."""

    work: str
    title: str
    figure: str
    unit: str
    over_floor: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    over_file: float = 1.6


LINES = (
    Line("W1", "chain of 200 steps, per step", "ms", "ms", over_floor=1.7),
    Line("W1-call", "the same, one agent call in each step", "ms", "ms", over_floor=1.7),
    Line("W2", "review loop, 20 rounds; floor one by one", "s", "s", over_floor=1.0),
    Line("W3", "fan-out of 1,000 items of 10 ms", "s", "s", over_floor=1.5),
    Line("W4", "500 runs of 10 steps", "runs_per_s", "runs/s", at_least=500, over_file=2.0),
    Line("W5", "list 2,000 pending requests", "list_ms", "ms", at_most=5),
    Line("W5", "answer and resume one", "resume_ms", "ms", at_most=6),
)
_HEAD = ("work", "", "floor", "SQLite", "PostgreSQL", "/ floor", "/ SQLite", "target", "met")


def server_url() -> str:
    """Returns the URL of the server that the contestants use."""
    return os.environ[VARIABLE]


def schema_of(folder: Path) -> str:
    """Returns the name of the schema that stands for a folder, for as long as the folder exists."""
    note = folder / "schema.txt"
    if not note.exists():
        note.write_text(f"b{secrets.token_hex(8)}")
    return note.read_text()


def main() -> int:
    """Measures all three in turn and prints the table."""
    from tests.stubs.postgres import running_server

    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--only", action="append", help="leave the other works out")
    parser.add_argument("--rounds", type=int, default=3, help="samples of each (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one sample")
    given = parser.parse_args()
    lines = [line for line in LINES if not given.only or line.work in given.only]
    rounds = Rounds(1 if given.quick else given.rounds, given.quick, _say)
    with running_server(DURABLE) as server:
        variables = {VARIABLE: server.url()}
        contestants = [
            Contestant("floor", "benchmarks.postgres_floor", variables=variables),
            Contestant("SQLite", "benchmarks.engine"),
            Contestant("PostgreSQL", "benchmarks.engine", variables=variables),
        ]
        for work in dict.fromkeys(line.work for line in lines):
            rounds.take(work, contestants)
    print(table(_HEAD, [_cells(line, rounds.samples) for line in lines]))
    print(f"Best of {rounds.rounds}, in turn; every commit reaches the disk on all three sides.")
    for failure in rounds.failures:
        print(failure, file=sys.stderr)
    return 1 if rounds.failures else 0


def _cells(line: Line, samples: Samples) -> list[str]:
    floor, file, server = (best(line, samples, who) for who in ("floor", "SQLite", "PostgreSQL"))
    over_floor, over_file = _ratio(line, server, floor), _ratio(line, server, file)
    bounds = {
        f"<= {line.over_floor} x floor": _within(over_floor, line.over_floor),
        f"<= {line.at_most} {line.unit}": _within(server, line.at_most),
        f">= {line.at_least} {line.unit}": line.at_least is None or (server or 0) >= line.at_least,
        f"<= {line.over_file} x SQLite": _within(over_file, line.over_file),
    }
    return [
        line.work,
        line.title,
        *(number(each, line.unit) for each in (floor, file, server)),
        times(over_floor),
        times(over_file),
        ", ".join(bound for bound in bounds if "None" not in bound),
        "yes" if all(bounds.values()) else "NO",
    ]


def _within(value: float | None, most: float | None) -> bool:
    return most is None or (value is not None and value <= most)


def best(line: Line, samples: Samples, who: str) -> float | None:
    """Returns the best sample of a contestant; None if there is none."""
    found = [each[line.figure] for each in samples.get(who, {}).get(line.work, [])]
    return (max if line.at_least else min)(found, default=None)


def _ratio(line: Line, value: float | None, base: float | None) -> float | None:
    if not value or not base:
        return None
    return base / value if line.at_least else value / base


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
