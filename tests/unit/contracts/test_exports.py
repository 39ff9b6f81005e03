import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from signoff import contracts

NAMES = [
    "Checkpoint",
    "Condition",
    "ConditionalNext",
    "Database",
    "GateDecision",
    "GateOption",
    "HumanGate",
    "ParallelItemResult",
    "PendingRetry",
    "ResumeContext",
    "SafeDatabaseClient",
    "StepContext",
    "StepInput",
    "StepOutput",
    "StepResult",
    "WorkflowDefinition",
    "WorkflowStep",
    "define_workflow",
    "resume_context",
]


def test_the_public_names_are_these() -> None:
    """Removing a name breaks an import of a user."""
    assert contracts.__all__ == NAMES
    assert all(getattr(contracts, name) is not None for name in NAMES)
    assert dir(contracts) == NAMES


def test_defining_a_workflow_loads_no_parser_of_sql_and_no_expressions() -> None:
    """Programs that only define workflows should not wait for either."""
    program = (
        "import sys; from signoff.contracts import define_workflow; "
        "define_workflow({'type': 't', 'steps': [{'name': 'a', 'command': ['x']}]}); "
        "print([name for name in ('cel', 'sqlglot', 'psycopg', 'signoff.contracts.guarded_db') "
        "if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_workflow_without_a_database_runs_without_the_guarded_database(tmp_path: Path) -> None:
    """Most workflows have no database; they should not wait for its code on every run."""
    program = (
        "import sys, signoff; from signoff.contracts import define_workflow; "
        "step = {'name': 'a', 'command': lambda ctx: 1, 'postconditions': ['result > 0']}; "
        "done = signoff.run(define_workflow({'type': 't', 'steps': [step]})); "
        "print(done.status, [name for name in sys.modules if name.startswith('signoff.guarded')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "completed []"


def test_every_type_of_the_design_is_where_the_documentation_says() -> None:
    """A reader of the design must find each of its types."""
    page = (Path(__file__).parents[3] / "docs/contracts.md").read_text("utf-8")
    table = page.partition("## Translate a design")[2].partition("\n\n| in the design | write |")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]

    places = [place for row in rows for place in re.findall(r"`(signoff\.[\w.]+)`", row)]

    assert len(rows) == 19
    assert len(places) >= len(rows)
    for place in places:
        module, _, name = place.rpartition(".")
        assert getattr(import_module(module), name) is not None
