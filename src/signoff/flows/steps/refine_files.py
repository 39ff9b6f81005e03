"""Fixes a set of files: each file with findings by itself, like an artifact of one text.

A file is fixed in a view of the state that has this file as its only text, with the findings and
the part of the work order that are about it. So every mode of a refine step works for files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.flows.files.end import stored_path
from signoff.flows.state import FlowState
from signoff.flows.steps.reading import AT_ONCE
from signoff.flows.steps.work_order import carried_out
from signoff.review.adjudication import Adjudication
from signoff.review.diff import answered_by
from signoff.review.findings import Ledger
from signoff.review.work_order import without_issues

if TYPE_CHECKING:
    from signoff.flows.steps.refine import RefineHandler


async def refine_files(
    handler: RefineHandler, ctx: StepContext, state: FlowState
) -> dict[str, Any]:
    """Returns the update with every file fixed that has a pursued finding."""
    paths = _to_fix(state)

    async def fix(inner: StepContext, path: str) -> dict[str, Any]:
        name = PurePosixPath(stored_path(path)).name
        update = await replace(handler, filename=name, path=path).refine(
            inner, file_state(state, path)
        )
        return {
            "text": update["artifact"],
            "record": update["step"],
            "human": list(update.get("human", ())),
            "remarks": [{**each, "text": f"{path}: {each['text']}"} for each in _remarks(update)],
        }

    results = await ctx.map(paths, fix, key="fix", concurrency=AT_ONCE)
    files = {**state.files, **{p: r["text"] for p, r in zip(paths, results, strict=True)}}
    records = [{**r["record"], "path": p} for p, r in zip(paths, results, strict=True)]
    hunks = [{**hunk, "path": r["path"]} for r in records for hunk in r["hunks"]]
    update = {
        "files": files,
        **handler.record(
            agent=next((r["agent"] for r in records if r["agent"]), ""),
            mode=handler.step.mode,
            applied=[each for r in records for each in r["applied"]],
            unmatched=[each for r in records for each in r["unmatched"]],
            hunks=hunks,
            unclaimed=sum(hunk["issue"] is None for hunk in hunks),
            problem="; ".join(f"{r['path']}: {r['problem']}" for r in records if r["problem"]),
        ),
        **carried_out(state, changed=files != state.files),
        "findings": state.ledger.mark_edited(answered_by(hunks)).to_json(),
    }
    for key in ("human", "remarks"):
        if entries := [each for result in results for each in result[key]]:
            update[key] = Append(entries)
    for warning in _remarks(update):
        # Views leave out what single items report, as there may be hundreds.
        ctx.progress(warning["text"])
    return update


def file_state(state: FlowState, path: str) -> FlowState:
    """Returns a view of the state in which one file is the whole artifact."""
    judged = state.adjudication
    ledger = state.ledger
    own = {each.id for each in ledger.findings.values() if each.path == path}
    raw: dict[str, Any] = {key: value for key, value in state.raw.items() if key != "files"}
    if judged is not None:
        raw["last_adjudication"] = _about(judged, own).to_json()
    findings = {each: replace(ledger.findings[each], path="") for each in own}
    return FlowState(
        {
            **raw,
            "artifact": state.files[path],
            "findings": Ledger(findings, ledger.iteration).to_json(),
            "critiques_by_step": {
                step: [_critique_about(each, path) for each in critiques]
                for step, critiques in state.critiques_by_step.items()
            },
        }
    )


def _to_fix(state: FlowState) -> list[str]:
    """Returns the files with findings that the judge pursues."""
    judged, findings = state.adjudication, state.ledger.findings
    pursued = judged.pursued() if judged is not None else []
    paths = {findings[d.finding_id].path for d in pursued if d.finding_id in findings}
    return [path for path in state.files if path in paths]


def _about(judged: Adjudication, own: set[str]) -> Adjudication:
    """Returns a verdict on some findings, with their part of the work order."""
    others = [d for d in judged.decisions if d.finding_id not in own]
    names = {name for d in others for name in (d.issue_id, d.finding_id)}
    return replace(
        judged,
        decisions=tuple(d for d in judged.decisions if d.finding_id in own),
        bill_of_work=without_issues(judged.bill_of_work, names),
    )


def _critique_about(critique: Mapping[str, Any], path: str) -> dict[str, Any]:
    issues = [each for each in critique["issues"] if each.get("path", "") == path]
    plain = [{key: value for key, value in each.items() if key != "path"} for each in issues]
    sections = critique["approved_sections"] if tuple(critique.get("paths", ())) == (path,) else []
    kept = {key: value for key, value in critique.items() if key != "paths"}
    return {**kept, "issues": plain, "approved_sections": sections}


def _remarks(update: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(update.get("remarks", ()))
