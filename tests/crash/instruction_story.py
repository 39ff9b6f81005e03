"""A story of instructions: a worker repeats a step until it is sure, then a sub-agent reviews."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import Dispatch
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "one"
EXPECTED = {
    "look": {"result": "all of it", "confidence": "high"},
    "levels": ["low", "high"],
    "review": {"status": "pass", "notes": "fine"},
}


def decide(
    ctx: StepContext, confidence: Annotated[str, Arg(choices=("low", "high"))] = "low"
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the step until the worker is sure."""
    levels = [*ctx.step_state.get("levels", ()), confidence]
    return (Outcome.OK if confidence == "high" else Outcome.ITERATE), {"levels": levels}


WORKFLOW = Workflow(
    "instructions",
    StepDef("look", "Look", ["Search."], decide, {Outcome.OK: "review", Outcome.ITERATE: "look"}),
    StepDef(
        "review", "Review", ["Judge."], Dispatch("claude"), {Outcome.OK: None, Outcome.FAIL: None}
    ),
    roles={"worker": "claude"},
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run and drives it to its end."""
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    async with Engine(store, agents=agents) as engine:
        if not store.rows():
            await engine.start(WORKFLOW, name=NAME)
        await engine.resume(NAME, WORKFLOW)


def _answer(request: AgentRequest) -> dict[str, Any]:
    """Answers by the prompt alone: a fresh process does not know what was asked before."""
    if "# Review" in request.prompt:
        return {"status": "pass", "notes": "fine"}
    if "some of it" in request.prompt:
        return {"result": "all of it", "confidence": "high"}
    return {"result": "some of it", "confidence": "low"}
