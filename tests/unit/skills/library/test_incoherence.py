import json
from pathlib import Path
from typing import Any

from signoff.core.outcome import Status
from signoff.runtime.dispatch import AgentRole
from signoff.skills.library.incoherence import WORKFLOW
from tests.unit.runtime.engine_fixture import EngineFixture
from tests.unit.skills.library.skill_runs import run_skill


async def test_nothing_is_edited_before_it_was_decided(tmp_path: Path) -> None:
    """Which side is right is not for the agent to say."""
    decisions = "K1: requests time out after 30 s (docs/limits.md:12)"

    run = await run_skill(WORKFLOW, {"settle": [decisions]}, state_dir=str(tmp_path))

    order = ["sources", "collect", "compare", "confirm", "options", "settle", "apply", "verify"]
    assert run.steps == [*order, "report"]
    assert decisions in run.prompts[run.steps.index("apply")]


QUESTION = """<needs_user_input>
  <question header="K1">
    <text>How long may a request take?</text>
    <option label="30 s">What the documents say.</option>
    <option label="60 s">What the code does.</option>
  </question>
</needs_user_input>"""


async def test_a_contradiction_is_put_to_the_user_and_the_answer_comes_back(tmp_path: Path) -> None:
    """The run waits for the answer, and asks the same sub-agent again with it."""
    bench = EngineFixture()
    bench.agent.on("# Settle them", QUESTION, "K1: 60 s")
    worker: dict[str, Any] = {"result": "done", "coverage": "complete"}
    for step in WORKFLOW.steps.values():
        bench.agent.on(f"# {step.title}\n", json.dumps(worker) if step.id == "collect" else "done")
    agents = dict.fromkeys(["worker", AgentRole.GENERAL_PURPOSE.value], bench.agent)
    await bench.restart(agents=agents)

    waiting = await bench.start(WORKFLOW, state_dir=str(tmp_path))
    calls = len(bench.agent.prompts)
    early = await bench.resume(WORKFLOW)
    (request,) = early.inbox
    bench.answer({"K1": "60 s"})
    result = await bench.resume(WORKFLOW)

    assert (waiting.status, early.status) == (Status.WAITING, Status.WAITING)
    assert "How long may a request take?" in request.form
    assert result.status is Status.COMPLETED
    assert result.state["settle"] == "K1: 60 s"
    again = bench.agent.prompts[calls]
    assert '<choice label="60 s">What the code does.</choice>' in again
    assert str(tmp_path) in again
    await bench.close()
