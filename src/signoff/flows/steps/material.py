"""Gathers what a flow works from, once per run: files, globs, and what scripts print.

It is recorded, so a run that goes on tomorrow works from what it read today.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.flow import Flow
from signoff.review.constraint import Constraint, SourceBlock
from signoff.review.sources import Script, read_source, script_section

SCRIPT_SECONDS = 30.0
NOT_ALLOWED = "not run: scripts run only with --allow-scripts"


async def gather(ctx: StepContext, flow: Flow) -> dict[str, str]:
    """Returns the material of the goal (under an empty name) and of each constraint, by id."""
    blocks = {"": flow.goal.source, **{c.id: c.source for c in flow.constraints}}
    named = [of for of, block in blocks.items() if block]
    if not named:
        return {}

    async def one(inner: StepContext, of: str) -> str:
        return await _material(inner, flow, blocks[of], of)

    texts = await ctx.map(named, one, key="sources")
    return dict(zip(named, texts, strict=True))


async def _material(ctx: StepContext, flow: Flow, block: SourceBlock, of: str) -> str:
    allowed = [flow.root, *([flow.home] if flow.home else [])]
    read = read_source(block, root=flow.root, allowed=allowed, variables=variables(ctx, flow))
    for said in (*read.errors, *read.warnings):
        ctx.progress(f"sources of {of or 'the goal'}: {said}")
    printed = [script_section(each.name, await _printed(ctx, flow, each)) for each in read.scripts]
    parts = [read.text, *(f"(not read: {error})" for error in read.errors), *printed]
    return "\n\n".join(part for part in parts if part)


async def _printed(ctx: StepContext, flow: Flow, script: Script) -> str:
    if not flow.allow_scripts:
        ctx.progress(f"script {script.name!r} {NOT_ALLOWED}")
        return f"({NOT_ALLOWED})"
    done = await ctx.command(
        script.argv,
        key="script",
        cwd=str(flow.root),
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return done.stdout if done.ok else f"(failed with exit code {done.code}) {done.stderr[-500:]}"


async def analysis(ctx: StepContext, flow: Flow, constraint: Constraint, artifact: str) -> str:
    """Returns what a constraint's own script says about the artifact; empty without one."""
    if not constraint.script:
        return ""
    if not flow.allow_scripts:
        ctx.progress(f"script of {constraint.id} {NOT_ALLOWED}")
        return ""
    line = constraint.script
    for name, value in variables(ctx, flow).items():
        line = line.replace("{{" + name + "}}", shlex.quote(value))
    done = await ctx.command(
        shlex.split(line),
        key="analysis",
        cwd=str(flow.root),
        stdin=artifact,
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return f"exit code {done.code}\n{done.stdout}{done.stderr}".strip()


def variables(ctx: StepContext, flow: Flow) -> Mapping[str, Any]:
    """Returns what `{{name}}` stands for in paths."""
    home = flow.home or flow.root / ".signoff"
    folder = home / "runs" / ctx.run
    return {
        "run_dir": str(folder),
        "project_root": str(flow.root),
        "artifact": str(folder / str(ctx.step_state.get("artifact_path", "artifact.md"))),
        "source": str(flow.root),
        "constraint_dir": str(flow.config.constraints.dir or home / "constraints"),
        "arena_home": str(home),
    }
