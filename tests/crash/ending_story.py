"""A story that runs a flow to its round limit, without passing."""

from __future__ import annotations

from signoff.core.effects import AgentRequest
from signoff.core.outcome import Status
from signoff.errors import UnknownName
from signoff.flows.compile import compile_flow
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.store.rundir.files import RunFiles
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401
from tests.unit.flows.harness import fails, flow, issue, show_files, step

NAME = "ending"
FLOW = flow(
    (
        step("generate"),
        step("critique"),
        step("adjudicate", agent="policy"),
        step("refine", mode="rewrite", loop_to="critique"),
    ),
    max_iterations=1,
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and writes its directory as the next command would."""
    runs = log.path.parent / "runs"
    workflow = compile_flow(FLOW, "sea")
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    async with Engine(store, agents=agents, files=RunFiles(runs)) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
    show_files(store, runs, NAME)
    assert result.status is Status.LIMIT, result
    final = runs / NAME / "final"
    assert (final / "artifact.md").read_text() == "The see.\n"
    assert (final / "artifact_unreviewed.md").read_text() == "The sea!\n"
    assert "1 round without passing." in (final / "status.md").read_text()


def _answer(request: AgentRequest) -> str:
    if "against clear now" in request.prompt:
        return fails(issue("misspelled", evidence="see"))
    return "The sea!" if "misspelled" in request.prompt else "The see."
