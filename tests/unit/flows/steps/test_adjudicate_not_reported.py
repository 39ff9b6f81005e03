"""A finding on an unchanged passage stays open when a critic no longer reports it."""

from pathlib import Path
from typing import Any

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import fails, flow, issue, play, rules, step

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
