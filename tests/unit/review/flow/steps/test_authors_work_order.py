"""What the agent that carries out a work order gets besides it."""

import json
from pathlib import Path
from typing import Any

from signoff.core.effects import AgentRequest, Reply
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import constraint, fails, flow, issue, passes, play, rules, step

TEXT = "The see is blue.\n"
BILL = "### Issue: clear-001 (HIGH)\n\nCorrect the spelling.\n"
FOUND = issue(
    "Misspelled.",
    evidence="The see",
    rule_id="clear-rule",
    location="first line",
    suggested_fix="Write sea.",
    id="clear-001",
)
PURSUED = {"issue_id": "clear-001", "status": "pursuing"}


def approving(*issues: Any, note: str) -> str:
    critique = json.loads(fails(*issues))
    return json.dumps({**critique, "approved_sections": [{"location": "end", "note": note}]})


def edited(text: str) -> Any:
    """Returns an agent's answer that leaves this text in the working copy."""

    def answer(request: AgentRequest) -> Reply:
        assert request.workspace is not None
        (Path(request.workspace) / "artifact.md").write_text(text)
        return Reply("done")

    return answer


async def test_a_fixer_gets_findings_rules_constraints_and_approved_passages(
    tmp_path: Path,
) -> None:
    """It would otherwise fix one rule by breaking another, and not know what is wrong."""
    the_flow = flow(
        [step("generate"), step("critique", "r"), step("adjudicate"), step("refine", loop_to="r")],
        [constraint("clear"), constraint("short")],
    )
    claude = ScriptedAgent()
    claude.on("Write the artifact", TEXT)
    claude.on("against clear now", approving(FOUND, note="the color"), passes())
    claude.on("against short now", passes())
    claude.on("You are the judge", rules("REWRITE", PURSUED, bill=BILL), rules("APPROVED"))
    claude.on("The artifact is the file", edited("The sea is blue.\n"))

    await play(the_flow, {"claude": claude}, tmp_path)

    (fixer,) = [p for p in claude.prompts if p.startswith("The artifact is the file")]
    assert "[HIGH] clear-001 violates clear-rule: It must be clear.\n" in fixer
    for text in ("Misspelled.", "quote: The see", "location: first line", "fix: Write sea."):
        assert text in fixer
    assert "Be short." in fixer
    assert "- end: the color" in fixer


async def test_after_a_refinement_the_author_knows_that_the_work_is_done(tmp_path: Path) -> None:
    """A literal model would make every insertion a second time."""
    the_flow = flow(
        [step("generate"), step("critique"), step("adjudicate"), step("refine")], max_iterations=2
    )
    claude = ScriptedAgent()
    claude.on("Write the artifact", TEXT, "The sea is blue.\n")
    claude.on("You review", fails(FOUND), passes())
    claude.on("You are the judge", rules("REWRITE", PURSUED, bill=BILL), rules("APPROVED"))
    claude.on("The artifact is the file", edited("The sea is blue.\n"))

    await play(the_flow, {"claude": claude}, tmp_path)

    _, second = [p for p in claude.prompts if p.startswith("Write the artifact")]
    assert "so do not make any of its changes twice" in second
    assert "with that work done" not in second


async def test_a_fixer_that_changed_nothing_is_told_the_next_time(tmp_path: Path) -> None:
    """It may have answered instead of editing the file."""
    the_flow = flow(
        [step("generate"), step("critique", "r"), step("adjudicate"), step("refine", loop_to="r")],
        max_iterations=2,
    )
    claude = ScriptedAgent()
    claude.on("Write the artifact", TEXT)
    claude.on("You review", fails(FOUND), fails(FOUND))
    judged = rules("REWRITE", PURSUED, bill=BILL)
    claude.on("You are the judge", judged, judged)
    claude.on("The artifact is the file", edited(TEXT), edited("The sea is blue.\n"))

    await play(the_flow, {"claude": claude}, tmp_path)

    first, second = [p for p in claude.prompts if p.startswith("The artifact is the file")]
    assert "Your last edit changed nothing" not in first
    assert "Your last edit changed nothing" in second


async def test_a_fixer_gets_the_critics_exact_edit_that_the_work_order_leaves_out(
    tmp_path: Path,
) -> None:
    """A judge often writes the change in plain words; the critic had it to the letter."""
    edit = {"kind": "replace", "find": "The  see", "text": "The sea,\nas seen,"}
    the_flow = flow(
        [step("generate"), step("critique", "r"), step("adjudicate"), step("refine", loop_to="r")],
    )
    claude = ScriptedAgent()
    claude.on("Write the artifact", "The  see is blue.\n")
    claude.on("You review", fails({**FOUND, "edit": edit}), passes())
    claude.on("You are the judge", rules("REWRITE", PURSUED, bill=BILL), rules("APPROVED"))
    claude.on("The artifact is the file", edited("The sea,\nas seen, is blue.\n"))

    await play(the_flow, {"claude": claude}, tmp_path)

    (fixer,) = [p for p in claude.prompts if p.startswith("The artifact is the file")]
    assert (
        "  exact edit, the text after each |: replace\n    |The  see\n"
        "  with\n    |The sea,\n    |as seen,\n"
    ) in fixer


async def test_a_fixer_gets_a_pursued_finding_that_the_work_order_forgets(tmp_path: Path) -> None:
    """It would stay, and cost another round."""
    color = issue("It is green.", evidence="is blue", id="clear-002", suggested_fix="Write green.")
    the_flow = flow(
        [step("generate"), step("critique", "r"), step("adjudicate"), step("refine", loop_to="r")],
    )
    claude = ScriptedAgent()
    claude.on("Write the artifact", TEXT)
    claude.on("You review", fails(FOUND, color), passes())
    both = (PURSUED, {"issue_id": "clear-002", "status": "pursuing"})
    claude.on("You are the judge", rules("REWRITE", *both, bill=BILL), rules("APPROVED"))
    claude.on("The artifact is the file", edited("The sea is green.\n"))

    await play(the_flow, {"claude": claude}, tmp_path)

    (fixer,) = [p for p in claude.prompts if p.startswith("The artifact is the file")]
    assert "[HIGH] clear-002 violates clear" in fixer
    assert "suggested fix: Write green." in fixer
