"""Literal edits are applied exactly, and everything else is checked."""

from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import ManualAgent
from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Status
from signoff.review.pure.work_order import Edit, EditKind, format_work_order
from signoff.runtime.ports import Agent
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import (
    answer_and_resume,
    fails,
    flow,
    issue,
    passes,
    play,
    rules,
    step,
)

TEXT = "The see is blue.\n\nIt is wet.\n"
SPELLING = Edit(EditKind.REPLACE, "see", "sea", "clear-001")
MORE = Edit(EditKind.INSERT_AFTER, "It is wet.", "\nIt is deep.", "clear-002")
LESS = Edit(EditKind.DELETE, "It is wet.", "", "clear-002")


def loop(mode: str, **fields: Any) -> list[Any]:
    """Returns a loop with a mode of refining."""
    return [
        step("generate"),
        step("critique", "review"),
        step("adjudicate"),
        step("refine", mode=mode, loop_to="review", **fields),
    ]


def pursued(*issues: str) -> list[dict[str, str]]:
    return [{"issue_id": each, "status": "pursuing"} for each in issues]


def edited(text: str) -> Any:
    """Returns an agent's answer that leaves this text in the working copy."""

    def answer(request: AgentRequest) -> Reply:
        assert request.workspace is not None
        (Path(request.workspace) / "artifact.md").write_text(text)
        return Reply("done")

    return answer


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([SPELLING], "The sea is blue.\n\nIt is wet.\n"),
        ([SPELLING, MORE], "The sea is blue.\n\nIt is wet.\nIt is deep.\n"),
        ([SPELLING, LESS], "The sea is blue.\n\n\n"),
    ],
)
async def test_literal_edits_are_applied_exactly_and_cost_nothing(
    edits: list[Edit], after: str, tmp_path: Path
) -> None:
    """No model is asked for what the engine can do itself."""
    found = [issue(edit.issue, evidence=edit.find) for edit in edits]
    verdict = rules(
        "REWRITE", *pursued(*(e.issue for e in edits)), bill=format_work_order(edits, [])
    )
    claude = ScriptedAgent([TEXT, fails(*found), verdict, passes()])

    result = await play(flow(loop("apply")), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert claude.remaining == 0
    assert (tmp_path / "run/final/artifact.md").read_text() == after


async def test_edits_for_dismissed_issues_are_not_applied(tmp_path: Path) -> None:
    """The work order may still list them; the decision counts."""
    bill = format_work_order([SPELLING, LESS], [])
    decisions = [
        {"issue_id": "clear-001", "status": "pursuing"},
        {"issue_id": "clear-002", "status": "dismissed"},
    ]
    found = fails(issue("misspelled", evidence="see"), issue("wet", evidence="It is wet."))
    claude = ScriptedAgent([TEXT, found, rules("REWRITE", *decisions, bill=bill)])

    result = await play(flow(loop("apply"), max_iterations=1), {"claude": claude}, tmp_path)

    assert result.state["artifact"] == "The sea is blue.\n\nIt is wet.\n"


@pytest.mark.parametrize("kind", ["ollama", "local"])
async def test_an_agent_that_only_answers_writes_the_whole_text(kind: str, tmp_path: Path) -> None:
    """Edit mode works with every agent, not only with those that edit files."""
    verdict = rules("REWRITE", *pursued("clear-001"), bill="Fix it.")
    claude = ScriptedAgent(
        [TEXT, fails(issue("bad")), verdict, "The sea.", passes(), rules("APPROVED")]
    )

    the_flow = flow(loop("edit"), kinds={"claude": kind})
    result = await play(the_flow, {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert not any(request.edit for request in claude.requests)
    assert (tmp_path / "run/final/artifact.md").read_text() == "The sea.\n"


async def test_a_human_who_refines_gets_the_text_and_answers_with_a_whole_one(
    tmp_path: Path,
) -> None:
    """A human has no working copy: the text to fix has to be in the request."""
    steps = [*loop("edit")[:3], step("refine", agent="ann", mode="edit", loop_to="review")]
    the_flow = flow(steps, kinds={"ann": "manual"})
    verdict = rules("REWRITE", *pursued("clear-001"), bill="Fix it.")
    claude = ScriptedAgent([TEXT, fails(issue("bad")), verdict, passes(), rules("APPROVED")])
    agents: dict[str, Agent] = {"claude": claude, "ann": ManualAgent()}
    store = MemoryStore()
    waiting = await play(the_flow, agents, tmp_path, store=store)

    result = await answer_and_resume(the_flow, agents, tmp_path, store, "The sea.")

    assert waiting.status is Status.WAITING
    assert TEXT in waiting.inbox[0].prompt
    assert "Fix it." in waiting.inbox[0].prompt
    assert result.status is Status.COMPLETED, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "The sea.\n"


async def test_a_brief_author_writes_again_from_the_goal_and_the_bill_of_work(
    tmp_path: Path,
) -> None:
    """Edits of a text that is then discarded would be recorded as applied, but be lost."""
    spelling = issue("a typo", evidence="see", edit={"kind": "replace", "find": "see", "text": "s"})
    missing = issue("no depth", suggested_fix="Say how deep it is.")
    steps = [
        step("generate", agent="ann", prompt="brief"),
        step("critique", "review", agent="bob"),
        step("adjudicate", agent="policy"),
        step("refine", agent="ann", mode="apply", prompt="brief", loop_to="review"),
    ]
    author = ScriptedAgent([TEXT, "It is 3 km deep."])
    critic = ScriptedAgent([fails(spelling, missing), passes()])

    result = await play(flow(steps), {"ann": author, "bob": critic}, tmp_path)

    assert result.status is Status.COMPLETED
    assert result.state["artifact"] == "It is 3 km deep.\n"
    assert author.prompts[1] == f"{author.prompts[0].strip()} Say how deep it is.\n"


async def test_a_brief_author_is_not_asked_when_exact_edits_are_enough(tmp_path: Path) -> None:
    """Literal edits cost nothing and change nothing else."""
    edit = {"kind": "replace", "find": "see", "text": "sea"}
    steps = [
        step("generate", agent="ann", prompt="brief"),
        step("critique", "review", agent="bob"),
        step("adjudicate", agent="policy"),
        step("refine", agent="ann", mode="apply", prompt="brief", loop_to="review"),
    ]
    author = ScriptedAgent([TEXT])
    critic = ScriptedAgent([fails(issue("a typo", evidence="see", edit=edit)), passes()])

    result = await play(flow(steps), {"ann": author, "bob": critic}, tmp_path)

    assert result.state["artifact"] == TEXT.replace("see", "sea")


async def test_the_judges_instructions_reach_the_agent_along_with_exact_edits(
    tmp_path: Path,
) -> None:
    """The judge's own instructions were replaced by the critic's finding."""
    words = "### Issue: clear-002 (HIGH)\n\nSay what makes it wet, in the manner of a child."
    bill = (
        f"# Bill of work\n\n{format_work_order([SPELLING], [])}\n{words}\n\n## Dismissed\n\nnothing"
    )
    claude = ScriptedAgent(
        [
            TEXT,
            fails(issue("misspelled", evidence="see"), issue("dry", evidence="It is wet.")),
            rules("REWRITE", *pursued("clear-001", "clear-002"), bill=bill),
            edited("The sea is blue.\n\nIt is wet with rain.\n"),
            passes(),
            rules("APPROVED"),
        ]
    )

    result = await play(flow(loop("apply")), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    asked = claude.prompts[3]
    assert f"\n{words}\nBILL_OF_WORK" in asked
    assert "clear-001" not in asked


async def test_only_the_rest_of_a_partly_applied_entry_goes_to_the_agent(tmp_path: Path) -> None:
    """An agent must not look for words that are already replaced."""
    twice = Edit(EditKind.REPLACE, "is", "was", "clear-001")
    entry = format_work_order([SPELLING], []) + format_work_order([twice], []).partition("\n")[2]
    claude = ScriptedAgent(
        [
            TEXT,
            fails(issue("misspelled", evidence="see")),
            rules("REWRITE", *pursued("clear-001"), bill=entry),
            edited("The sea was blue.\n\nIt was wet.\n"),
            passes(),
            rules("APPROVED"),
        ]
    )

    result = await play(flow(loop("apply")), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert "```\nis\n```" in claude.prompts[3]
    assert "```\nsee\n```" not in claude.prompts[3]


@pytest.mark.parametrize(
    ("left", "repeats", "status"),
    [(" \n", 1, Status.LIMIT), ("x ", 4_000_001, Status.WAITING)],
    ids=["nothing", "without end"],
)
async def test_an_edit_that_leaves_no_artifact_is_rejected(
    left: str, repeats: int, status: Status, tmp_path: Path
) -> None:
    """An emptied file, or one that fills the disk, would be reviewed and paid for."""
    verdict = rules("REWRITE", *pursued("clear-001"), bill="Fix it.")
    claude = ScriptedAgent([TEXT, fails(issue("clear-001")), verdict])
    claude.on("The artifact is the file", edited(left * repeats))

    result = await play(flow(loop("edit"), max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is status, result.reason
    assert result.state["artifact"] == TEXT
