"""A story of a skill: its work is done in rounds, fails its review, is fixed and passes."""

from __future__ import annotations

import json
from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.skills.qr import QRGate, qr_file, record
from signoff.skills.state import STATE_DIR
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME, PHASE = "one", "plan-design"
ITEM = {"id": "a", "check": "there is a test", "severity": "MUST"}
EXPECTED_REVIEW = {
    "status": "pass",
    "action": "proceed",
    "notes": "round 2, 0 of 1 items did not pass",
    "findings": [],
    "iteration": 2,
    "passed": {"a": "MUST"},
}
OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE


def write(
    ctx: StepContext,
    done: Annotated[str, Arg(choices=("no", "yes"))] = "no",
    iteration: Annotated[int, Arg(min=1, max=3)] = 1,
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the step until the worker is done."""
    rounds = [*ctx.step_state.get("rounds", ()), iteration]
    return (OK if done == "yes" else ITERATE), {"rounds": rounds}


WORKFLOW = Workflow(
    "skill",
    StepDef("write", "Write", ["Write it."], write, {OK: "review", ITERATE: "write"}),
    StepDef("review", "Review", ["Judge it."], QRGate(phase=PHASE), {OK: "report", FAIL: "fix"}),
    StepDef("fix", "Fix", ["Fix what failed."], next={OK: "review"}),
    StepDef("report", "Report", ["Sum it up."], next={OK: None}),
    inputs=[STATE_DIR],
    roles={"worker": "claude", "quality-reviewer": "claude"},
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run and drives it to its end."""
    folder = log.directory / "state"
    folder.mkdir(exist_ok=True)

    def answer(request: AgentRequest) -> Any:
        """Answers by the prompt and the files alone: a fresh process knows nothing else."""
        title = next(line for line in request.prompt.splitlines() if line.startswith("# "))
        file = qr_file(folder, PHASE)
        if title == "# Write":
            return {"result": "text", "done": "yes" if '"done": "no"' in request.prompt else "no"}
        if title == "# Fix":
            (folder / "test.py").write_text("assert True")
            return "fixed"
        if title == "# Report":
            return "done"
        if not file.exists():
            file.write_text(json.dumps({"phase": PHASE, "iteration": 1, "items": [ITEM]}))
        elif (folder / "test.py").exists():
            record(file, "a", "PASS")
        else:
            record(file, "a", "FAIL", "there is none")
        return {"status": "pass", "notes": "recorded"}

    agents = {"claude": log.watch(ScriptedAgent().on("", answer))}
    async with Engine(store, agents=agents) as engine:
        if not store.rows():
            await engine.start(WORKFLOW, {"state_dir": str(folder)}, name=NAME)
        await engine.resume(NAME, WORKFLOW)
