"""A story with a loop whose drafts come from a script that uses each answer once."""

from __future__ import annotations

from signoff.agents.scripted import FileScript
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.runtime.engine import Engine
from signoff.runtime.services import Backoff
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog
from tests import preload  # noqa: F401

NAME = "loop"
SCRIPT = """
rules:
  - {step: draft, times: 1, fault: 429}
  - {step: draft, times: 1, text: first}
  - {step: draft, times: 1, text: second}
  - {step: draft, text: third}
"""
EXPECTED = ["first", "second", "third"]


async def draft(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    """Asks for drafts until the third one."""
    text = (await ctx.ask("writer", "Write.")).text
    drafts = [*ctx.step_state.get("drafts", []), text]
    return (Outcome.OK if text == "third" else Outcome.ITERATE), {"drafts": drafts}


WORKFLOW = Workflow(
    "drafts",
    StepDef(
        "draft", handler=draft, next={Outcome.OK: None, Outcome.ITERATE: Edge("draft", bound=9)}
    ),
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts the run or resumes it."""
    script = log.directory / "script.yaml"
    script.write_text(SCRIPT)
    agents = {"writer": log.watch(FileScript(file=script))}
    async with Engine(store, agents=agents, backoff=Backoff(first=0.0)) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(WORKFLOW, name=NAME)
        else:
            result = await engine.resume(NAME, WORKFLOW)
    assert result.status is Status.COMPLETED, result
