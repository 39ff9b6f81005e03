"""What a flow file becomes, and a whole loop of it."""

from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import KnownAgent
from signoff.core.errors import InvalidWorkflow
from signoff.core.outcome import Status
from signoff.core.severity import IssueBehavior, Severity
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.review.flow.compile import compile_file, compile_flow
from signoff.review.pure.constraint import ConstraintBehavior
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Capabilities
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import (
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


FLOW = """
goal: Write about the sea.
constraints: {inline: {clear: It is clear.}}
workflow:
  - {step: generate, agent: own}
  - {step: critique}
  - {step: adjudicate, agent: policy}
  - {step: refine, agent: own, loop_to: critique}
"""


@pytest.mark.parametrize("edits", [True, False])
def test_only_an_agent_that_can_edit_files_gets_one(edits: bool, tmp_path: Path) -> None:
    """A program that only answers failed in the refine step, after everything else was paid for."""
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW)
    own = KnownAgent("of a plug-in", declared=lambda: Capabilities(edits_files=edits))

    workflow = compile_file(SourceFile(file), CompileContext(tmp_path, agents={"own": own}))

    handler: Any = workflow.steps["refine"].handler
    assert handler.writes_text is not edits


def test_without_any_project_the_usual_agents_can_do_what_they_declare(tmp_path: Path) -> None:
    """A flow loaded from Python had claude write the whole text again instead of editing it."""
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace("agent: own", "agent: claude"))

    workflow = compile_file(SourceFile(file), CompileContext(tmp_path))

    handler: Any = workflow.steps["refine"].handler
    assert not handler.writes_text


def test_a_check_as_the_agent_of_steps_that_name_none_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace(", agent: own", ""))
    known = {"claude": KnownAgent("x", declared=lambda: Capabilities(deterministic=True))}

    with pytest.raises(InvalidWorkflow, match="'claude' only checks and cannot write"):
        compile_file(SourceFile(file), CompileContext(tmp_path, agents=known))
