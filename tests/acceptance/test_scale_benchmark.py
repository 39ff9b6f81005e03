"""The simulation of many workers counts every run, and gets slower where it has to."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scale import model
from benchmarks.scale.__main__ import sentences
from benchmarks.scale.costs import Cost, Costs, read_costs, write_costs
from benchmarks.scale.model import Result, Scenario, Simulation

pytestmark = pytest.mark.slow

COSTS = Costs(
    run=Cost(0.002, 0.003, 0.004),
    call=Cost(0.0005, 0.0004, 0.002),
    claim=Cost(0.001, 0.001, 0.001),
    claim_empty=Cost(0.001),
    claim_queued=1e-6,
    poll=Cost(0.00005),
    look=Cost(0.00003),
    beat=Cost(0.0003),
    temporal_run=0.07,
)
SMALL = Scenario(workers=5, runs=400, calls=2)


def simulate(scenario: Scenario, costs: Costs = COSTS) -> Result:
    return Simulation(scenario, costs).run()


@pytest.mark.parametrize("load", [0.0, 0.3, 0.9, 3.0])
@pytest.mark.parametrize("wakeup", [model.POLLING, model.NOTIFY, model.DISPATCHED])
def test_every_run_ends_once(load: float, wakeup: model.Wakeup) -> None:
    """A run that a wake-up missed, or that two workers claimed, would make every figure wrong."""
    cores = 2.0 if wakeup is model.DISPATCHED else 0.0
    result = simulate(replace(SMALL, load=load, wakeup=wakeup, temporal_cores=cores))

    assert set(result.done) == {1}
    assert len(result.claim_seconds) == SMALL.runs
    assert result.claim_seconds[0] > 0


def test_the_same_seed_gives_the_same_figures() -> None:
    """A difference between two tables then comes from the costs, not from chance."""
    again, other = simulate(SMALL), simulate(replace(SMALL, seed=8))

    assert simulate(SMALL) == again
    assert other != again


def test_waiting_and_the_database_grow_with_the_load() -> None:
    """Saturation is what the simulation is for."""
    results = [simulate(replace(SMALL, load=load, runs=2000)) for load in (0.2, 0.9, 3.0)]

    waits = [each.latency(0.95) for each in results]
    queues = [each.longest_queue for each in results]
    assert waits == sorted(waits)
    assert queues == sorted(queues)
    assert results[0].database_runs < results[1].database_runs


def test_no_more_is_done_than_slots_and_the_database_allow() -> None:
    """Twice the workers do twice the runs, until the database is full."""
    few = simulate(Scenario(workers=4, runs=800, load=0.0, wakeup=model.NOTIFY))
    twice = simulate(Scenario(workers=8, runs=1600, load=0.0, wakeup=model.NOTIFY))
    slow = replace(COSTS, call=Cost(0.5))
    full = simulate(Scenario(workers=8, runs=200, load=0.0, wakeup=model.NOTIFY), slow)

    assert 1.9 < twice.per_second / few.per_second <= 2.01
    assert twice.per_second <= 8
    assert full.per_second < 2 / (4 * 0.5)
    assert full.database_runs > 0.8


def test_a_slow_disk_delays_runs_and_does_not_fill_the_database() -> None:
    """Waiting takes no processor: a model that mixed them up would predict a collapse."""
    slow = replace(COSTS, run=Cost(0.002, 0.003, 0.2), call=Cost(0.0005, 0.004, 0.1))
    result = simulate(Scenario(workers=100, runs=3000, load=0.5, wakeup=model.NOTIFY), slow)

    assert result.database_runs < 0.3
    assert result.latency(0.95) < 0.1


def test_workers_that_only_poll_fill_the_database() -> None:
    """A thousand idle workers can be too many for it, though they do nothing."""
    idle = Scenario(workers=1000, runs=1)

    assert model.background(idle, COSTS, 1000) > 1
    assert model.background(idle, COSTS, 1000) > model.background(idle, COSTS, 10)
    assert model.background(replace(idle, wakeup=model.DISPATCHED), COSTS, 1000) < 0.2


def test_the_measured_costs_are_there_and_can_be_written_again(tmp_path: Path) -> None:
    """The figures of the documentation come from this file."""
    costs = read_costs()
    write_costs(costs, tmp_path / "costs.json")

    assert read_costs(tmp_path / "costs.json") == costs
    assert costs.call.database > 0
    assert costs.measured["postgresql"]


def test_the_sentences_name_what_is_full_first() -> None:
    """An operator reads these, not the table."""
    scenario = replace(SMALL, runs=50)
    lines = sentences(scenario, simulate(scenario), COSTS)

    assert any("keep up" in line for line in lines)
    assert any("is full at 500 runs a second" in line for line in lines)
