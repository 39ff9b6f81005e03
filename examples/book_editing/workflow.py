"""W1: a book is planned, rewritten, reviewed, measured, and published by a person.

Every step says what must be true before and after it. The engine looks, in the same
transaction that holds the step's work: what cannot be proved is not kept.
"""

from __future__ import annotations

from pathlib import Path

import book_commands as w1

from signoff.contracts import StepContext, define_workflow
from signoff.core.workflow import Workflow

HERE = Path(__file__).parent

COMMANDS = {
    "w1:strategic": w1.plan,
    "w1:create-version": w1.create_version,
    "w1:write": w1.write,
    "w1:editor-review": w1.editor_review,
    "w1:domain-review": w1.domain_review,
    "review:chapters": w1.review_chapters,
    "w1:finalize": w1.finalize,
}


def editing_workflow(database: Path) -> Workflow:
    """Returns the workflow for the books of a database."""
    return define_workflow(
        {
            "type": "w1_editing",
            "name": "Iterative Editing Workflow",
            "initialStep": "strategic-planning",
            "database": str(database),
            "roles": dict.fromkeys(("strategist", "writer", "editor", "domain_expert"), "claude"),
            "steps": [
                {
                    "name": "strategic-planning",
                    "command": "w1:strategic",
                    "preconditions": [
                        {
                            "name": "book_exists",
                            "check": lambda ctx: w1.published(ctx) is not None,
                            "error": "Book not found, or nothing of it is published",
                        },
                        {
                            "name": "analysis_exists",
                            "check": _has_analysis,
                            "error": "The book has no analysis to plan by",
                        },
                    ],
                    "postconditions": [
                        {
                            "name": "plan_created",
                            "check": _plan_saved,
                            "error": "Strategic plan not saved to DB",
                        },
                        {
                            "name": "areas_found",
                            "check": "size(result.improvementAreas) > 0",
                            "error": "The plan names no areas to improve",
                        },
                        {
                            "name": "one_area_a_chapter",
                            "check": _one_area_a_chapter,
                            "error": "Two areas of the plan share a chapter",
                        },
                    ],
                    "next": "create-version",
                },
                {
                    "name": "create-version",
                    "command": "w1:create-version",
                    "preconditions": [
                        {
                            "name": "plan_exists",
                            "check": lambda ctx: ctx.checkpoint.completed("strategic-planning"),
                            "error": "Planning not complete",
                        },
                    ],
                    "postconditions": [
                        {
                            "name": "version_created",
                            "check": "result.versionId !== checkpoint.previousVersionId",
                            "error": "New version not created (modified in place)",
                        },
                        {
                            "name": "version_persisted",
                            "check": _version_saved,
                            "error": "Version not saved to DB",
                        },
                    ],
                    "next": "writer",
                },
                {
                    "name": "writer",
                    "command": "w1:write",
                    "parallel": True,
                    "parallelKey": "improvementAreas",
                    "postconditions": [
                        {
                            "name": "chapters_modified",
                            "check": "size(result.modifiedChapters) > 0",
                            "error": "No chapters were modified",
                        },
                        {
                            "name": "text_changed",
                            "check": _text_changed,
                            "error": "The chapter reads as it did in the version before",
                        },
                    ],
                    "next": "editor-review",
                },
                {
                    "name": "editor-review",
                    "command": "w1:editor-review",
                    "postconditions": [
                        {
                            "name": "review_complete",
                            "check": "result.decision !== null",
                            "error": "Editor did not provide decision",
                        },
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
                        {
                            "name": "review_complete",
                            "check": "result.decision !== null",
                            "error": "Domain expert did not provide decision",
                        },
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
                        {
                            "name": "metrics_calculated",
                            "check": "result.metrics !== null",
                            "error": "Metrics not calculated",
                        },
                        {
                            "name": "metrics_persisted",
                            "check": _every_chapter_measured,
                            "error": "Not every chapter was measured",
                        },
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
                    "humanGate": {
                        "prompt": "Review the changes and metrics. How would you like to proceed?",
                        "context": [
                            "metrics.baseline",
                            "metrics.current",
                            "metrics.delta",
                            "modifiedChapters",
                        ],
                        "options": [
                            {"label": "Approve and finalize", "nextStep": "finalize"},
                            {
                                "label": "Request more improvements",
                                "nextStep": "strategic-planning",
                                "requiresInput": True,
                            },
                            {"label": "Reject and stop", "nextStep": None, "ends": "rejected"},
                        ],
                    },
                },
                {
                    "name": "finalize",
                    "command": "w1:finalize",
                    "postconditions": [
                        {
                            "name": "artifacts_registered",
                            "check": _artifacts_saved,
                            "error": "Artifacts not registered",
                        },
                        {
                            "name": "workflow_completed",
                            "check": _run_completed,
                            "error": "Workflow not marked complete",
                        },
                        {
                            "name": "version_published",
                            "check": lambda ctx: w1.published(ctx) == ctx.result["published"],
                            "error": "The new version is not the one readers have",
                        },
                    ],
                    "next": None,
                },
            ],
        },
        commands=COMMANDS,
    )


def _has_analysis(ctx: StepContext) -> bool:
    return bool(ctx.db.value("SELECT analysis FROM books WHERE id = ?", [w1.book_id(ctx)]))


def _plan_saved(ctx: StepContext) -> bool:
    return ctx.db.exists(
        "SELECT 1 FROM strategic_plans WHERE id = ? AND run_id = ?",
        [ctx.result["planId"], ctx.run_id],
    )


def _one_area_a_chapter(ctx: StepContext) -> bool:
    chapters = [area["chapter"] for area in ctx.result["improvementAreas"]]
    return len(set(chapters)) == len(chapters)


def _version_saved(ctx: StepContext) -> bool:
    return ctx.db.exists("SELECT 1 FROM chapters WHERE version_id = ?", [ctx.result["versionId"]])


def _text_changed(ctx: StepContext) -> bool:
    return ctx.db.exists(
        "SELECT 1 FROM chapters AS new JOIN chapters AS old ON old.number = new.number "
        "WHERE new.version_id = ? AND old.version_id = ? AND new.number = ? "
        "AND new.text <> old.text",
        [
            ctx.checkpoint.data["versionId"],
            ctx.checkpoint.data["previousVersionId"],
            ctx.item["chapter"],
        ],
    )


def _every_chapter_measured(ctx: StepContext) -> bool:
    version = ctx.checkpoint.data["versionId"]
    return not ctx.db.exists(
        "SELECT 1 FROM chapters WHERE version_id = ? AND number NOT IN "
        "(SELECT chapter FROM metrics WHERE run_id = ? AND version_id = ?)",
        [version, ctx.run_id, version],
    )


def _artifacts_saved(ctx: StepContext) -> bool:
    found = ctx.db.value(
        "SELECT count(*) FROM workflow_artifacts WHERE run_id = ? AND kind IN ('metrics', 'final')",
        [ctx.run_id],
    )
    return bool(found == 2)


def _run_completed(ctx: StepContext) -> bool:
    status = ctx.db.value("SELECT status FROM workflow_runs WHERE id = ?", [ctx.run_id])
    return bool(status == "completed")


WORKFLOW = editing_workflow(HERE / "book.db")
