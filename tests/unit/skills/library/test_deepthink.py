from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Outcome
from signoff.skills.library.deepthink import DEFAULT_ANGLE, WORKFLOW
from tests.unit.skills.library.skill_runs import reported, run_skill

FULL_ONLY = {"angles", "think", "reconcile"}


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_only_the_full_mode_has_sub_agents(mode: str) -> None:
    """A quick answer must not pay for them."""
    steps, step = [], WORKFLOW.entry_point
    while step:
        steps.append(step)
        output = WORKFLOW.run(
            step, mode=mode, angles=["cost"], confidence="certain", state={"mode": mode}
        )
        command = output.next_commands.get(Outcome.OK) or output.next_command
        step = command.step if command else ""

    assert set(WORKFLOW.steps) - set(steps) == (FULL_ONLY if mode == "quick" else set())


def test_the_mode_is_asked_for_at_the_start_and_carried_on() -> None:
    """It is chosen once, when the question is known."""
    asked = WORKFLOW.run("frame").next_command
    chosen = WORKFLOW.run("frame", mode="quick").next_command

    assert asked is not None
    assert chosen is not None
    assert (asked.step, "mode" in asked.open) == ("frame", True)
    assert (chosen.step, chosen.params["mode"]) == ("criteria", "quick")


@pytest.mark.parametrize(
    ("given", "reported", "following"),
    [(None, "quick", "draft"), (None, "full", "angles"), ("full", "quick", "angles")],
)
def test_a_run_remembers_the_mode_that_its_worker_chose(
    given: str | None, reported: str, following: str
) -> None:
    """What a worker reports counts for one visit only; the mode the run was started with wins."""
    output = WORKFLOW.run("candidates", mode=given, state={"mode": reported})

    assert output.next == following


def test_a_mode_that_is_never_chosen_is_full() -> None:
    """Leaving out sub-agents is a choice that someone has to make."""
    output = WORKFLOW.run("frame", iteration=5)

    assert (output.next, output.state) == ("criteria", {"mode": "full"})


@pytest.mark.parametrize(
    ("params", "following", "angles"),
    [
        ({}, "angles", [DEFAULT_ANGLE]),
        ({"angles": "operator, attacker"}, "think", ["operator", "attacker"]),
        ({"iteration": 5}, "think", [DEFAULT_ANGLE]),
    ],
)
def test_the_angles_are_kept_for_the_sub_agents(
    params: dict[str, object], following: str, angles: list[str]
) -> None:
    """Each of them works on the question from one."""
    output = WORKFLOW.run("angles", params)

    assert (output.next, output.state["angles"]) == (following, angles)


async def test_in_a_run_each_angle_has_a_sub_agent_that_finds_the_brief(tmp_path: Path) -> None:
    """A sub-agent knows only what it is given."""
    replies: dict[str, list[Any]] = {
        "candidates": [reported()],
        "angles": [reported(angles=["operator", "payer"])],
        "think": ["rent it", "build it"],
    }

    run = await run_skill(WORKFLOW, replies, state_dir=str(tmp_path))

    thoughts = [prompt for prompt in run.prompts if prompt.startswith("# Think from one angle")]
    assert [step for step in run.steps if step in FULL_ONLY] == [
        "angles",
        "think",
        "think",
        "reconcile",
    ]
    assert all(str(tmp_path) in prompt for prompt in thoughts)
    assert sorted(name for name in ("operator", "payer") for t in thoughts if name in t) == [
        "operator",
        "payer",
    ]
    assert run.result.state["think"] == ["rent it", "build it"]


async def test_in_a_run_the_worker_chooses_the_mode(tmp_path: Path) -> None:
    """No one has to know it before the question is framed."""
    replies = {"frame": [reported(), reported(mode="quick")], "candidates": [reported()]}

    run = await run_skill(WORKFLOW, replies, state_dir=str(tmp_path))

    assert run.steps[:2] == ["frame", "frame"]
    assert FULL_ONLY.isdisjoint(run.steps)
