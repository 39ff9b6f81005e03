"""The editing workflow of the design document, translated line by line, from start to end.

What the document writes as functions over `ctx.db` are functions here as well; everything else is
text, with the document's own names in camel case.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore

TABLES = """
CREATE TABLE strategic_plans (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL);
CREATE TABLE versions (id TEXT PRIMARY KEY);
CREATE TABLE artifacts (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL);
CREATE TABLE workflow_runs (id TEXT PRIMARY KEY, status TEXT NOT NULL);
INSERT INTO versions VALUES ('v1');
"""


def strategic_plan_exists(ctx: StepContext) -> bool:
    return ctx.db.exists("SELECT 1 FROM strategic_plans WHERE run_id = ?", [ctx.run_id])


def version_exists(ctx: StepContext) -> bool:
    return ctx.db.exists("SELECT 1 FROM versions WHERE id = ?", [ctx.result["versionId"]])


def artifacts_exist(ctx: StepContext) -> bool:
    return ctx.db.exists("SELECT 1 FROM artifacts WHERE run_id = ?", [ctx.run_id])


def workflow_completed(ctx: StepContext) -> bool:
    status = ctx.db.value("SELECT status FROM workflow_runs WHERE id = ?", [ctx.run_id])
    return bool(status == "completed")


def w1(database: Path, commands: dict[str, Any]) -> Workflow:
    """Returns the workflow; each step has the lines of the document, in their order."""
    return define_workflow(
        {
            "type": "w1_editing",
            "name": "Iterative Editing Workflow",
            "initialStep": "strategic-planning",
            "database": {"url": str(database), "backup": False},
            "steps": [
                {
                    "name": "strategic-planning",
                    "command": "w1:strategic",
                    "preconditions": [
                        {"name": "book_exists", "check": "params.book !== null",
                         "error": "Book not found"},
                        {"name": "analysis_exists", "check": "ctx.params.analysisPath !== null",
                         "error": "No analysis file"},
                    ],
                    "postconditions": [
                        {"name": "plan_created", "check": strategic_plan_exists,
                         "error": "Strategic plan not saved to DB"},
                    ],
                    "next": "create-version",
                },
                {
                    "name": "create-version",
                    "command": "w1:create-version",
                    "preconditions": [
                        {"name": "plan_exists",
                         "check": '"strategic-planning" in ctx.checkpoint.completedSteps',
                         "error": "Planning not complete"},
                    ],
                    "postconditions": [
                        {"name": "version_created",
                         "check": "ctx.result.versionId !== checkpoint.previousVersionId",
                         "error": "New version not created (modified in place)"},
                        {"name": "version_persisted", "check": version_exists,
                         "error": "Version not saved to DB"},
                    ],
                    "next": "writer",
                },
                {
                    "name": "writer",
                    "command": "w1:write",
                    "parallel": True,
                    "parallelKey": "improvementAreas",
                    "postconditions": [
                        {"name": "chapters_modified",
                         "check": "size(ctx.result.modifiedChapters) > 0",
                         "error": "No chapters were modified"},
                    ],
                    "next": "editor-review",
                },
                {
                    "name": "editor-review",
                    "command": "w1:editor-review",
                    "postconditions": [
                        {"name": "review_complete", "check": "ctx.result.decision !== null",
                         "error": "Editor did not provide decision"},
                    ],
                    "next": {
                        "condition": 'result.decision === "approved"',
                        "onTrue": "domain-expert-review",
                        "onFalse": "writer",
                        "maxIterations": 3,
                    },
                },
                {
                    "name": "domain-expert-review",
                    "command": "w1:domain-review",
                    "postconditions": [
                        {"name": "review_complete", "check": "ctx.result.decision !== null",
                         "error": "Domain expert did not provide decision"},
                    ],
                    "next": {
                        "condition": 'result.decision === "approved"',
                        "onTrue": "chapter-review",
                        "onFalse": "writer",
                        "maxIterations": 3,
                    },
                },
                {
                    "name": "chapter-review",
                    "command": "review:chapters",
                    "postconditions": [
                        {"name": "metrics_calculated", "check": "ctx.result.metrics !== null",
                         "error": "Metrics not calculated"},
                    ],
                    "next": {
                        "condition": "result.metrics.delta >= checkpoint.threshold",
                        "onTrue": "human-gate",
                        "onFalse": "strategic-planning",
                        "maxIterations": 3,
                    },
                },
                {
                    "name": "human-gate",
                    "command": "w1:human-gate",
                    "humanGate": {
                        "prompt": "Review the changes and metrics. How would you like to proceed?",
                        "context": ["metrics.baseline", "metrics.current", "metrics.delta",
                                    "modifiedChapters"],
                        "options": [
                            {"label": "Approve and finalize", "nextStep": "finalize"},
                            {"label": "Request more improvements",
                             "nextStep": "strategic-planning", "requiresInput": True},
                            {"label": "Reject and stop", "nextStep": None},
                        ],
                    },
                    "next": "finalize",
                },
                {
                    "name": "finalize",
                    "command": "w1:finalize",
                    "postconditions": [
                        {"name": "artifacts_registered", "check": artifacts_exist,
                         "error": "Artifacts not registered"},
                        {"name": "workflow_completed", "check": workflow_completed,
                         "error": "Workflow not marked complete"},
                    ],
                    "next": None,
                },
            ],
        },
        commands=commands,
    )  # fmt: skip


class Editing:
    """The commands of the workflow, with the replies that its agents would give."""

    def __init__(self) -> None:
        self.decisions = {"editor": ["changes", "approved"], "domain": ["approved"]}
        self.wishes: list[str] = []
        self.areas: list[str] = []
        self.forgets_to_save = False

    @property
    def commands(self) -> dict[str, Any]:
        return {
            "w1:strategic": self.plan,
            "w1:create-version": self.create_version,
            "w1:write": self.write,
            "w1:editor-review": lambda _ctx: self.review("editor"),
            "w1:domain-review": lambda _ctx: self.review("domain"),
            "review:chapters": self.measure,
            "w1:human-gate": lambda _ctx: None,
            "w1:finalize": self.finalize,
        }

    def plan(self, ctx: StepContext) -> dict[str, Any]:
        decision = ctx.checkpoint.gate_decision
        self.wishes.append(decision.input if decision is not None else "")
        if not self.forgets_to_save:
            ctx.db.stage("INSERT INTO strategic_plans (run_id) VALUES (?)", [ctx.run_id])
        return {"improvementAreas": ["1", "2"], "previousVersionId": "v1", "threshold": 5}

    def create_version(self, ctx: StepContext) -> dict[str, Any]:
        version = f"v{ctx.checkpoint.iteration_counts.get('create-version', 0) + 2}"
        ctx.db.stage("INSERT INTO versions VALUES (?)", [version])
        return {"versionId": version}

    def write(self, ctx: StepContext) -> dict[str, Any]:
        self.areas.append(ctx.item)
        return {"modifiedChapters": [int(ctx.item)]}

    def review(self, role: str) -> dict[str, Any]:
        left = self.decisions[role]
        return {"decision": left.pop(0) if len(left) > 1 else left[0]}

    def measure(self, ctx: StepContext) -> dict[str, Any]:
        items = ctx.checkpoint.result_of("writer")["items"].values()
        chapters = sorted(number for each in items for number in each["modifiedChapters"])
        metrics = {"baseline": 10, "current": 16, "delta": 6}
        return {"metrics": metrics, "modifiedChapters": chapters}

    def finalize(self, ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("INSERT INTO artifacts (run_id) VALUES (?)", [ctx.run_id])
        ctx.db.stage("INSERT INTO workflow_runs VALUES (?, 'completed')", [ctx.run_id])
        return {}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "project.db")) as db:
        db.executescript(TABLES)
    return tmp_path / "project.db"


async def play(workflow: Workflow, store: MemoryStore, **params: Any) -> RunResult:
    book = {"book": "lighthouse", "analysisPath": "analysis.md", **params}
    async with Engine(store) as engine:
        return await engine.start(workflow, book, name="run")


async def decide(
    workflow: Workflow, store: MemoryStore, result: RunResult, option: str, text: str = ""
) -> RunResult:
    signoff.answer(result.inbox[0], option, text=text, by="ann", store=store)
    async with Engine(store) as engine:
        return await engine.resume("run", workflow)


async def test_the_workflow_of_the_design_document_runs_to_its_end(database: Path) -> None:
    """A reader of the document can use the product with it in hand."""
    editing, store = Editing(), MemoryStore()
    workflow = w1(database, editing.commands)

    waiting = await play(workflow, store)
    shown = waiting.inbox[0].form.replace(" ", "")
    again = await decide(workflow, store, waiting, "Request more improvements", "warmer")
    done = await decide(workflow, store, again, "Approve and finalize")

    assert (waiting.status, waiting.step) == (Status.WAITING, "human-gate")
    assert '"metrics.delta":6' in shown
    assert '"modifiedChapters":[1,2]' in shown
    assert editing.wishes == ["", "warmer"]
    assert editing.areas.count("1") == 3
    assert done.status is Status.COMPLETED, done.reason
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT status FROM workflow_runs").fetchall() == [("completed",)]


async def test_a_step_that_only_claims_to_have_saved_its_plan_is_retried_then_escalated(
    database: Path,
) -> None:
    """This is what the document was written for."""
    editing, store = Editing(), MemoryStore()
    editing.forgets_to_save = True

    result = await play(w1(database, editing.commands), store)

    assert (result.status, result.step) == (Status.WAITING, "strategic-planning")
    assert len(editing.wishes) == 2
    assert "Strategic plan not saved to DB" in result.inbox[0].prompt
