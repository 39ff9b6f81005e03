"""`python -m benchmarks.scale`: how far one database carries, simulated from measured costs.

--measure measures the costs on this machine again; --check compares the model with real workers.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.scale import model
from benchmarks.scale.costs import FILE, Costs, read_costs, write_costs
from benchmarks.scale.model import Result, Scenario, Simulation
from benchmarks.table import number, table

if TYPE_CHECKING:
    from benchmarks.scale.real import Measured

WORKERS = (1, 10, 100, 1000)
RUNS_PER_WORKER = 1000
WAKEUPS = {each.name: each for each in (model.POLLING, model.NOTIFY, model.DISPATCHED)}

HEAD = (
    "workers", "runs", "arrive/s", "done/s", "claimed p50", "p95", "longest queue",
    "database", "of it idle work", "workers' CPU", "dispatcher", "CPU ms/run",
)  # fmt: skip

CHECKED = (1, 2, 4, 8)
CHECK_HEAD = (
    "workers", "runs", "predicted runs/s", "measured", "predicted ratio", "measured ratio",
    "goal", "worker's CPU per run", "worker's memory",
)  # fmt: skip
GOALS = {2: 1.85, 4: 3.5}
"""How many times the runs of one worker several have to do, if calls take a second."""


def main() -> None:
    """Does what the options say."""
    options = _arguments()
    if options.measure:
        from benchmarks.scale.measure import measure

        write_costs(measure())
        print(f"wrote {FILE.name}")
    costs = read_costs()
    if options.check:
        check(costs, options)
        return
    print(f"Costs measured {', '.join(f'{k} {v}' for k, v in costs.measured.items())}.")
    began = time.perf_counter()
    scenarios = [_scenario(options, workers) for workers in options.workers or WORKERS]
    results = [Simulation(each, costs).run() for each in scenarios]
    print(table(HEAD, [_cells(*each) for each in zip(scenarios, results, strict=True)]))
    for sentence in sentences(scenarios[-1], results[-1], costs):
        print(f"- {sentence}")
    total = sum(each.runs for each in scenarios)
    print(f"{total:,} runs simulated in {time.perf_counter() - began:.0f} s.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--workers", type=int, action="append", help="repeatable (1 to 1,000)")
    parser.add_argument("--runs", type=int, help="runs in all (1,000 for each worker)")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--calls", type=int, default=4, help="calls of each run (4)")
    parser.add_argument("--call-seconds", type=float, default=1.0, help="length of a call (1)")
    parser.add_argument("--load", type=float, default=0.7, help="share of the slots in use (0.7)")
    parser.add_argument("--database-cores", type=float, default=8.0, help="(8)")
    parser.add_argument("--wakeup", choices=WAKEUPS, default="notify")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--measure", action="store_true", help="measure the costs again, first")
    parser.add_argument("--check", action="store_true", help="compare with real workers")
    return parser.parse_args()


def _scenario(options: argparse.Namespace, workers: int) -> Scenario:
    wakeup = WAKEUPS[options.wakeup]
    return Scenario(
        workers=workers,
        runs=options.runs or workers * RUNS_PER_WORKER,
        slots=options.slots,
        calls=options.calls,
        call_seconds=options.call_seconds,
        load=options.load,
        database_cores=options.database_cores,
        wakeup=wakeup,
        temporal_cores=8.0 if wakeup is model.DISPATCHED else 0.0,
        seed=options.seed,
    )


def _cells(scenario: Scenario, result: Result) -> list[str]:
    busy = result.database_runs + min(model.FULL, result.database_idle)
    cpu_ms = busy * scenario.database_cores * result.seconds / scenario.runs * 1000
    return [
        f"{scenario.workers:,}",
        f"{scenario.runs:,}",
        number(scenario.capacity * scenario.load),
        number(result.per_second),
        number(result.latency(0.5) * 1000, "ms"),
        number(result.latency(0.95) * 1000, "ms"),
        f"{result.longest_queue:,}",
        f"{min(1.0, busy):.0%}",
        f"{result.database_idle:.0%}",
        f"{result.worker_busy:.1%}",
        f"{result.dispatcher_busy:.0%}" if scenario.temporal_cores else "",
        number(cpu_ms),
    ]


def sentences(scenario: Scenario, result: Result, costs: Costs) -> list[str]:
    """Returns what the costs mean, in words."""
    cores, calls = scenario.database_cores, scenario.calls
    per_run = costs.run.database + calls * costs.call.database + costs.claim.database
    per_worker = scenario.slots / (calls * scenario.call_seconds)
    rate = cores / per_run
    alone = replace(scenario, workers=1)
    idle_most = 1.0 / model.background(alone, costs, 1)
    busy_most = 1.0 / model.background(alone, costs, 0)
    seconds = scenario.call_seconds
    own = costs.run.worker + calls * costs.call.worker
    waits_long = result.latency(0.95) > calls * seconds
    verdict = "fall behind" if waits_long else "keep up with"
    return [
        (
            f"A run of {calls} calls takes {per_run * 1000:.1f} ms of the database and "
            f"{own * 1000:.1f} ms of its worker's processor."
        ),
        (
            f"The database ({cores:g} cores) is full at {rate:,.0f} runs a second: "
            f"{rate / per_worker:,.0f} workers of {scenario.slots} slots, calls of {seconds:g} s."
        ),
        (
            f"Workers without anything to do fill it too, at {idle_most:,.0f} workers with a free "
            f"slot ({scenario.wakeup.name}); workers whose slots are all in use, at "
            f"{busy_most:,.0f}."
        ),
        (
            f"A claim takes {costs.claim.database * 1000:.2f} ms, and "
            f"{costs.claim_queued * 1e9:,.0f} ns more for every queued run."
        ),
        (
            f"Temporal's development server takes {costs.temporal_run * 1000:.0f} ms a run: "
            f"{1 / costs.temporal_run:,.0f} runs a second and core."
        ),
        (
            f"{scenario.workers:,} workers {verdict} {scenario.capacity * scenario.load:,.0f} runs "
            f"a second; half of the runs wait at most {result.latency(0.5):,.3f} s for a worker."
        ),
    ]


def check(costs: Costs, options: argparse.Namespace) -> None:
    """Prints what the model predicts next to what real workers did."""
    from benchmarks.scale.real import measure_workers

    waves = 2
    found = measure_workers(
        options.workers or list(CHECKED),
        slots=options.slots,
        calls=options.calls,
        call_seconds=options.call_seconds,
        waves=waves,
    )
    cores = os.cpu_count() or 1
    predicted = [_predicted(each, costs, options, cores) for each in found]
    print(table(CHECK_HEAD, _compared(found, predicted)))
    print(f"Calls of {options.call_seconds:g} s, load {os.getloadavg()[0]:.1f}, {cores} cores.")


def _predicted(real: Measured, costs: Costs, options: argparse.Namespace, cores: int) -> Result:
    """Simulates what real workers did; workers and database share the machine's cores."""
    scenario = _scenario(options, real.workers)
    here = replace(
        scenario, runs=real.runs, load=0.0, database_cores=float(cores), worker_cores=cores
    )
    return Simulation(here, costs).run()


def _compared(found: list[Measured], predicted: list[Result]) -> list[list[str]]:
    rows = []
    for real, model_result in zip(found, predicted, strict=True):
        goal = GOALS.get(real.workers)
        rows.append(
            [
                f"{real.workers}",
                f"{real.runs}",
                number(model_result.per_second),
                number(real.per_second),
                f"{model_result.per_second / predicted[0].per_second:.2f} x",
                f"{real.per_second / found[0].per_second:.2f} x",
                f">= {goal} x" if goal else "",
                f"{real.cpu_seconds / real.runs * 1000:.0f} ms",
                f"{real.memory_mb:.0f} MB",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
