"""Which branch of a contract is the one that loops, and what happens at its limit."""

from typing import Any

import pytest

from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.step import Edge
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore


def bounds(workflow: Workflow, step: str) -> dict[str, int | None]:
    """Returns the bound of each edge of a step, by its target."""
    edges = [edge for edge in workflow.steps[step].next.values() if isinstance(edge, Edge)]
    return {str(edge.to): edge.bound for edge in edges}


def does(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": lambda _ctx: {}, **more}


def branch(on_true: str, on_false: str) -> dict[str, Any]:
    return {"condition": "result.more", "onTrue": on_true, "onFalse": on_false, "maxIterations": 3}


@pytest.mark.parametrize(
    ("on_true", "on_false"), [("fix", "end"), ("end", "fix"), ("check", "end"), ("end", "check")]
)
def test_the_branch_that_leads_back_is_counted(on_true: str, on_false: str) -> None:
    """A loop over a later step is a loop too, on either branch."""
    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                does("check", next=branch(on_true, on_false)),
                does("fix", next="check" if "fix" in (on_true, on_false) else "end"),
                does("end"),
            ][:: 1 if "fix" in (on_true, on_false) else 2],
        }
    )

    looping = on_false if on_true == "end" else on_true

    assert bounds(workflow, "check") == {looping: 3, "end": None}


def test_steps_that_run_together_loop_by_any_of_their_names() -> None:
    """The second of them comes later in the file, but it is the same node."""
    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                does("style", parallel=True),
                does("facts", parallel=True, next=branch("facts", "end")),
                does("end"),
            ],
        }
    )

    assert bounds(workflow, "style+facts") == {"style+facts": 3, "end": None}


async def test_a_loop_without_a_limit_ends_with_a_human_decision_too() -> None:
    """Twenty rounds of work are not lost because the author set no limit."""
    rounds: list[int] = []

    def again(_ctx: StepContext) -> dict[str, bool]:
        rounds.append(1)
        return {"more": True}

    workflow = define_workflow(
        {
            "type": "loop",
            "steps": [
                {
                    "name": "check",
                    "command": again,
                    "next": branch("fix", "end") | {"maxIterations": 99},
                },
                does("fix", next="check"),
                does("end"),
            ],
        }
    )

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(workflow, {}, name="run")

    assert result.status is Status.WAITING
    assert len(rounds) == 21
