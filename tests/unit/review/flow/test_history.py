"""Tests of the history that is folded from the journal of a flow's run."""

import json
from pathlib import Path
from typing import Any

from signoff.agents.scripted import ScriptedAgent
from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.review.flow.history import FlowHistory
from signoff.review.flow.model import AdjudicationConfig, Flow
from signoff.review.pure.history import ArtifactChanged, IssuesReported, Judgment, ReviewHistory
from signoff.store.sqlite import MemoryStore
from tests.unit.review.flow.harness import (
    REWRITE_LOOP,
    answer_and_resume,
    constraint,
    fails,
    flow,
    issue,
    passes,
    play,
    rules,
    step,
)

CALM_EDIT = {"kind": "replace", "find": "loud", "text": "calm"}


def events(store: MemoryStore) -> list[ev.Event]:
    rows = store.journal(store.row("run").id)
    return [ev.from_json(each) for row in rows for each in decode(row.events, store.blob)]


def fold(store: MemoryStore) -> FlowHistory:
    return FlowHistory(json.loads(store.description(store.row("run").id)))


async def history_of(played: Flow, answers: list[Any], folder: Path) -> ReviewHistory:
    store = MemoryStore()
    await play(played, {"claude": ScriptedAgent(answers)}, folder, store=store)
    return fold(store).follow(events(store)).history


ANSWERS = [
    "The loud sea.",
    fails(issue("Too loud.", evidence="loud", edit=CALM_EDIT), issue("No fish.", "LOW")),
    "The calm sea.",
    passes(),
]


async def test_versions_rounds_findings_and_judgments_are_found(tmp_path: Path) -> None:
    """Everything that shows a review reads this."""
    history = await history_of(flow(REWRITE_LOOP), ANSWERS, tmp_path)

    assert [v.files[""] for v in history.versions] == ["The loud sea.\n", "The calm sea.\n"]
    assert [(v.kind, v.round, v.agent) for v in history.versions] == [
        ("generate", 1, "claude"),
        ("refine", 1, "claude"),
    ]
    assert [(r.number, r.reviewed, r.written) for r in history.rounds] == [(1, 1, (2,)), (2, 2, ())]
    loud, fish = history.findings
    assert (loud.status, fish.status) == ("fixed", "ignored")
    assert history.answers == {loud.id: 2}
    assert [j.verdict for r in history.rounds for j in r.judgments] == ["REWRITE", "APPROVED"]
    assert history.rounds[0].judgments[0].to_fix == (loud.id,)
    assert history.rounds[0].judgments[0].by == "policy"
    assert history.issues[loud.id]["edit"]["text"] == "calm"
    assert (history.passed, history.goal, history.file_name) == (
        True,
        "Write about the sea.",
        "artifact.md",
    )
    assert list(history.constraints) == ["clear"]


async def test_a_dismissal_has_its_judge_and_reason(tmp_path: Path) -> None:
    """Readers want to know who let a finding pass."""
    judged = rules(
        "APPROVED", {"issue_id": "clear-001", "status": "dismissed", "rationale": "Art."}
    )
    answers = ["The loud sea.", fails(issue("Too loud.", evidence="loud")), judged, judged]

    history = await history_of(flow(), answers, tmp_path)

    (found,) = history.findings
    assert history.dismissals[found.id].by == "claude"
    assert history.dismissals[found.id].dismissed == {found.id: "Art."}


async def test_news_arrive_with_the_events_that_cause_them(tmp_path: Path) -> None:
    """A view shows each finding as soon as its critic is done."""
    store = MemoryStore()
    two = (constraint("clear"), constraint("calm"))
    answers = [ANSWERS[0], *2 * [ANSWERS[1]], ANSWERS[2], passes(), passes()]
    await play(flow(REWRITE_LOOP, two), {"claude": ScriptedAgent(answers)}, tmp_path, store=store)
    following = fold(store)

    news = [(event.tag, each) for event in events(store) for each in following.apply(event)]

    reported = [
        each for tag, each in news if isinstance(each, IssuesReported) and tag == "item_finished"
    ]
    assert [(each.constraint, len(each.issues)) for each in reported] == [
        ("clear", 2),
        ("calm", 2),
        ("clear", 0),
        ("calm", 0),
    ]
    (changed,) = [each for _, each in news if isinstance(each, ArtifactChanged)]
    assert (changed.before.number, changed.after.number, changed.round) == (1, 2, 1)
    assert len([each for _, each in news if isinstance(each, Judgment)]) == 2


async def test_a_result_that_waits_for_a_human_is_part_of_it_once(tmp_path: Path) -> None:
    """Someone who decides about more rounds sees the last fix, and it is not counted twice."""
    played = flow(
        REWRITE_LOOP,
        max_iterations=1,
        adjudication=AdjudicationConfig(triggers=("max_iterations",)),
    )
    store, agents = MemoryStore(), {"claude": ScriptedAgent(ANSWERS)}

    await play(played, agents, tmp_path, store=store)
    waiting = fold(store).follow(events(store)).history
    await answer_and_resume(played, agents, tmp_path, store, "stop")
    ended = fold(store).follow(events(store)).history

    assert [len(each.versions) for each in (waiting, ended)] == [2, 2]
    assert waiting.rounds[0].written == (2,)


async def test_a_refinement_that_changes_nothing_is_no_version(tmp_path: Path) -> None:
    """Its round has nothing to show as a diff."""
    steps = (
        *REWRITE_LOOP[:3],
        step("refine", "fix", mode="rewrite", on_invalid="continue", loop_to="review"),
    )
    found = fails(issue("No fish."))
    answers = ["The sea.", found, "The sea.", "The sea.", found]

    history = await history_of(flow(steps, max_iterations=1), answers, tmp_path)

    assert len(history.versions) == 1
    assert history.fix_of(1) is None
