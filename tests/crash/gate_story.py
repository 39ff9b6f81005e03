"""A story by hand: a prompt is edited and approved, then a response is created and approved.

The approvals go through the same function as those of every surface, and what the handler reads
and gets from its approver decides what it writes.
"""

from __future__ import annotations

from typing import Any

from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project, open_project
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.errors import UnknownName
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Approval
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import InboxItem, Store
from signoff.store.run_files import RunFiles
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "gate"
EDITS = {"prompt.md": "Write about the sea.\n", "response.md": "By hand.\n"}
"""What the user leaves in each file before approving it."""
LATE = "changed after the approval\n"
EXPECTED = {
    "asked": EDITS["prompt.md"],
    "commands": ["approve prompt.md", "approve response.md"],
    "result": "The sea.\nBy hand.\n",
}
StepResult = tuple[Outcome, dict[str, Any]]


async def gates(ctx: StepContext) -> StepResult:
    """Has a prompt approved, asks with what was approved, and takes a response by hand."""
    await ctx.write("prompt.md", "Write.\n")
    prompt = await ctx.wait(Approval("Send it?", path="prompt.md", edits="accept"), key="prompt")
    reply = await ctx.ask("claude", prompt.content or "")
    await ctx.write("reply.md", f"{reply.text}\n")
    hand = await ctx.wait(Approval("Take it?", path="response.md", edits="accept"), key="response")
    read = await ctx.read("reply.md")
    missing = await ctx.read("missing.md", missing_ok=True)
    commands = [prompt.extras["command"], hand.extras["command"]]
    result = f"{read.text}{hand.content}{missing or ''}"
    return Outcome.OK, {"asked": prompt.content, "commands": commands, "result": result}


async def publish(ctx: StepContext) -> StepResult:
    """Writes what was agreed on."""
    await ctx.write("final/result.md", ctx.step_state["result"])
    return Outcome.OK, {}


WORKFLOW = Workflow(
    "gate",
    StepDef("gates", handler=gates, next={Outcome.OK: "publish"}),
    StepDef("publish", handler=publish, next={Outcome.OK: None}),
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run; the user edits, approves, and edits once more, too late."""
    environment = {"HOME": str(log.directory)}
    init_home(log.directory, environment)
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    with open_project(log.directory, environment) as project:
        project.store.close()
        project.store = store
        files = RunFiles(project.home.runs)
        async with Engine(store, agents=agents, files=files) as engine:
            result = await _start_or_resume(engine, store)
            while result.status is Status.WAITING:
                for item in result.inbox:
                    _approve(project, files, item)
                result = await engine.resume(NAME, WORKFLOW)
        project.directory().catch_up(NAME)
        assert result.status is Status.COMPLETED, result
        for path, text in {**EDITS, "final/result.md": EXPECTED["result"]}.items():
            assert files.read(NAME, path) == str(text).encode(), path


async def _start_or_resume(engine: Engine, store: Store) -> RunResult:
    try:
        store.row(NAME)
    except UnknownName:
        return await engine.start(WORKFLOW, name=NAME)
    return await engine.resume(NAME, WORKFLOW)


def _approve(project: Project, files: RunFiles, item: InboxItem) -> None:
    path = "prompt.md" if item.prompt == "Send it?" else "response.md"
    files.write(NAME, path, EDITS[path])
    extras = {"command": f"approve {path}"}
    record_answer(project, item.id, AnswerInput(True, by="ann", extras=extras))
    files.write(NAME, path, LATE)


def _answer(request: AgentRequest) -> str:
    return "The sea." if request.prompt == EDITS["prompt.md"] else f"not {request.prompt!r}"
