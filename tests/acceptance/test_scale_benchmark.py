"""The simulation of many workers counts every run, and gets slower where it has to."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scale import model
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


def test_the_measured_costs_are_there_and_can_be_written_again(tmp_path: Path) -> None:
    """The figures of the documentation come from this file."""
    costs = read_costs()
    write_costs(costs, tmp_path / "costs.json")

    assert read_costs(tmp_path / "costs.json") == costs
    assert costs.call.database > 0
    assert costs.measured["postgresql"]
