"""Which critics read again, and what is not asked twice."""

import re
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.review.flow.model import ConvergenceConfig
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import (
    REWRITE_LOOP,
    answer_and_resume,
    fails,
    flow,
    issue,
    lone_constraint,
    passes,
    play,
    rules,
    step,
)

CONSTRAINTS = [lone_constraint(name) for name in ("clear", "short", "true")]


def critics(**replies: list[str]) -> ScriptedAgent:
    """Returns an agent that answers as the critic of constraints, and as the author.

    `short_and_true` is the critic that reads for both of them in one call.
    """
    agent = ScriptedAgent()
    for name, answers in replies.items():
        agent.on(f"Review the artifact against {name.replace('_', ' ')} now", *answers)
    return agent


def reviews(agent: ScriptedAgent) -> list[str]:
    """Returns the constraints of all reviews, in order."""
    asked = re.compile(r"^Review the artifact against (.+) now", re.MULTILINE)
    found = map(asked.search, agent.prompts)
    return [each[1] for each in found if each]


async def test_only_constraints_with_findings_are_read_again_until_approval(
    tmp_path: Path,
) -> None:
    """Before the approval, everything is read once in its final form."""
    agent = critics(
        clear=[fails(issue("vague", evidence="The see")), passes()],
        short=[passes()],
        true=[passes()],
        short_and_true=[passes()],
    )
    agent.on("Write the artifact", "The see is wide.", "The sea is wide.")

    result = await play(
        flow(REWRITE_LOOP, CONSTRAINTS, rereview="changed"), {"claude": agent}, tmp_path
    )

    assert result.status is Status.COMPLETED
    assert reviews(agent) == ["clear", "short", "true", "clear", "short and true"]
    assert result.state["readings"].keys() == {"clear/claude", "short/claude", "true/claude"}


async def test_a_round_that_is_not_approved_reads_only_what_can_have_changed(
    tmp_path: Path,
) -> None:
    """That is where the money goes: most rounds are not the last."""
    agent = critics(
        clear=[fails(issue("vague", evidence=f"the {n} see")) for n in ("one", "two", "red")],
        short=[passes()],
        true=[passes()],
    )
    agent.on("Write the artifact", *(f"It is the {n} see." for n in ("one", "two", "red", "new")))

    result = await play(
        flow(REWRITE_LOOP, CONSTRAINTS, rereview="changed", max_iterations=3),
        {"claude": agent},
        tmp_path,
    )

    assert result.status is Status.LIMIT
    assert reviews(agent) == ["clear", "short", "true", "clear", "clear"]


async def test_a_constraint_is_read_again_if_a_passage_it_cited_has_changed(
    tmp_path: Path,
) -> None:
    """Its minor finding was set aside, but the words it was about are other words now."""
    minor = issue("long", "LOW", evidence="very wide")
    agent = critics(
        clear=[fails(issue("vague", evidence="see"))],
        short=[fails(minor)],
        true=[passes()],
        clear_and_short=[fails(issue("vague", evidence="sae", rule_id="clear/clear-rule"))],
    )
    agent.on("Write the artifact", "The see is very wide.", "The sae is wide.", "The end.")

    await play(
        flow(REWRITE_LOOP, CONSTRAINTS, rereview="changed", max_iterations=2),
        {"claude": agent},
        tmp_path,
    )

    assert reviews(agent) == ["clear", "short", "true", "clear and short"]


async def test_a_round_over_the_same_text_is_free(tmp_path: Path) -> None:
    """Neither critics nor the judge are asked what they have answered."""
    loop = [*REWRITE_LOOP[:2], step("adjudicate", "judge"), REWRITE_LOOP[3]]
    agent = critics(clear=[fails(issue("vague", evidence="see"))])
    agent.on("Write the artifact", "The see.", "The see.", "The see.")
    agent.on("You are the judge", rules("REWRITE", {"issue_id": "clear-001"}))

    result = await play(flow(loop, CONSTRAINTS[:1], max_iterations=3), {"claude": agent}, tmp_path)

    assert result.status is Status.LIMIT
    assert agent.remaining == 0
    assert result.spend.calls == 6, "one review, one verdict, one draft, three revisions"


async def test_a_text_that_does_not_change_does_not_converge(tmp_path: Path) -> None:
    """Where a stop rule is configured; plain flows continue to their limit."""
    agent = critics(clear=[fails(issue("vague", evidence="see"))])
    agent.on("Write the artifact", "The see.", "The see.")
    rule = ConvergenceConfig(plateau=5)

    result = await play(
        flow(REWRITE_LOOP, CONSTRAINTS[:1], max_iterations=9, convergence=rule),
        {"claude": agent},
        tmp_path,
    )

    assert result.status is Status.NOT_CONVERGING
    assert "unchanged" in result.reason
    assert agent.remaining == 0


@pytest.mark.parametrize(("model", "calls"), [("small", 1), ("large", 2)])
async def test_only_the_same_model_is_not_asked_again(
    model: str, calls: int, tmp_path: Path
) -> None:
    """Another model's answer is another opinion."""
    steps = [
        step("generate"),
        step("critique", "first", model="small"),
        step("critique", "second", model=model),
        step("adjudicate", "judge", agent="policy"),
    ]
    agent = critics(clear=[passes()] * calls)
    agent.on("Write the artifact", "The sea.")

    result = await play(flow(steps, CONSTRAINTS[:1]), {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert reviews(agent) == ["clear"] * calls


async def test_a_critic_is_asked_again_after_a_human_has_given_guidance(tmp_path: Path) -> None:
    """The text is the same, but the question is not."""
    store = MemoryStore()
    found = fails(issue("vague", evidence="see", rule_id="r"))
    agent = critics(clear=[found, passes()])
    agent.on("Write the artifact", "The see.", "The see.")
    played = flow(REWRITE_LOOP, CONSTRAINTS[:1], default_behavior={"high": "escalate"})

    await play(played, {"claude": agent}, tmp_path, store=store)
    result = await answer_and_resume(played, {"claude": agent}, tmp_path, store, answer="It's fine")

    assert result.status is Status.COMPLETED
    assert agent.remaining == 0
    assert "It's fine" in agent.prompts[-1]
