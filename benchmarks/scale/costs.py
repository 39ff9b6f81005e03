"""What each operation costs, as `measure.py` found it; the inputs of the simulation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("costs.json")


@dataclass(frozen=True)
class Cost:
    """One operation, in seconds."""

    database: float
    """Processor time on the database server."""
    worker: float = 0.0
    """Processor time in the worker's process."""
    delay: float = 0.0
    """Waiting that occupies neither: the disk's flush, which concurrent commits share."""

    def __add__(self, other: Cost) -> Cost:
        """Returns the cost of both, one after the other."""
        return Cost(
            self.database + other.database, self.worker + other.worker, self.delay + other.delay
        )


@dataclass(frozen=True)
class Costs:
    """The costs of all operations."""

    run: Cost
    """Everything that a run costs once: it is taken, loaded, ended and given up."""
    call: Cost
    """Everything around one agent call: its start and its reply are committed."""
    claim: Cost
    """One claim of runs that can continue."""
    claim_empty: Cost
    """One look for such runs that finds none."""
    claim_queued: float
    """What each queued run adds to every claim, on the database server."""
    poll: Cost
    """One question whether anything has changed."""
    look: Cost
    """One question whether a run is to be cancelled."""
    beat: Cost
    """One renewal of a worker's leases."""
    temporal_run: float
    """Processor time of Temporal's server for one run."""
    worker_mb: float = 0.0
    """Memory of a worker's process."""
    measured: dict[str, str] = field(default_factory=dict)
    """Where and when."""


def read_costs(path: Path = FILE) -> Costs:
    """Reads the measured costs."""
    values = json.loads(path.read_text())
    operations = {name: Cost(**each) for name, each in values.pop("operations").items()}
    return Costs(**{**values, **operations})


def write_costs(costs: Costs, path: Path = FILE) -> None:
    """Stores measured costs for the next simulation."""
    values = asdict(costs)
    operations = {name: values.pop(name) for name in list(values) if _is_cost(values[name])}
    path.write_text(json.dumps({"operations": operations, **values}, indent=2) + "\n")


def _is_cost(value: object) -> bool:
    return isinstance(value, dict) and "database" in value
