"""Gathers what a flow works from, once per run: files, globs, and what scripts print.

It is recorded, so a run that goes on tomorrow works from what it read today.
"""

from __future__ import annotations

from collections.abc import Mapping

from signoff.core.context import StepContext
from signoff.flows.flow import Flow
from signoff.review.constraint import Constraint, SourceBlock
from signoff.review.sources import Script, SourceError, read_source, script_section, split_command

SCRIPT_SECONDS = 30.0
REVIEWED = "reviewed"
"""The folder of a run with the artifact that scripts read."""
NOT_ALLOWED = "not run: scripts run only if the run allows them (allow_scripts)"


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
    if not constraint.script.strip():
        return ""
    if not flow.allow_scripts:
        ctx.progress(f"script of {constraint.id} {NOT_ALLOWED}")
        return ""
    known = variables(ctx, flow)
    try:
        argv = split_command(constraint.script, known)
    except SourceError as wrong:
        ctx.progress(f"script of {constraint.id} not run: {wrong}")
        return f"(not run: {wrong})"
    if any(known["artifact"] in word for word in argv):
        # The run directory shows the same text, but only some time after the step that made it.
        await ctx.write(_reviewed(flow), artifact)
    done = await ctx.command(
        argv,
        key="analysis",
        cwd=str(flow.root),
        stdin=artifact,
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return f"exit code {done.code}\n{done.stdout}{done.stderr}".strip()


def variables(ctx: StepContext, flow: Flow) -> Mapping[str, str]:
    """Returns what `{{name}}` stands for in paths."""
    home = flow.home or flow.root / ".signoff"
    folder = home / "runs" / ctx.run
    return {
        "run_dir": str(folder),
        "project_root": str(flow.root),
        "artifact": str(folder / _reviewed(flow)),
        "source": str(flow.root),
        "constraint_dir": str(flow.config.constraints.dir or home / "constraints"),
        "arena_home": str(home),
    }


def _reviewed(flow: Flow) -> str:
    """Returns where scripts find the artifact as a file, under the name it will have."""
    return f"{REVIEWED}/{flow.config.output.filename}"
