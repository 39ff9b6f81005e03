from pathlib import Path
from typing import Any

import pytest

from signoff.skills.library.codebase_analysis import WHOLE, WORKFLOW
from tests.unit.skills.library.skill_runs import reported, run_skill


@pytest.mark.parametrize(
    ("params", "following", "areas"),
    [
        ({}, "divide", [WHOLE]),
        ({"areas": "store, engine"}, "explore", ["store", "engine"]),
        ({"areas": ["store"]}, "explore", ["store"]),
        ({"areas": " , "}, "divide", [WHOLE]),
        ({"iteration": 5}, "explore", [WHOLE]),
    ],
)
def test_the_areas_are_kept_for_the_sub_agents(
    params: dict[str, object], following: str, areas: list[str]
) -> None:
    """Each of them is read; without any, everything is."""
    output = WORKFLOW.run("divide", params)

    assert (output.next, output.state["areas"]) == (following, areas)


async def test_in_a_run_each_area_is_read_by_a_sub_agent(tmp_path: Path) -> None:
    """The map is made of all their reports."""
    replies: dict[str, list[Any]] = {
        "divide": [reported(areas=["store", "engine"])],
        "explore": ["rows", "steps"],
    }

    run = await run_skill(WORKFLOW, replies, state_dir=str(tmp_path))

    assert run.steps.count("explore") == 2
    assert run.result.state["explore"] == ["rows", "steps"]
    trace = next(prompt for prompt in run.prompts if "\n# Trace real paths" in prompt)
    assert "rows" in trace
    assert "steps" in trace
