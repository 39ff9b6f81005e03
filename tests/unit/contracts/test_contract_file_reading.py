from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from signoff.contracts import WorkflowStep, define_workflow
from signoff.contracts.definition import compile_file
from signoff.core.errors import InvalidWorkflow
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext

FILE = """
type: t
limits: {usd: 2, seconds: 60}
roles: {leadWriter: claude}
steps: [{name: a, prompt: p, agent: leadWriter, timeout: 5}]
"""


def from_file(folder: Path) -> Any:
    path = folder / "contract.yaml"
    path.write_text(FILE, "utf-8")
    return compile_file(SourceFile(path), CompileContext(folder))


def from_dict(_folder: Path) -> Any:
    return define_workflow(
        {
            "type": "t",
            "limits": {"usd": 2, "seconds": 60},
            "roles": {"leadWriter": "claude"},
            "steps": [{"name": "a", "prompt": "p", "agent": "leadWriter", "timeout": 5}],
        }
    )


@pytest.mark.parametrize("read", [from_file, from_dict])
def test_values_are_used_as_written(read: Any, tmp_path: Path) -> None:
    """Runs that were started with a timeout of 5 could not be resumed with one of 5.0."""
    workflow = read(tmp_path)

    numbers = [workflow.steps["a"].timeout, workflow.limits.usd, workflow.limits.seconds]
    assert [str(number) for number in numbers] == ["5", "2", "60"]
    assert workflow.roles == {"leadWriter": "claude"}


def test_a_command_that_cannot_be_copied_does_not_hide_a_mistake() -> None:
    """Methods of objects with locks or connections are commands like any other."""

    class Desk:
        def __init__(self) -> None:
            self.busy = Lock()

        def work(self, _ctx: Any) -> None: ...

    steps = [{"name": "a", "command": Desk().work, "timeout": "soon"}]

    with pytest.raises(InvalidWorkflow, match="timeout is 'soon'"):
        define_workflow({"type": "t", "steps": steps})


def test_a_class_derived_from_a_public_type_is_read_like_it() -> None:
    """Projects define subclasses with their own defaults."""

    @dataclass(frozen=True)
    class Reviewed(WorkflowStep):
        reviewer: str = "ann"

    workflow = define_workflow({"type": "t", "steps": [Reviewed("a", command=["true"])]})

    assert list(workflow.steps) == ["a"]


def test_none_means_the_default_in_python() -> None:
    """Definitions are often built from optional values."""
    workflow = define_workflow(
        {"type": "t", "limits": None, "steps": [{"name": "a", "prompt": "p", "parallel": None}]}
    )

    assert list(workflow.steps) == ["a"]
