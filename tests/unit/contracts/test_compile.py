"""Which branch of a contract is the one that loops, and what happens at its limit."""

from typing import Any

import pytest

from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.step import Edge
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.memory import MemoryStore


def bounds(workflow: Workflow, step: str) -> dict[str, int | None]:
    """Returns how often each way out of a step may be taken, by where it leads."""
    edges = [edge for edge in workflow.steps[step].next.values() if isinstance(edge, Edge)]
    return {str(edge.to): edge.bound for edge in edges}


def does(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": lambda _ctx: {}, **more}


def branch(on_true: str, on_false: str) -> dict[str, Any]:
    return {"condition": "result.more", "onTrue": on_true, "onFalse": on_false, "maxIterations": 3}


@pytest.mark.parametrize(
    ("on_true", "on_false"), [("fix", "end"), ("end", "fix"), ("check", "end"), ("end", "check")]
)
def test_the_branch_that_comes_back_is_the_one_that_is_counted(on_true: str, on_false: str) -> None:
    """A loop through a step further down is a loop too, whichever branch it hangs on."""
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
    """The second of them stands further down, and still it is the same place."""
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


async def test_a_loop_nobody_counted_ends_at_a_person_too() -> None:
    """Twenty rounds of work are not thrown away because nobody wrote a number."""
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
