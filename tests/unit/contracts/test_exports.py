import subprocess
import sys

import pytest

from signoff import contracts

NAMES = [
    "Checkpoint",
    "Condition",
    "ConditionalNext",
    "Database",
    "GateOption",
    "HumanGate",
    "ParallelItemResult",
    "ResumeContext",
    "SafeDatabaseClient",
    "StepContext",
    "StepInput",
    "StepOutput",
    "StepResult",
    "WorkflowDefinition",
    "WorkflowStep",
    "define_workflow",
]


def test_the_public_names_are_these() -> None:
    """A name that goes away breaks somebody's import."""
    assert contracts.__all__ == NAMES
    assert all(getattr(contracts, name) is not None for name in NAMES)
    assert dir(contracts) == NAMES


def test_a_name_that_is_not_there_is_told() -> None:
    """A slip of the pen is an error like any other."""
    with pytest.raises(AttributeError, match="no attribute 'defineWorkflow'"):
        _ = contracts.defineWorkflow


def test_defining_a_workflow_loads_no_parser_of_sql_and_no_expressions() -> None:
    """Programs that define workflows and never run them should not wait for either."""
    program = (
        "import sys; from signoff.contracts import define_workflow; "
        "define_workflow({'type': 't', 'steps': [{'name': 'a', 'command': ['x']}]}); "
        "print([name for name in ('cel', 'sqlglot', 'psycopg', 'pydantic') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
