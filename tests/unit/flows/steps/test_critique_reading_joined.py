"""A constraint that need not be read again joins a call that is made for another one anyway."""

import re
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.review.constraint import Constraint
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    REWRITE_LOOP,
    constraint,
    fails,
    flow,
    issue,
    long_constraint,
    passes,
    play,
)

DRAFT, FINAL = "The see is wide.", "The sea is wide."
VAGUE = fails(issue("vague", evidence="The see"))


def looped(*others: Constraint, **config: Any) -> Flow:
    """Returns a flow that reads again only what can have changed."""
    return flow(REWRITE_LOOP, [constraint("clear"), *others], rereview="changed", **config)


def reviews(*agents: ScriptedAgent) -> list[str]:
    """Returns the constraints of all reviews, those of the first agent first."""
    pattern = re.compile(r"^Review the artifact against (.+) now", re.MULTILINE)
    found = [pattern.search(prompt) for agent in agents for prompt in agent.prompts]
    return [each[1] for each in found if each]


async def test_what_joined_a_call_is_not_read_again_before_the_approval(tmp_path: Path) -> None:
    """The call costs little more, and the one before the approval is saved."""
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL)
    agent.on("against clear now", VAGUE).on("You review an artifact", *[passes()] * 3)

    result = await play(
        looped(constraint("short"), constraint("true")), {"claude": agent}, tmp_path
    )

    assert result.status is Status.COMPLETED
    assert reviews(agent) == ["clear", "short", "true", "clear, short and true"]
    assert set(result.state["readings"].values()) == {FlowState(result.state).version}


async def test_a_fix_that_breaks_another_constraint_is_found_in_the_next_round(
    tmp_path: Path,
) -> None:
    """Otherwise it would be found only when everything else is fixed."""
    broken = issue("long", evidence="very, very", rule_id="short/short-rule")
    agent = ScriptedAgent().on("Write the artifact", DRAFT, "The very, very wide sea.", FINAL)
    agent.on("against clear now", VAGUE).on("against short now", passes())
    agent.on("against clear and short now", fails(broken), passes())

    result = await play(looped(constraint("short")), {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert agent.remaining == 0
    assert result.iteration == 3


@pytest.mark.parametrize(
    "other",
    [
        long_constraint("short"),
        constraint("short", script="./check.sh"),
        constraint("short", agents=("codex",)),
    ],
    ids=["long rules", "a script", "another agent"],
)
async def test_a_review_that_would_cost_much_waits_until_it_is_needed(
    other: Constraint, tmp_path: Path
) -> None:
    """The rules, sources and script output of a constraint can be longer than all the rest."""
    agents = {name: ScriptedAgent() for name in ("claude", "codex")}
    agents["claude"].on("Write the artifact", DRAFT, FINAL).on("against clear now", VAGUE, passes())
    for agent in agents.values():
        agent.on("against short now", passes(), passes())

    result = await play(looped(other), agents, tmp_path)

    assert result.status is Status.COMPLETED
    assert sorted(reviews(*agents.values())) == ["clear", "clear", "short", "short"]


async def test_no_call_is_made_only_for_what_could_join_one(tmp_path: Path) -> None:
    """A round over an unchanged text is free, even if a constraint was not read against it."""
    names = [f"c{number}" for number in range(9)]
    persists = fails(issue("vague", evidence="wide", rule_id="clear/clear-rule"))
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL, FINAL, FINAL)
    agent.on("against clear now", VAGUE).on("against clear, c0", persists)
    agent.on("You review an artifact", *[passes()] * 12)

    result = await play(
        looped(*map(constraint, names), max_iterations=3), {"claude": agent}, tmp_path
    )

    assert result.status is Status.LIMIT
    assert reviews(agent)[10:] == ["clear, c0, c1, c2, c3, c4, c5 and c6"]
