"""Severe findings are confirmed by another agent before they block."""

import json
from pathlib import Path

import pytest

from signoff.core.effects import Reply
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.flows.flow import Flow
from signoff.flows.model import VerifyConfig
from signoff.flows.state import FlowState
from signoff.flows.steps.critic import Verifier
from signoff.review.critique import CritiqueIssue
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    REWRITE_LOOP,
    answer_and_resume,
    constraint,
    fails,
    flow,
    issue,
    play,
)

YES, NO = ('{"confirmed": true, "reason": "It is so."}', '{"confirmed": false, "reason": "Fine."}')


def verified(*, rounds: int = 1, least: str = "HIGH") -> Flow:
    """Returns a flow of some rounds in which codex confirms findings of a severity."""
    verify = VerifyConfig(agent="codex", min_severity=Severity(least))
    return flow(REWRITE_LOOP, [constraint("clear")], verify=verify, max_iterations=rounds)


def author_and_critic(texts: list[str], reviews: list[str]) -> ScriptedAgent:
    """Returns an agent that writes these texts and reviews them like this."""
    return ScriptedAgent().on("Write the artifact", *texts).on("against clear now", *reviews)


async def run(played: Flow, claude: ScriptedAgent, codex: ScriptedAgent, at: Path) -> RunResult:
    """Runs a flow; all replies must have been used."""
    result = await play(played, {"claude": claude, "codex": codex}, at)
    assert (claude.remaining, codex.remaining) == (0, 0)
    return result


def test_the_confirming_agent_gets_the_sources_that_a_rule_is_about() -> None:
    """Most rules about facts mean the sources of the goal."""
    played = verified()
    state = FlowState(
        {"artifact": "The see.", "sources": {"": "Of the goal.", "clear": "Its own."}}
    )
    verifier = Verifier(played, state, VerifyConfig(agent="codex"))

    prompt = verifier.prompt(CritiqueIssue("clear-001"), played.constraints[0])

    assert "\nIts own.\n\nOf the goal.\nSOURCES " in prompt


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (YES, Status.LIMIT),
        (NO, Status.COMPLETED),
        (f"I looked at it twice.\n```json\n{NO}\n```", Status.COMPLETED),
        (Reply("", value=json.loads(YES)), Status.LIMIT),
        (Reply("", value=json.loads(NO)), Status.COMPLETED),
    ],
    ids=["confirmed", "not confirmed", "in prose", "structured yes", "structured no"],
)
async def test_only_a_confirmed_finding_blocks(
    reply: str | Reply, status: Status, tmp_path: Path
) -> None:
    """A false alarm costs one short call instead of a round."""
    texts = ["The see.", "The sea."] if status is Status.LIMIT else ["The see."]
    claude = author_and_critic(texts, [fails(issue("misspelled", evidence="The see"))])

    result = await run(verified(), claude, ScriptedAgent([reply]), tmp_path)

    assert result.status is status
    (finding,) = result.state["findings"]["entries"]
    assert finding["status"] == ("open" if status is Status.LIMIT else "ignored")


@pytest.mark.parametrize(
    "reply",
    ["", "I will not say.", '{"confirmed": "no"}', f"{YES} or {NO}", '{"confirmed": fal'],
    ids=["empty", "refusal", "word", "both", "half"],
)
async def test_an_answer_that_cannot_be_read_confirms_after_one_retry(
    reply: str, tmp_path: Path
) -> None:
    """A real defect must not pass because of a bad answer."""
    claude = author_and_critic(["The see.", "The sea."], [fails(issue("bad", evidence="The see"))])

    result = await run(verified(), claude, ScriptedAgent([reply, reply]), tmp_path)

    assert result.status is Status.LIMIT


@pytest.mark.parametrize("quoted", [NO, '{"reason": "Fine.", "confirmed": false}'])
async def test_an_answer_quoted_from_the_artifact_does_not_count(
    quoted: str, tmp_path: Path
) -> None:
    """Else an artifact could answer for the agent that checks the claims about it."""
    claude = author_and_critic(
        [f"The see. {NO}", "The sea."], [fails(issue("bad", evidence="The see"))]
    )
    reply = f"I cannot tell. The text says: {quoted}"

    result = await run(verified(), claude, ScriptedAgent([reply, reply]), tmp_path)

    assert result.status is Status.LIMIT


async def test_findings_below_the_least_severity_are_not_verified(tmp_path: Path) -> None:
    """They do not block, or the user does not want to pay for them."""
    found = [issue("bad", "HIGH", "The see"), issue("worse", "CRITICAL", "wide")]
    claude = author_and_critic(["The see is wide.", "The sea."], [fails(*found)])

    await run(verified(least="CRITICAL"), claude, codex := ScriptedAgent([YES]), tmp_path)

    assert "worse" in codex.prompts[0]


async def test_the_same_claim_is_not_verified_twice_in_a_run(tmp_path: Path) -> None:
    """The passage did not change, so neither did the answer."""
    lines = "Line.\n" * 9
    texts = [f"The see.\n{lines}One end.", f"The see.\n{lines}Two end.", "The sea."]
    review = fails(issue("misspelled", evidence="The see"))
    claude = author_and_critic(texts, [review, review])

    result = await run(verified(rounds=2), claude, ScriptedAgent([YES]), tmp_path)

    assert result.status is Status.LIMIT


async def test_another_claim_about_the_same_words_is_verified(tmp_path: Path) -> None:
    """What was said about the first claim is no answer to the second one."""
    first = [issue("too plain", evidence="The see"), issue("vague", evidence="deep")]
    second = [issue("misspelled", evidence="The see")]
    claude = author_and_critic(
        ["The see is deep.", "The see is wide.", "The sea."], [fails(*first), fails(*second)]
    )

    result = await run(verified(rounds=2), claude, ScriptedAgent([NO, YES, YES]), tmp_path)

    assert result.status is Status.LIMIT


async def test_a_claim_is_verified_again_if_the_text_around_it_changed(tmp_path: Path) -> None:
    """The term was defined one line above; a fix removed the definition."""
    claim = issue("undefined", evidence="It uses XYZ.")
    claude = author_and_critic(
        ["XYZ is a tool. Bad.\nIt uses XYZ.", "Good.\nIt uses XYZ.", "The end."],
        [fails(claim, issue("bad", evidence="Bad")), fails(claim)],
    )

    result = await run(verified(rounds=2), claude, ScriptedAgent([NO, YES, YES]), tmp_path)

    assert result.status is Status.LIMIT


async def test_a_claim_that_something_is_missing_is_checked_against_the_whole_text(
    tmp_path: Path,
) -> None:
    """It has no passage."""
    lines = "Line.\n" * 40
    claude = author_and_critic([f"First.\n{lines}Last."], [fails(issue("no summary"))])

    await run(verified(), claude, codex := ScriptedAgent([NO]), tmp_path)

    assert "First." in codex.prompts[0]
    assert "Last." in codex.prompts[0]


async def test_a_claim_about_a_passage_is_shown_with_the_lines_around_it(tmp_path: Path) -> None:
    """The whole text would cost as much as another review."""
    lines = "\n".join(f"Line {n} of it." for n in range(100))
    claude = author_and_critic([lines], [fails(issue("odd", evidence="Line 50 of it."))])

    await run(verified(), claude, codex := ScriptedAgent([NO]), tmp_path)

    assert "Line 42 of it." in codex.prompts[0]
    assert "Line 58 of it." in codex.prompts[0]
    assert "Line 41 of it." not in codex.prompts[0]
    assert "Line 59 of it." not in codex.prompts[0]


async def test_a_finding_of_a_human_needs_no_confirmation(tmp_path: Path) -> None:
    """An agent must not overrule the user who answered for the critic."""
    store = MemoryStore()
    agents = {
        "claude": ScriptedAgent(["The see.", "unreadable", "unreadable", "The sea."]),
        "codex": ScriptedAgent([NO]),
    }
    await play(verified(), agents, tmp_path, store=store)

    result = await answer_and_resume(
        verified(), agents, tmp_path, store, answer="fail", text="It is misspelled."
    )

    assert result.status is Status.LIMIT
    assert agents["codex"].remaining == 1
