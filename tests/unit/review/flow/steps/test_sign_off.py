"""Sign-offs: deadlines, and the rounds that a human asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.core.codec import decode
from signoff.core.outcome import Status
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.model import AdjudicationConfig
from signoff.runtime.engine import Engine
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.unit.review.flow.harness import (
    REWRITE_LOOP,
    answer_and_resume,
    fails,
    flow,
    issue,
    passes,
    play,
    show_files,
    step,
)


@pytest.mark.parametrize(
    ("default", "status"), [("approve", Status.COMPLETED), ("reject", Status.REJECTED)]
)
async def test_the_default_counts_once_the_deadline_has_passed(
    default: str, status: Status, tmp_path: Path
) -> None:
    """Before that, a run that is resumed still waits for a human."""
    ending = step("sign_off", deadline=60, default=default)
    workflow = compile_flow(flow([*REWRITE_LOOP, ending]), "sea")
    clock, store = FrozenClock(), MemoryStore()
    agents = {"claude": ScriptedAgent(["The sea.", passes()])}
    async with Engine(store, agents=agents, files=RunFiles(tmp_path), clock=clock) as engine:
        waiting = await engine.start(workflow, name="run")
        clock.advance(59)
        early = await engine.resume("run", workflow)
        clock.advance(1)
        result = await engine.resume("run", workflow)
    show_files(store, tmp_path)

    assert (waiting.status, early.status) == (Status.WAITING, Status.WAITING)
    assert result.status is status, result.reason
    assert result.state["step"]["decision"] == default
    # Only a result without passing has to be explained.
    assert (tmp_path / "run/final/status.md").exists() is (default == "reject")


def questions(store: MemoryStore) -> list[str]:
    """Returns the options of the pending request."""
    (item,) = store.items("run")
    return [option["label"] for option in decode(item.form, store.blob)["options"]]


@pytest.mark.parametrize("loops", [True, False], ids=["fix loops", "fix does not loop"])
async def test_a_round_that_a_human_asks_for_is_not_cut_off_by_the_limit(
    loops: bool, tmp_path: Path
) -> None:
    """A human who asks for changes expects to see them, not to be asked whether to continue."""
    fix = step("refine", "fix", mode="rewrite", **({"loop_to": "review"} if loops else {}))
    signed = flow([*REWRITE_LOOP[:3], fix, step("sign_off")], max_iterations=1)
    # Without a loop, a fix goes back to the human without another review.
    reviews = [passes()] if loops else []
    fixes = [reply for n in (1, 2, 3) for reply in (f"Version {n}.", *reviews)]
    store = MemoryStore()
    agents = {"claude": ScriptedAgent(["Version 0.", passes(), *fixes])}
    result = await play(signed, agents, tmp_path, store=store)

    for number in range(3):
        assert result.status is Status.WAITING
        assert questions(store) == ["approve", "request changes", "reject"], number
        result = await answer_and_resume(
            signed, agents, tmp_path, store, "request changes", f"more of {number}"
        )

    ended = await answer_and_resume(signed, agents, tmp_path, store, "approve")
    assert ended.status is Status.COMPLETED
    assert ended.state["artifact"].strip() == "Version 3."


async def test_a_request_grants_one_round_and_then_the_human_is_asked(tmp_path: Path) -> None:
    """Every loop ends: what the critics object to after that is not granted."""
    signed = flow([*REWRITE_LOOP, step("sign_off")], max_iterations=1)
    store = MemoryStore()
    replies = ["First.", passes(), "Second.", fails(issue("Too short.")), "Third.", passes()]
    agents = {"claude": ScriptedAgent(replies)}
    await play(signed, agents, tmp_path, store=store)

    await answer_and_resume(signed, agents, tmp_path, store, "request changes", "longer")

    (item,) = store.items("run")
    options = decode(item.form, store.blob)["options"]
    described = {each["label"]: each["description"] for each in options}
    assert described == {
        "continue": "allow 1 more round",
        "stop": "end the run now; what it has made so far is kept",
    }
    assert "2 rounds without passing" in item.prompt


@pytest.mark.parametrize("asks", [True, False])
async def test_a_limit_after_a_fix_that_changed_nothing_says_so(asks: bool, tmp_path: Path) -> None:
    """More rounds would cost money and change nothing either."""
    judging = AdjudicationConfig(triggers=("max_iterations",) if asks else ())
    looping = flow(REWRITE_LOOP, max_iterations=1, adjudication=judging)
    store = MemoryStore()
    agents = {"claude": ScriptedAgent(["First.", fails(issue("Too short.")), "First.", "First."])}

    result = await play(looping, agents, tmp_path, store=store)

    assert result.status is (Status.WAITING if asks else Status.LIMIT)
    shown = store.items("run")[0].prompt if asks else result.reason
    assert "1 round without passing; the last fix changed nothing" in shown
