"""A story of a flow that reads again only what can have changed, and has findings confirmed."""

from __future__ import annotations

import json

from signoff.core.effects import AgentRequest
from signoff.core.outcome import Status
from signoff.errors import UnknownName
from signoff.flows.compile import compile_flow
from signoff.flows.model import VerifyConfig
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.store.rundir.files import RunFiles
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401
from tests.unit.flows.harness import constraint, fails, flow, issue, passes, rules, step

NAME = "rereview"
DRAFT, FINAL = "The see is wide.", "The sea is wide."
FLOW = flow(
    (
        step("generate"),
        step("critique", "review"),
        step("adjudicate", "judge"),
        step("refine", "fix", mode="rewrite", loop_to="review"),
    ),
    [constraint(name) for name in ("clear", "short", "true", "calm")],
    rereview="changed",
    verify=VerifyConfig(agent="codex"),
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run until it is approved in its second round."""
    runs = log.path.parent / "runs"
    workflow = compile_flow(FLOW, "sea")
    answers = {"claude": _answer, "codex": _confirm}
    agents = {name: log.watch(ScriptedAgent().on("", each)) for name, each in answers.items()}
    async with Engine(store, agents=agents, files=RunFiles(runs)) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
    assert result.status is Status.COMPLETED, result
    assert (runs / NAME / "final/artifact.md").read_text() == f"{FINAL}\n"
    assert result.iteration == 2
    assert {each["constraint_id"] for each in result.state["critiques_by_step"]["review"]} == {
        each.id for each in FLOW.constraints
    }


def _answer(request: AgentRequest) -> str:
    prompt = request.prompt
    if "You are the judge" in prompt:
        return rules("REWRITE", {"issue_id": "clear-001"}, {"issue_id": "short-001"})
    if "Write the artifact" in prompt:
        return FINAL if "vague" in prompt else DRAFT
    if "against clear now" in prompt or "against short now" in prompt:
        return fails(issue("vague", evidence="The see"))
    if "against clear and short now" in prompt and "not accepted" not in prompt:
        # A rule of another constraint: the answer is sent back.
        return fails(issue("foreign", evidence="The sea", rule_id="true/true-rule"))
    if "against true and calm now" in prompt:
        return fails(issue("false alarm", evidence="wide", rule_id="calm/calm-rule"))
    return passes()


def _confirm(request: AgentRequest) -> str:
    return json.dumps({"reason": "I read it.", "confirmed": "false alarm" not in request.prompt})
