"""`python -m benchmarks.loop`: the review loop on forty artifacts with planted defects."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.loop.artifacts import Artifact, artifacts
from benchmarks.loop.engine_loop import APPLY, EDIT, engine_loop
from benchmarks.loop.meter import Meter
from benchmarks.loop.naive import naive_loop
from benchmarks.loop.outcome import LoopEnd, measure, summary
from benchmarks.loop.simulation import Simulation
from benchmarks.loop.targets import TARGETS
from benchmarks.loop.virtual_time import run_in_virtual_time
from benchmarks.table import table

NAIVE, BEFORE, SIGNOFF = "naive", "before", "signoff"

Loop = Callable[[Artifact, Simulation, Meter], Awaitable[LoopEnd]]

COLUMNS = {
    "rounds": "rounds",
    "calls": "calls",
    "tokens_in": "tokens in",
    "cached": "of these cached",
    "tokens_out": "tokens out",
    "seconds": "seconds",
    "left": "defects left",
    "left_blocking": "blocking left",
    "introduced": "caused by a fix",
}
COUNTS = {
    "not_approved": "not passed",
    "critical_reported": "reported CRITICAL left",
    "critical_dismissed": "of these dismissed",
}


def main() -> int:
    """Runs all loops, prints the tables and reports whether the targets were met."""
    arguments = _arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    report, *others = (run(artifacts(seed), seed, arguments.mode) for seed in seeds)
    if arguments.before:
        earlier = json.loads(arguments.before.read_text(encoding="utf-8"))
        same = all(earlier[name] == report[name] for name in ("seed", "mode"))
        assert same, "the other report has another seed or mode"
        report["loops"][BEFORE] = earlier["loops"][SIGNOFF]
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    loops = {
        name: report["loops"][name] for name in (NAIVE, BEFORE, SIGNOFF) if name in report["loops"]
    }
    print(_means(loops))
    if arguments.rounds:
        print(_details(loops))
    judged = targets_of([report, *others])
    print(_targets(judged))
    missed = [each for each in judged if not each["met"]]
    return 1 if arguments.strict and missed else 0


def run(chosen: Iterable[Artifact], seed: int, mode: str = APPLY) -> dict[str, Any]:
    """Returns the report: the figures of each loop over the artifacts, and the targets."""
    chosen = list(chosen)
    kinds: dict[str, Loop] = {NAIVE: naive_loop, SIGNOFF: partial(engine_loop, mode=mode)}
    loops = {
        name: summary([_outcome(loop, each, seed) for each in chosen])
        for name, loop in kinds.items()
    }
    report = {"seed": seed, "mode": mode, "loops": loops}
    return {**report, "targets": targets_of([report])}


def targets_of(reports: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the targets, judged by the means over reports with different seeds."""
    sums = [tuple(each["loops"][name]["sum"] for name in (NAIVE, SIGNOFF)) for each in reports]
    return [target.judged(sums) for target in TARGETS]


def _outcome(loop: Loop, artifact: Artifact, seed: int) -> Any:
    simulation, meter = Simulation(artifact, seed), Meter()

    async def drive() -> LoopEnd:
        return await loop(artifact, simulation, meter)

    return measure(simulation, meter, run_in_virtual_time(drive()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (1)")
    parser.add_argument(
        "--seeds", type=int, default=1, help="how many seeds the targets are judged by (1)"
    )
    parser.add_argument(
        "--mode", choices=(APPLY, EDIT), default=APPLY, help="how refine steps work (apply)"
    )
    parser.add_argument(
        "--rounds", action="store_true", help="show the sums of each round and of each agent"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument(
        "--before", type=Path, metavar="FILE", help="compare with a file that --json wrote"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    return parser.parse_args()


def _means(loops: Mapping[str, Any]) -> str:
    rows = [
        [
            name,
            "mean",
            *(_figure(loop["mean"][key]) for key in COLUMNS),
            *(_figure(loop["sum"][key]) for key in COUNTS),
        ]
        for name, loop in loops.items()
    ]
    return table(("loop", "", *COLUMNS.values(), *COUNTS.values()), rows)


def _details(loops: Mapping[str, Any]) -> str:
    keys = ("calls", "critics", "tokens_in", "cached", "tokens_out")
    groups = [
        (name, group, label)
        for name, loop in loops.items()
        for group, label in (
            *((each, f"round {each['round_number']}") for each in loop["by_round"]),
            *((each, each["agent"]) for each in loop["by_agent"]),
        )
    ]
    rows = [[name, label, *(f"{group[key]:,}" for key in keys)] for name, group, label in groups]
    return table(("loop", "sum", *(key.replace("_", " ") for key in keys)), rows)


def _targets(judged: Iterable[Mapping[str, Any]]) -> str:
    keys = ("target", "bound", "mean", "min", "max")
    rows = [[*(each[key] for key in keys), "yes" if each["met"] else "NO"] for each in judged]
    return table((*keys, "met"), rows)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
