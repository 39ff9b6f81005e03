"""The judge is checked, and the loop ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import ManualAgent
from signoff.core.outcome import Status
from signoff.review.flow.model import AdjudicationConfig, Flow
from signoff.review.flow.state import UNREVIEWED
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import (
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

LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", mode="rewrite", loop_to="review"),
]


async def test_the_approval_of_an_earlier_judge_skips_its_refine_step(tmp_path: Path) -> None:
    """Approving the structure is not approving the style."""
    the_flow = flow(
        [
            step("generate"),
            step("critique", "one"),
            step("adjudicate", "first", agent="policy"),
            step("refine", "fix", mode="rewrite"),
            step("critique", "two"),
            step("adjudicate", "last", agent="policy"),
        ]
    )
    claude = ScriptedAgent(["Text.", passes()])

    result = await play(the_flow, {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert claude.remaining == 0, "the second reading of the same text is not paid for"


@pytest.mark.parametrize(("confirmed", "status"), [(True, Status.LIMIT), (False, Status.COMPLETED)])
async def test_the_dismissal_of_a_critical_finding_is_checked(
    tmp_path: Path, confirmed: bool, status: Status
) -> None:
    """A wrong dismissal of such a finding ships the defect: nobody reports it again."""
    verdict = rules("APPROVED", {"issue_id": "clear-001", "status": "dismissed", "rationale": "no"})
    again = json.dumps({"reason": "I looked again.", "confirmed": confirmed})
    claude = ScriptedAgent(["Text.", fails(issue("bad", "CRITICAL")), verdict, again, "Text!"])

    result = await play(flow(LOOP, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is status
    assert "Is the claim true?" in claude.prompts[3]
    notes = " ".join(result.state["last_adjudication"].get("notes", ()))
    assert ("dismissed by the judge, but it is confirmed by claude" in notes) is confirmed


CLAIM = "It works offline."


def loop(judge: str = "claude") -> list[Any]:
    """Returns a loop whose author rewrites the text."""
    return [
        step("generate"),
        step("critique", "review"),
        step("adjudicate", "judge", agent=judge),
        step("refine", mode="rewrite", loop_to="review"),
    ]


async def test_an_open_finding_is_never_cut(tmp_path: Path) -> None:
    """It was reported again, so it is neither fixed nor overlooked."""
    quotes = ["The app", "is good", "works offline", "It works"]
    found = [issue(f"{quote}?", "MEDIUM", quote) for quote in quotes]
    text = f"The app is good. {CLAIM}"
    claude = ScriptedAgent()
    claude.on("Write the artifact", text, f"{text} Really.")
    claude.on("You review", fails(*found[2:]), fails(*found))
    claude.on("You are the judge", rules("REWRITE"), rules("APPROVED"))

    result = await play(flow(loop(), max_findings=2), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    labels = {each["quote"]: each["label"] for each in result.state["findings"]["entries"]}
    assert labels == {"works offline": "still_open", "It works": "still_open"}


ROUND = [step("generate"), step("critique", "review"), step("adjudicate", "judge")]


@pytest.mark.parametrize("review", [passes(), fails(issue("a matter of taste", "LOW"))])
async def test_the_rules_pass_it_if_no_issue_reaches_the_judge(review: str, tmp_path: Path) -> None:
    """Whether critics found nothing, or nothing that has an effect."""
    claude = ScriptedAgent(["Text.", review])

    result = await play(flow(ROUND), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    verdict = result.state["last_adjudication"]
    assert (verdict["status"], verdict["decisions"]) == ("APPROVED", [])
    assert any("passed by the rules" in note for note in verdict["notes"])
    assert "remarks" not in result.state, "this is no warning"


async def test_one_minor_issue_is_decided_by_the_judge(tmp_path: Path) -> None:
    """It may want it fixed, although it does not block."""
    review = fails(issue("long", "MEDIUM", "Text"))
    claude = ScriptedAgent(["Text.", review, rules("REWRITE", {"issue_id": "clear-001"})])

    result = await play(flow(ROUND, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert claude.remaining == 0


async def test_a_judge_with_instructions_is_always_asked(tmp_path: Path) -> None:
    """They may ask for more than the critics look at."""
    played = flow(
        ROUND, max_iterations=1, adjudication=AdjudicationConfig(instructions="Check the title.")
    )
    claude = ScriptedAgent(["Text.", passes(), rules("REWRITE", bill="Add a title.")])

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert claude.remaining == 0


async def test_a_human_judge_is_always_asked(tmp_path: Path) -> None:
    """Nothing is signed off on behalf of a human."""
    steps = [*ROUND[:2], step("adjudicate", "judge", agent="ann")]
    played = flow(steps, kinds={"ann": "manual"})
    agents: dict[str, Any] = {"claude": ScriptedAgent(["Text.", passes()]), "ann": ManualAgent()}

    result = await play(played, agents, tmp_path)

    assert result.status is Status.WAITING
    assert len(result.inbox) == 1


async def test_a_judge_without_any_critique_is_asked(tmp_path: Path) -> None:
    """Nothing was read, so nobody can say that there is nothing to decide."""
    steps = [ROUND[0], step("critique", "review", constraints=("none*",)), ROUND[2]]
    claude = ScriptedAgent(["Text.", rules("APPROVED")])

    result = await play(flow(steps, [constraint("clear")]), {"claude": claude}, tmp_path)

    assert claude.remaining == 0
    assert result.status is Status.COMPLETED


FIX_LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
]


def incremental(*names: str, **config: Any) -> Flow:
    """Returns a flow with these constraints that reads only what changed."""
    return flow(FIX_LOOP, [lone_constraint(name) for name in names], rereview="changed", **config)


async def test_a_human_decides_about_a_finding_of_the_last_reading_that_escalates(
    tmp_path: Path,
) -> None:
    """The judge must not dismiss it alone, although no critique step is left to ask."""
    store = MemoryStore()
    dismissal = {"issue_id": "short-001", "status": "dismissed", "rationale": "ann allows it"}
    verdicts = [rules("REWRITE"), rules("APPROVED", dismissal)]
    claude = (
        ScriptedAgent()
        .on("Write the artifact", "The see is deep.", "The sea is wide.")
        .on("against clear now", fails(issue("vague", evidence="see")), passes())
        .on("against short now", passes(), fails(issue("a secret", "CRITICAL", "wide")))
        .on("You are the judge", *verdicts)
    )
    played = incremental("clear", "short", default_behavior={"critical": "escalate"})

    waiting = await play(played, {"claude": claude}, tmp_path, store=store)
    result = await answer_and_resume(
        played, {"claude": claude}, tmp_path, store, answer="It is no secret."
    )

    assert waiting.status is Status.WAITING
    assert "a secret" in waiting.inbox[0].prompt
    assert result.status is Status.COMPLETED
    assert "It is no secret." in claude.prompts[-1]
    decided = [each for each in result.state["findings"]["entries"] if each.get("decision")]
    assert [each["decision"] for each in decided] == ["It is no secret."]


async def test_the_fixer_gets_the_findings_of_both_readings(tmp_path: Path) -> None:
    """The critiques of the round were replaced by those of the last reading."""
    claude = (
        ScriptedAgent()
        .on("Write the artifact", "The see is deep.", "The sea is wide.", "The end.")
        .on(
            "against clear now",
            fails(issue("vague", evidence="see")),
            fails(issue("dull words", "MEDIUM", "wide")),
            passes(),
        )
        .on("against short now", passes(), fails(issue("too long", evidence="sea")), passes())
        .on(
            "You are the judge",
            rules("REWRITE", bill="Do it."),
            rules("APPROVED"),
            rules("REWRITE", bill="Do it better."),
            rules("APPROVED"),
        )
    )

    await play(incremental("clear", "short"), {"claude": claude}, tmp_path)

    last = [each for each in claude.prompts if each.startswith("Write the artifact")][-1]
    assert "too long" in last
    assert "dull words" in last


async def test_a_round_in_which_no_review_is_repeated_counts_as_reviewed(tmp_path: Path) -> None:
    """The judge wanted a change that no critic had asked for."""
    claude = (
        ScriptedAgent()
        .on("Write the artifact", "The sea is deep.", "The sea is wide.")
        .on("against clear now", passes(), passes())
        .on("You are the judge", rules("REWRITE", bill="Say wide."), rules("APPROVED"))
    )

    # A judge without instructions is not asked when there is nothing to decide.
    own_view = AdjudicationConfig(instructions="Ask for what is missing.")
    result = await play(incremental("clear", adjudication=own_view), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert claude.remaining == 0
    assert UNREVIEWED not in result.state["last_adjudication"].get("notes", ())
