"""A whole loop, from the draft to the approval."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.core.severity import IssueBehavior, Severity
from signoff.flows.compile import compile_flow
from signoff.review.constraint import ConstraintBehavior
from signoff.runtime.engine import Engine
from signoff.store.rundir.files import RunFiles
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    answer_and_resume,
    constraint,
    fails,
    flow,
    issue,
    passes,
    play,
    step,
)


async def test_every_round_may_ask_a_human_even_if_the_review_is_the_last_step(
    tmp_path: Path,
) -> None:
    """The bound on questions is for each review, not for the run."""
    the_flow = flow(
        [step("generate"), step("critique")],
        default_behavior=ConstraintBehavior({Severity.HIGH: IssueBehavior.ESCALATE}),
        max_iterations=3,
    )
    claude = ScriptedAgent()
    claude.on("You review an artifact", fails(issue("bad")))
    claude.on("Write the artifact", "One.", "Two.", "Three.")
    store = MemoryStore()
    result = await play(the_flow, {"claude": claude}, tmp_path, store=store)
    asked = 0
    while result.status is Status.WAITING:
        asked += 1
        result = await answer_and_resume(the_flow, {"claude": claude}, tmp_path, store, "carry on")

    assert (result.status, asked) == (Status.LIMIT, 3)


async def test_a_constraint_can_be_improved_while_its_critic_waits(tmp_path: Path) -> None:
    """The most common change: the rule was wrong, and the run is in the middle of it."""
    before = flow([step("generate"), step("critique"), step("adjudicate", agent="policy")])
    reworded = constraint("clear", priority=5)
    after = flow(before.config.workflow, [reworded])
    store = MemoryStore()
    claude = ScriptedAgent(["Text.", "what?", "what?", passes()])
    await play(before, {"claude": claude}, tmp_path, store=store)
    workflow = compile_flow(after, "sea")

    async with Engine(store, agents={"claude": claude}, files=RunFiles(tmp_path)) as engine:
        result = await engine.resume("run", workflow, adopt=True)

    assert result.status is Status.COMPLETED, result.reason
    assert "(priority 5)" in claude.prompts[-1]
