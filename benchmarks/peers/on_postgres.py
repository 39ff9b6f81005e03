"""`python -m benchmarks.peers.on_postgres`: this engine, LangGraph and DBOS on one PostgreSQL.

Every commit reaches the disk, for all of them, on the same server.
"""

from __future__ import annotations

import argparse
import os
import sys

from benchmarks.contestants import Contestant
from benchmarks.peers.environments import PINS, environment
from benchmarks.rounds import Rounds, Samples
from benchmarks.stores import DURABLE, LINES, VARIABLE, Line, best
from benchmarks.table import number, table, times

WORKS = ("W1", "W1-call", "W3", "W4")
OURS = "signoff"
PACKAGES = ("langgraph", "langgraph-checkpoint-postgres", "dbos")


def main() -> int:
    """Measures all of them in turn and prints one table."""
    from tests.stubs.postgres import running_server

    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.on_postgres")
    parser.add_argument("--only", action="append", choices=WORKS, help="leave the others out")
    parser.add_argument("--rounds", type=int, default=3, help="samples of each (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one sample")
    options = parser.parse_args()
    rounds = Rounds(1 if options.quick else options.rounds, options.quick, _say)
    busy = os.getloadavg()[0]
    with running_server(DURABLE) as server:
        contestants = _contestants({VARIABLE: server.url()})
        for work in options.only or WORKS:
            rounds.take(work, contestants)
    lines = [line for line in LINES if line.work in (options.only or WORKS)]
    names = [each.name for each in contestants]
    print(table(("work", "", *names), [_cells(line, rounds.samples, names) for line in lines]))
    print(
        f"Best of {rounds.rounds}, in turn; load {busy:.1f} before, {os.getloadavg()[0]:.1f} after."
    )
    print(f"{', '.join(_pins())}; in parentheses: how many times signoff's cost.")
    for failure in rounds.failures:
        _say(failure)
    return 1 if rounds.failures else 0


def _contestants(variables: dict[str, str]) -> list[Contestant]:
    return [
        Contestant("floor", "benchmarks.postgres_floor", variables=variables),
        Contestant(OURS, "benchmarks.engine", variables=variables),
        Contestant(
            "LangGraph", "benchmarks.peers.langgraph_works", environment("langgraph"), variables
        ),
        Contestant("DBOS", "benchmarks.peers.dbos_works", environment("dbos"), variables),
    ]


def _cells(line: Line, samples: Samples, names: list[str]) -> list[str]:
    cells = [line.work, line.title]
    ours = best(line, samples, OURS)
    for name in names:
        value = best(line, samples, name)
        shown = number(value, line.unit)
        if value and ours and name != OURS:
            shown += f" ({times(ours / value if line.at_least else value / ours)})"
        cells.append(shown)
    return cells


def _pins() -> list[str]:
    pinned = [*(PINS / "langgraph.txt").open(), *(PINS / "dbos.txt").open()]
    found = dict(line.split(" ;")[0].strip().split("==") for line in pinned if "==" in line)
    return [f"{name} {found[name]}" for name in PACKAGES]


def _say(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
