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


async def test_the_judge_decides_about_it(tmp_path: Path) -> None:
    """It can dismiss a false alarm, so that the loop ends, but nothing calls it fixed."""
    claude = forgetful()
    pursued = rules("REWRITE", {"issue_id": "clear-001", "status": "pursuing"})

    def second(request: Any) -> str:
        line = next(x for x in request.prompt.splitlines() if x.endswith("(not reported again)"))
        id_ = line.split()[1].rstrip(":")
        assert f"- {id_} [" in request.prompt, "it is in KNOWN, too"
        decision = {"issue_id": id_, "status": "dismissed", "rationale": "The FAQ says so."}
        return rules("APPROVED", decision)

    claude.on("You are the judge", pursued, second)

    result = await play(flow(loop()), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert only(result.state)["status"] == "dismissed"
    assert only(result.state)["reason"] == "The FAQ says so."
    assert [label for _, label in only(result.state)["history"]] == [
        "new",
        "still_open",
        "dismissed",
    ]


async def test_an_approval_that_does_not_mention_it_does_not_count(tmp_path: Path) -> None:
    """The text still has the problem that the judge itself wanted to be fixed."""
    claude = forgetful()
    claude.on("You are the judge", rules("REWRITE"), rules("APPROVED"), rules("APPROVED"))

    result = await play(flow(loop(), max_iterations=2), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT, result.reason
    assert only(result.state)["status"] == "open"
    assert result.state["rounds"][-1]["open"]["HIGH"] == 1
    assert result.state["rounds"][-1]["fixed"] == 0
    assert result.state["rounds"][-1]["still_open"] == 1


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
