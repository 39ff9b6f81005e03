"""Warnings do not stop a run and are stored with it."""

import json
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.core.requests import AnswerableBy, is_open_to_agents
from signoff.review.flow.end_view import report
from signoff.review.flow.model import AdjudicationConfig
from signoff.review.pure.constraint import ConstraintBehavior
from signoff.runtime.result import RunResult
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

ROUND = [step("generate"), step("critique", "review"), step("adjudicate", agent="policy")]
LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", "fix", mode="rewrite", loop_to="review", validation_retries=0),
]


def texts(result: RunResult) -> list[str]:
    return [each["text"] for each in result.state.get("remarks", ())]


async def test_a_critique_that_a_human_decided_on_has_both_notes(tmp_path: Path) -> None:
    """What was wrong with it is the reason for asking."""
    store = MemoryStore()
    claude = ScriptedAgent(["Text.", "Fine!", "Really fine!"])
    await play(flow(ROUND), {"claude": claude}, tmp_path, store=store)

    result = await answer_and_resume(flow(ROUND), {"claude": claude}, tmp_path, store, "pass")

    sent_back, decided = texts(result)
    assert "clear by claude: sent back: " in sent_back
    assert decided == "clear by claude: ann decided: pass"


async def test_a_quote_that_does_not_occur_marks_its_finding(tmp_path: Path) -> None:
    """An unverified finding must not look like any other."""
    doubtful = fails(issue("too long", evidence="words that are not there"))
    claude = ScriptedAgent(["Text.", doubtful, doubtful])

    result = await play(flow(ROUND, max_iterations=1), {"claude": claude}, tmp_path)

    assert texts(result)[0] == (
        "clear by claude: sent back: the evidence of clear-001 is not in the artifact: "
        "words that are not there"
    )
    assert texts(result)[1] == (
        "clear by claude: not found in the artifact: the evidence of clear-001"
    )
    (finding,) = result.state["findings"]["entries"]
    assert finding["unverified"] is True
    flow_report = report(result.state, {})
    assert "too long (unverified) [" in flow_report.details
    assert "1 review: clear by claude: not found" in flow_report.details
    assert flow_report.facts["remarks"] == list(result.state["remarks"])
    status = (tmp_path / "run/final/status.md").read_text()
    assert "too long (unverified) [" in status
    assert "\n  - quote: words that are not there\n" in status
    assert "\n\n## Warnings\n\n- Round 1, review: clear" in status


async def test_an_approval_after_a_review_writes_no_status_file(tmp_path: Path) -> None:
    """Only unusual events are reported."""
    claude = ScriptedAgent(["Text.", passes()])

    result = await play(flow(ROUND), {"claude": claude}, tmp_path)

    assert texts(result) == []
    assert report(result.state, {}).summary == ""
    assert not (tmp_path / "run/final/status.md").exists()


async def test_a_refinement_that_changed_nothing_is_a_warning(tmp_path: Path) -> None:
    """Otherwise the next round looks as if a fix had been tried and had failed."""
    verdict = rules("REWRITE", {"issue_id": "clear-001", "status": "pursuing"}, bill="Fix it.")
    claude = ScriptedAgent(["Text.", fails(issue("bad")), verdict, "Text."])

    result = await play(flow(LOOP, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.state["remarks"][-1] == {
        "round": 1,
        "step": "fix",
        "text": "the refinement changed nothing",
    }


async def test_a_verdict_without_a_bill_gets_the_one_that_is_used(tmp_path: Path) -> None:
    """The file of the verdict showed an empty bill while the author got another one."""
    verdict = rules("REWRITE", {"issue_id": "clear-001", "guidance": "Say it shorter."})
    claude = ScriptedAgent(["Text.", fails(issue("bad")), verdict, "Text!"])

    result = await play(flow(LOOP, max_iterations=1), {"claude": claude}, tmp_path)

    bill = result.state["last_adjudication"]["bill_of_work"]
    assert "clear-001 (HIGH)" in bill
    assert bill.strip() in claude.prompts[-1]
    assert "Say it shorter." in bill
    assert texts(result) == [
        "the judge wrote no work order; one was built from the findings to fix"
    ]


@pytest.mark.parametrize("by", ["human", "agent"])
async def test_a_flow_says_who_may_answer_its_open_questions(tmp_path: Path, by: str) -> None:
    """An agent that drives the run answers only where the flow lets it."""
    made = flow(
        ROUND,
        default_behavior=ConstraintBehavior.from_dict({"CRITICAL": "escalate"}),
        adjudication=AdjudicationConfig(answerable_by=AnswerableBy(by)),
    )
    claude = ScriptedAgent(["Text.", fails(issue("A promise.", severity="CRITICAL"))])

    result = await play(made, {"claude": claude}, tmp_path)

    (item,) = result.inbox
    assert item.kind == "question"
    assert is_open_to_agents(json.loads(item.form)) is (by == "agent")


IN_TWO_PASSES = (
    step("generate"),
    step("critique", "structure", constraints=("structure",)),
    step("adjudicate", "first", agent="policy", scope="previous"),
    step("refine", "fix", mode="rewrite"),
    step("critique", "style", constraints=("style",)),
    step("adjudicate", "second", agent="policy"),
    step("refine", "polish", mode="rewrite", loop_to="structure"),
)


async def test_a_version_reviewed_against_fewer_constraints_is_not_the_best(tmp_path: Path) -> None:
    """A draft without a style review was saved, since it had no style findings yet."""
    claude = (
        ScriptedAgent(["draft", "fixed", "polished", "fixed again", "polished again"])
        .on("against structure now", fails(issue("no end")), passes())
        .on("against style now", fails(issue("dull"), issue("long")), fails(issue("dull")))
    )
    played = flow(IN_TWO_PASSES, [constraint("structure"), constraint("style")], max_iterations=2)

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "polished\n"
    assert "open: 1 HIGH" in (tmp_path / "run/final/status.md").read_text()


async def test_a_review_that_is_not_repeated_counts_for_the_later_version(tmp_path: Path) -> None:
    """With `rereview: changed`, the first draft was the only one read against everything."""
    loop = (
        step("generate"),
        step("critique", "review"),
        step("adjudicate", agent="policy"),
        step("refine", mode="rewrite", loop_to="review"),
    )
    claude = (
        ScriptedAgent(["one see", "two see", "red see"])
        .on(
            "against clear now",
            fails(issue("bad", "CRITICAL", "one see")),
            fails(issue("odd", "HIGH", "two see")),
        )
        .on("against short now", passes())
    )
    constraints = [constraint("clear"), lone_constraint("short")]
    played = flow(loop, constraints, max_iterations=2, rereview="changed")

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "two see\n"
