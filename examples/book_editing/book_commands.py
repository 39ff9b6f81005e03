"""What the steps of the editing workflow do: they ask, measure, and stage SQL.

Nothing here writes to the database. Statements are staged, and applied together with the
step's postconditions in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from book_metrics import measure, overall

from signoff.contracts import StepContext

DEFAULT_THRESHOLD = 5.0
"""By how much reading has to become easier."""

PLAN = {
    "type": "object",
    "required": ["goal", "areas"],
    "additionalProperties": False,
    "properties": {
        "goal": {"type": "string"},
        "areas": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "chapter", "instruction"],
                "properties": {
                    "id": {"type": "string"},
                    "chapter": {"type": "integer"},
                    "instruction": {"type": "string"},
                },
            },
        },
    },
}
CHAPTER = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string", "minLength": 1}},
}
REVIEW = {
    "type": "object",
    "required": ["decision", "notes"],
    "additionalProperties": False,
    "properties": {
        "decision": {"enum": ["approved", "changes"]},
        "notes": {"type": "string"},
    },
}


async def plan(ctx: StepContext) -> dict[str, Any]:
    """Lets a strategist plan the improvements, one area for each chapter."""
    book = ctx.db.one("SELECT title, analysis FROM books WHERE id = ?", [book_id(ctx)]) or {}
    base = ctx.checkpoint.data.get("versionId") or published(ctx)
    reply = await _ask(
        ctx,
        "strategist",
        PLAN,
        f"Plan how to improve the book {book['title']!r}. At most one area for each chapter.",
        Analysis=book["analysis"],
        Wish=(ctx.checkpoint.gate_decision or {}).get("input"),
        Metrics=_as_json(ctx.checkpoint.data.get("metrics")),
        Chapters=_as_json(_chapters(ctx, base)),
    )
    plan_id = f"{ctx.run_id}-plan-{_round(ctx)}"
    ctx.db.stage(
        "INSERT INTO strategic_plans (id, run_id, book_id, goal, areas_json) "
        "VALUES (?, ?, ?, ?, ?)",
        [plan_id, ctx.run_id, book_id(ctx), reply["goal"], json.dumps(reply["areas"])],
    )
    if _round(ctx) == 1:
        ctx.db.stage(
            "INSERT INTO workflow_runs (id, workflow_type, book_id, status) "
            "VALUES (?, 'w1_editing', ?, 'running')",
            [ctx.run_id, book_id(ctx)],
        )
    return {
        "planId": plan_id,
        "goal": reply["goal"],
        "improvementAreas": reply["areas"],
        "previousVersionId": base,
        "publishedVersionId": published(ctx),
        "threshold": float(ctx.params.get("threshold", DEFAULT_THRESHOLD)),
    }


def create_version(ctx: StepContext) -> dict[str, Any]:
    """Copies the current version; writers work on the copy."""
    previous = ctx.checkpoint.data["previousVersionId"]
    last = ctx.db.value("SELECT max(number) FROM book_versions WHERE book_id = ?", [book_id(ctx)])
    version = f"{book_id(ctx)}-v{last + 1}"
    ctx.db.stage(
        "INSERT INTO book_versions (id, book_id, number, based_on, status) "
        "VALUES (?, ?, ?, ?, 'draft')",
        [version, book_id(ctx), last + 1, previous],
    )
    ctx.db.stage(
        "INSERT INTO chapters (version_id, number, title, text) "
        "SELECT ?, number, title, text FROM chapters WHERE version_id = ?",
        [version, previous],
    )
    return {"versionId": version}


async def write(ctx: StepContext) -> dict[str, Any]:
    """Rewrites the chapter of one area."""
    version, number = ctx.checkpoint.data["versionId"], ctx.item["chapter"]
    where = [version, number]
    chapter = ctx.db.one("SELECT * FROM chapters WHERE version_id = ? AND number = ?", where)
    if chapter is None:
        return {"modifiedChapters": []}
    reply = await _ask(
        ctx,
        "writer",
        CHAPTER,
        f"Rewrite chapter {number}, {chapter['title']!r}: {ctx.item['instruction']}",
        Goal=ctx.checkpoint.data["goal"],
        Reviewers=_last_notes(ctx),
        Chapter=chapter["text"],
    )
    ctx.db.stage(
        "UPDATE chapters SET text = ? WHERE version_id = ? AND number = ?",
        [reply["text"], version, number],
    )
    return {"modifiedChapters": [number], "words": measure(reply["text"]).words}


async def editor_review(ctx: StepContext) -> dict[str, Any]:
    """Lets an editor judge style and clarity."""
    reply = await _review(ctx, "editor", "Judge style and clarity of the changed chapters.")
    return {**reply, "modifiedChapters": _changed_chapters(ctx)}


async def domain_review(ctx: StepContext) -> dict[str, Any]:
    """Lets a domain expert judge whether the text is still correct."""
    return await _review(ctx, "domain_expert", "Judge whether the changed chapters are correct.")


def review_chapters(ctx: StepContext) -> dict[str, Any]:
    """Measures the published and the new version."""
    data = ctx.checkpoint.data
    versions = {"baseline": data["publishedVersionId"], "current": data["versionId"]}
    measured = {}
    for name, version in versions.items():
        texts = {row["number"]: row["text"] for row in _chapters(ctx, version)}
        measured[name] = overall(texts.values()).to_json()
        for number, text in texts.items():
            of = measure(text)
            ctx.db.stage(
                "INSERT INTO metrics (run_id, version_id, chapter, words, sentences, ease) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [ctx.run_id, version, number, of.words, of.sentences, of.ease],
            )
    delta = round(measured["current"]["ease"] - measured["baseline"]["ease"], 1)
    return {"metrics": {**measured, "delta": delta}}


def finalize(ctx: StepContext) -> dict[str, Any]:
    """Publishes the new version instead of the old one, and marks the run as completed."""
    data = ctx.checkpoint.data
    change = "UPDATE book_versions SET status = ? WHERE id = ?"
    ctx.db.stage(change, ["replaced", data["publishedVersionId"]])
    ctx.db.stage(change, ["published", data["versionId"]])
    _store_artifact(ctx, "metrics", data["metrics"])
    _store_artifact(ctx, "final", {"chapters": data["modifiedChapters"], "goal": data["goal"]})
    ctx.db.stage("UPDATE workflow_runs SET status = 'completed' WHERE id = ?", [ctx.run_id])
    return {"published": data["versionId"]}


def book_id(ctx: StepContext) -> str:
    """Returns the id of the book."""
    return str(ctx.params.get("book", "lighthouse"))


def published(ctx: StepContext) -> str | None:
    """Returns the published version."""
    found = ctx.db.value(
        "SELECT id FROM book_versions WHERE book_id = ? AND status = 'published'", [book_id(ctx)]
    )
    return None if found is None else str(found)


async def _review(ctx: StepContext, role: str, task: str) -> dict[str, Any]:
    numbers = _changed_chapters(ctx)
    changed = [
        row for row in _chapters(ctx, ctx.checkpoint.data["versionId"]) if row["number"] in numbers
    ]
    reply = await _ask(
        ctx,
        role,
        REVIEW,
        f"{task} Approve, or ask for changes and say which.",
        Goal=ctx.checkpoint.data["goal"],
        Chapters=_as_json(changed),
    )
    _store_artifact(ctx, f"{role}_review", reply)
    return reply


def _changed_chapters(ctx: StepContext) -> list[int]:
    done = ctx.checkpoint.result_of("writer")["items"].values()
    return sorted({number for each in done for number in each["modifiedChapters"]})


def _last_notes(ctx: StepContext) -> str:
    """Returns what the last reviewer wrote about the current plan; both return `notes`."""
    for done in reversed(ctx.checkpoint.completed_steps):
        if done.step == "strategic-planning":
            break
        if done.step in ("editor-review", "domain-expert-review"):
            return str(done.result["notes"])
    return ""


async def _ask(
    ctx: StepContext, role: str, schema: Mapping[str, Any], task: str, **material: Any
) -> dict[str, Any]:
    """Asks the agent of a role, and returns its result."""
    parts = [task, *(f"{name}:\n{text}" for name, text in material.items() if text)]
    if ctx.attempt > 1:
        parts.append(f"Previous attempt failed: {ctx.feedback}")
    agent = str(ctx.params.get("agent", role))
    reply = await ctx.ask(agent, "\n\n".join(parts), key=role, schema=schema)
    return dict(reply.value)


def _chapters(ctx: StepContext, version: str | None) -> Sequence[Mapping[str, Any]]:
    return ctx.db.query(
        "SELECT number, title, text FROM chapters WHERE version_id = ? ORDER BY number", [version]
    )


def _store_artifact(ctx: StepContext, kind: str, content: Any) -> None:
    ctx.db.stage(
        "INSERT INTO workflow_artifacts (run_id, kind, version_id, content) VALUES (?, ?, ?, ?)",
        [ctx.run_id, kind, ctx.checkpoint.data["versionId"], json.dumps(content)],
    )


def _round(ctx: StepContext) -> int:
    return ctx.checkpoint.iteration_counts.get(ctx.step, 0) + 1


def _as_json(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, indent=1) if values else ""
