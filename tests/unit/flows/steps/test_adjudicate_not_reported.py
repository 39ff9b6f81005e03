"""A finding on an unchanged passage stays open when a critic no longer reports it."""

import json
from pathlib import Path
from typing import Any

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import fails, flow, issue, passes, play, rules, step

CLAIM = "It works offline."
VERSIONS = [f"The app is {word}.\n\n{CLAIM}" for word in ("good", "fine", "great")]
FOUND = issue("The source does not say so.", evidence=CLAIM)


def loop(judge: str = "claude") -> list[Any]:
    """Returns a loop whose author rewrites the text."""
    return [
        step("generate"),
        step("critique", "review"),
        step("adjudicate", "judge", agent=judge),
        step("refine", mode="rewrite", loop_to="review"),
    ]


def forgetful(*versions: str) -> ScriptedAgent:
    """Returns an agent whose author ignores a finding that its critic reports only once."""
    claude = ScriptedAgent()
    claude.on("Write the artifact", *(versions or VERSIONS))
    claude.on("You review", fails(FOUND), passes())
    return claude


def only(state: Any) -> Any:
    """Returns the only finding of a run."""
    (finding,) = state["findings"]["entries"]
    return finding


async def test_the_rules_pursue_it_until_its_passage_changes(tmp_path: Path) -> None:
    """Without a judge that can dismiss it, the run ends at its limit or with a fix."""
    stuck = await play(flow(loop("policy"), max_iterations=3), {"claude": forgetful()}, tmp_path)
    fixer = forgetful(*VERSIONS[:2], "The app is great.")

    fixed = await play(flow(loop("policy")), {"claude": fixer}, tmp_path / "fixed")

    assert stuck.status is Status.LIMIT, stuck.reason
    assert CLAIM in json.dumps(stuck.state["last_adjudication"]), "the work order is about it"
    assert fixed.status is Status.COMPLETED, fixed.reason
    assert only(fixed.state)["status"] == "fixed"


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
