"""Before an approval ends the run, everything is read that was not read in its current form."""

from pathlib import Path
from typing import Any

from signoff.core.outcome import Status
from signoff.flows.flow import Flow
from signoff.flows.model import AdjudicationConfig
from signoff.flows.state import UNREVIEWED
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    answer_and_resume,
    fails,
    flow,
    issue,
    long_constraint,
    passes,
    play,
    rules,
    step,
)

LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
]


def incremental(*names: str, **config: Any) -> Flow:
    """Returns a flow with these constraints that reads only what changed."""
    return flow(LOOP, [long_constraint(name) for name in names], rereview="changed", **config)


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
