"""Three sessions of a small profile: by hand, fully automatic, and with mixed approvers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.app.answering import AnswerInput, record_answer
from signoff.app.home import init_home
from signoff.app.project import Project, open_project
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.notation import CompileContext
from signoff.profiles import (
    ApprovalDecision,
    ApprovalProvider,
    ApprovalProviderFactory,
    ApprovalResult,
    ProcessingResult,
    ProfileFactory,
    WorkflowProfile,
    WorkflowStatus,
    WriteOp,
    WritePlan,
)
from signoff.profiles.compile import _code_digest, resolve
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import InboxItem, Store
from signoff.store.rundir.files import RunFiles
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "session"
CONTEXT = {"subject": "the sea"}


def verdict(word: str, issues: int = 0) -> str:
    """Returns a review with that verdict."""
    return (
        f"@@@REVIEW_META\nverdict: {word}\nissues_total: {issues}\nissues_critical: 0\n"
        "missing_inputs: 0\n@@@\n"
    )


class PoemProfile(WorkflowProfile):
    """Writes a poem of two files."""

    @classmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        schema = {"subject": {"type": "string", "required": True}}
        return {"name": "poem", "description": "a poem", "context_schema": schema}

    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        return f"Plan a poem about {context['subject']}."

    def generate_generation_prompt(self, context: Mapping[str, Any]) -> str:
        return "Write it. The plan: {{PLAN}}"

    def generate_review_prompt(self, context: Mapping[str, Any]) -> str:
        return "Review it: {{CODE}}"

    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        return "Fix it: {{CODE}} {{REVIEW}}"

    def process_planning_response(self, content: str) -> ProcessingResult:
        return ProcessingResult(status=WorkflowStatus.SUCCESS)

    def process_generation_response(self, content: str) -> ProcessingResult:
        writes = [WriteOp(path="poem.txt", content=content), WriteOp(path="b/c.txt", content="c")]
        return ProcessingResult(status=WorkflowStatus.SUCCESS, write_plan=WritePlan(writes=writes))

    def process_review_response(self, content: str) -> ProcessingResult:
        return ProcessingResult(status=WorkflowStatus.SUCCESS)

    def process_revision_response(self, content: str) -> ProcessingResult:
        return self.process_generation_response(content)


# Read here, once, and not in each of the processes that the crash harness forks.
_code_digest(PoemProfile)


class FirstRejects(ApprovalProvider):
    """Rejects a plan that does not mention that it is better."""

    def evaluate(self, *, files: Mapping[str, str | None], **_stage: Any) -> ApprovalResult:
        text = next(iter(files.values())) or ""
        if "better" in text:
            return ApprovalResult(decision=ApprovalDecision.APPROVED)
        return ApprovalResult(decision=ApprovalDecision.REJECTED, feedback="make it better")


BY_HAND: dict[str, Any] = {}
AUTOMATIC: dict[str, Any] = {
    "providers": {"default": "claude"},
    "approval": {"default_approver": "skip"},
    "max_iterations": 2,
}
MIXED: dict[str, Any] = {
    "providers": {"default": "claude", "generator": "manual"},
    "approval": {
        "stages": {
            "plan.prompt": "skip",
            "plan.response": {"approver": "first-rejects", "max_retries": 1},
            "generate.response": "codex",
            "review.prompt": "codex",
            "review.response": "skip",
        }
    },
}

EDITS = {
    "iteration-1/planning-prompt.md": "Plan a poem about the sea, in two lines.\n",
    "iteration-1/planning-response.md": "line one, line two\n",
    "iteration-1/generation-prompt.md": "Write two lines.\n",
    "iteration-1/generation-response.md": "waves\nwaves\n",
    "iteration-1/review-prompt.md": "Review two lines.\n",
    "iteration-1/review-response.md": verdict("FAIL", 1),
    "iteration-2/revision-prompt.md": "Fix a line.\n",
    "iteration-2/revision-response.md": "waves\nfoam\n",
    "iteration-2/review-prompt.md": "Review again.\n",
    "iteration-2/review-response.md": verdict("PASS"),
}
"""What the user leaves in each file of a session by hand before approving it."""

MIXED_EDITS = {"iteration-1/generation-response.md": "waves\nwaves\n"}


async def by_hand(store: Store, log: EffectLog) -> None:
    """Edits every file before it is approved."""
    await _session(store, log, BY_HAND, EDITS, Status.COMPLETED)


async def automatic(store: Store, log: EffectLog) -> None:
    """Never passes its review."""
    await _session(store, log, AUTOMATIC, {}, Status.LIMIT)


async def mixed(store: Store, log: EffectLog) -> None:
    """Has another approver at each stage."""
    await _session(store, log, MIXED, MIXED_EDITS, Status.COMPLETED)


async def _session(
    store: Store,
    log: EffectLog,
    settings: dict[str, Any],
    edits: Mapping[str, str],
    end: Status,
) -> None:
    ProfileFactory.register("poem", PoemProfile)
    ApprovalProviderFactory.register("first-rejects", FirstRejects)
    environment = {"HOME": str(log.directory)}
    home = init_home(log.directory, environment).home
    workflow = resolve(
        "poem",
        CompileContext(root=log.directory, home=home.path, settings={"profiles": settings}),
    )
    passing = end is Status.COMPLETED
    agents = {
        "claude": log.watch(ScriptedAgent().on("", lambda request: _respond(request, passing))),
        "codex": log.watch(ScriptedAgent().on("", lambda _request: "DECISION: APPROVED")),
    }
    with open_project(log.directory, environment) as project:
        project.store.close()
        project.store = store
        files = RunFiles(project.home.runs)
        async with Engine(store, agents=agents, files=files) as engine:
            result = await _start_or_resume(engine, store, workflow)
            while result.status is Status.WAITING:
                for item in result.inbox:
                    _approve(project, files, item, edits)
                result = await engine.resume(NAME, workflow)
        project.directory().catch_up(NAME)
        assert result.status is end, result


async def _start_or_resume(engine: Engine, store: Store, workflow: Workflow) -> RunResult:
    try:
        store.row(NAME)
    except UnknownName:
        return await engine.start(workflow, CONTEXT, name=NAME)
    return await engine.resume(NAME, workflow)


def _approve(project: Project, files: RunFiles, item: InboxItem, edits: Mapping[str, str]) -> None:
    from signoff.app.history import form_of

    path = form_of(project, item)["path"]
    if path in edits:
        files.write(NAME, path, edits[path])
    record_answer(project, item.id, AnswerInput(True, by="ann"))


def _respond(request: AgentRequest, passing: bool) -> str:
    prompt = request.prompt
    if prompt.startswith("Plan"):
        return "a better plan" if "make it better" in prompt else "a plan"
    if prompt.startswith("Review"):
        return verdict("PASS") if passing else verdict("FAIL", 2)
    return f"poem {len(prompt)}"


def files_of(folder: Path) -> dict[str, str]:
    """Returns the files of a session that its user sees, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.*"))
        if path.suffix in (".md", ".txt") and "hitl" not in path.parts
    }
