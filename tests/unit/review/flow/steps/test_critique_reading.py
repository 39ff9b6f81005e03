"""Which critics read again, in which call, and what can join one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.review.flow.model import Flow, VerifyConfig
from signoff.review.flow.state import FlowState
from signoff.review.pure.constraint import Constraint, SourceBlock
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import (
    REWRITE_LOOP,
    answer_and_resume,
    constraint,
    fails,
    flow,
    issue,
    lone_constraint,
    passes,
    play,
    rules,
    step,
)

BOTH = [constraint("clear"), constraint("short")]
DRAFT, FINAL = "The see is very wide.", "The sea is wide."


def looped(constraints: Any = BOTH, steps: Any = REWRITE_LOOP, **config: Any) -> Flow:
    """Returns a flow that reads again only what can have changed."""
    return flow(steps, constraints, **{"rereview": "changed", "max_iterations": 2, **config})


def critic(*second: str, first: int = 2) -> ScriptedAgent:
    """Returns an agent that finds fault with the draft, and answers later readings like this."""
    agent = ScriptedAgent().on("Write the artifact", DRAFT, *[FINAL] * 4)
    for name in ("clear", "short")[:first]:
        agent.on(f"against {name} now", fails(issue(f"not {name}", evidence="The see")))
    return agent.on("against clear and short now", *second)


def reviews(*agents: ScriptedAgent) -> list[str]:
    """Returns the constraints of all reviews in order, those of the first agent first."""
    pattern = re.compile(r"^Review the artifact against (.+) now", re.MULTILINE)
    found = [pattern.search(prompt) for agent in agents for prompt in agent.prompts]
    return [each[1] for each in found if each]


def stored(folder: Path, iteration: int = 2) -> list[Any]:
    """Returns the critiques of a round from the run directory, that of `clear` first."""
    critiques = folder / f"run/iterations/{iteration}/critiques"
    return [json.loads((critiques / f"{c.id}-claude.json").read_text()) for c in BOTH]


async def test_one_reply_becomes_a_critique_for_each_constraint(tmp_path: Path) -> None:
    """The ledger, the behaviors and the run directory see no difference."""
    found = issue("too wide", "MEDIUM", "wide", rule_id="short/short-rule")
    agent = critic(fails(found))

    result = await play(looped(), {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert reviews(agent) == ["clear", "short", "clear and short"]
    clear, short = result.state["critiques_by_step"]["review"]
    assert [clear["overall"], short["overall"]] == ["PASS", "FAIL"]
    (reported,) = short["issues"]
    assert (reported["id"], reported["rule_id"]) == ("short-001", "short-rule")
    assert reported["finding_id"]
    assert reported["behavior"]
    assert [each["overall"] for each in stored(tmp_path)] == ["PASS", "FAIL"]


async def test_an_issue_that_names_no_rule_of_its_constraints_is_sent_back_once(
    tmp_path: Path,
) -> None:
    """The artifact told the critic to report it under a constraint that nobody reads."""
    stray = fails(issue("bad", evidence="wide", rule_id="security/secrets"))
    right = fails(issue("bad", evidence="wide", rule_id="short/short-rule"))
    agent = critic(stray, right)

    await play(looped(), {"claude": agent}, tmp_path)

    retry = next(prompt for prompt in agent.prompts if "security/secrets" in prompt)
    assert "must be one of: clear/clear-rule, short/short-rule" in retry
    assert [len(each["issues"]) for each in stored(tmp_path)] == [0, 1]


async def test_a_finding_under_a_foreign_rule_still_blocks(tmp_path: Path) -> None:
    """A reply must not lose a finding by naming a rule that does not exist."""
    stray = fails(issue("bad", "CRITICAL", "wide", rule_id="security/secrets"))
    agent = critic(stray, stray)

    result = await play(looped(), {"claude": agent}, tmp_path)

    assert result.status is Status.LIMIT
    assert [each["finding"] for each in stored(tmp_path)[0]["issues"]] == ["bad"]
    assert any("no known rule" in each["text"] for each in result.state["remarks"])


UNUSABLE = [
    "It is fine.",
    passes().replace("PASS", "FAIL"),
    passes().replace("[]", '[{"severity":"HIGH","finding":"x","evidence":"OMISSION"}]'),
    f"{passes()}\n{fails(issue('x'))}",
]


@pytest.mark.parametrize("reply", UNUSABLE, ids=range(len(UNUSABLE)))
@pytest.mark.parametrize(
    ("answer", "text", "status", "issues"),
    [
        ("pass", "", Status.COMPLETED, [0, 0]),
        ("fail", "Not yet.", Status.LIMIT, [1, 0]),
        ("retry", "", Status.COMPLETED, [0, 0]),
    ],
)
async def test_a_human_decides_about_a_reply_that_stays_unusable(
    reply: str, answer: str, text: str, status: Status, issues: list[int], tmp_path: Path
) -> None:
    """Nothing passes because one answer about two constraints could not be read."""
    agent, store = critic(reply, reply, passes()), MemoryStore()
    waiting = await play(looped(), {"claude": agent}, tmp_path, store=store)

    result = await answer_and_resume(looped(), {"claude": agent}, tmp_path, store, answer, text)

    assert waiting.status is Status.WAITING
    (item,) = waiting.inbox
    assert "'clear' and 'short'" in item.prompt
    assert json.loads(item.form)["question_id"] == "critique_clear_claude"
    assert result.status is status, result.reason
    assert [len(each["issues"]) for each in stored(tmp_path)] == issues


async def test_at_most_eight_constraints_are_read_in_one_call(tmp_path: Path) -> None:
    """A critic with too much to look for overlooks some of it."""
    names = [f"c{number}" for number in range(1, 11)]
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL)
    agent.on("against c1 now", fails(issue("vague", evidence="The see")))
    agent.on("You review an artifact", *[passes()] * 11)

    result = await play(looped([constraint(name) for name in names]), {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert reviews(agent)[:10] == names
    assert reviews(agent)[10:] == ["c1, c2, c3, c4, c5, c6, c7 and c8", "c9 and c10"]


@pytest.mark.parametrize(
    ("config", "execution"), [({"rereview": "all"}, "parallel"), ({}, "serial")]
)
async def test_other_readings_are_one_call_for_each_constraint(
    config: dict[str, str], execution: str, tmp_path: Path
) -> None:
    """Neither flows that read everything nor serial critics change."""
    steps = [REWRITE_LOOP[0], step("critique", "review", execution=execution), *REWRITE_LOOP[2:]]
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL)
    agent.on("against clear now", fails(issue("vague", "MEDIUM", "The see")), passes())
    agent.on("against short now", fails(issue("long", evidence="The see")), passes())
    played = looped(steps=steps, default_behavior={"medium": "continue"}, **config)

    result = await play(played, {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert reviews(agent) == ["clear", "short", "clear", "short"]


async def test_severe_findings_of_a_combined_reading_are_confirmed(tmp_path: Path) -> None:
    """Each by the rules of its own constraint."""
    found = [issue(n, evidence="wide", rule_id=f"{n}/{n}-rule") for n in ("clear", "short")]
    agent = critic(fails(*found))
    yes, no = '{"confirmed": true, "reason": "a"}', '{"confirmed": false, "reason": "b"}'
    codex = ScriptedAgent().on("It must be clear.", yes, no).on("It must be short.", yes, yes)
    played = looped(verify=VerifyConfig(agent="codex"))

    result = await play(played, {"claude": agent, "codex": codex}, tmp_path)

    assert result.status is Status.LIMIT
    decided = [each["constraint"] for each in result.state["last_adjudication"]["decisions"]]
    assert decided == ["short"]
    assert codex.remaining == 0


async def test_the_judge_is_asked_once_in_a_round_that_reads_the_rest(tmp_path: Path) -> None:
    """What the last reading found is decided together with what was found before it."""
    steps = [*REWRITE_LOOP[:2], step("adjudicate", "judge"), REWRITE_LOOP[3]]
    others = [lone_constraint("short"), lone_constraint("true")]
    low = issue("slow", "LOW", "wide", rule_id="clear-rule")
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL)
    agent.on("against clear now", fails(issue("vague", evidence="The see")), fails(low))
    agent.on("against short now", passes()).on("against true now", passes())
    agent.on("against short and true now", fails(issue("w", "LOW", "wide", rule_id="true")))
    agent.on("You are the judge", rules("REWRITE", {"issue_id": "clear-001"}), rules("APPROVED"))

    result = await play(
        looped([BOTH[0], *others], steps, default_behavior={"low": "continue"}),
        {"claude": agent},
        tmp_path,
    )

    assert result.status is Status.COMPLETED
    assert agent.remaining == 0
    decided = result.state["last_adjudication"]["decisions"]
    assert [each["constraint"] for each in decided] == ["clear", "true"]


VAGUE = fails(issue("vague", evidence="The see"))


def joining(*others: Constraint, **config: Any) -> Flow:
    """Returns a flow that reads again only what can have changed."""
    return flow(REWRITE_LOOP, [constraint("clear"), *others], rereview="changed", **config)


async def test_what_joined_a_call_is_not_read_again_before_the_approval(tmp_path: Path) -> None:
    """The call costs little more, and the one before the approval is saved."""
    agent = ScriptedAgent().on("Write the artifact", DRAFT, FINAL)
    agent.on("against clear now", VAGUE).on("You review an artifact", *[passes()] * 3)

    result = await play(
        joining(constraint("short"), constraint("true")), {"claude": agent}, tmp_path
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

    result = await play(joining(constraint("short")), {"claude": agent}, tmp_path)

    assert result.status is Status.COMPLETED
    assert agent.remaining == 0
    assert result.iteration == 3


@pytest.mark.parametrize(
    "other",
    [
        lone_constraint("short"),
        constraint("short", source=SourceBlock(inline="A long source. " * 100)),
        constraint("short", agents=("codex",)),
    ],
    ids=["a script", "long sources", "another agent"],
)
async def test_a_review_that_would_cost_much_waits_until_it_is_needed(
    other: Constraint, tmp_path: Path
) -> None:
    """The output of a script or the sources of a constraint can be longer than all the rest."""
    agents = {name: ScriptedAgent() for name in ("claude", "codex")}
    agents["claude"].on("Write the artifact", DRAFT, FINAL).on("against clear now", VAGUE, passes())
    for agent in agents.values():
        agent.on("against short now", passes(), passes())

    result = await play(joining(other), agents, tmp_path)

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
        joining(*map(constraint, names), max_iterations=3), {"claude": agent}, tmp_path
    )

    assert result.status is Status.LIMIT
    assert reviews(agent)[10:] == ["clear, c0, c1, c2, c3, c4, c5 and c6"]
