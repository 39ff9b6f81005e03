"""Gathers the material of a flow, once per run: files, globs, and the output of scripts.

It is recorded, so a run that is resumed tomorrow uses what was read today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from signoff.core.context import StepContext
from signoff.flows.flow import Flow
from signoff.review.constraint import Constraint, SourceBlock
from signoff.review.sources import (
    Script,
    SourceError,
    SourceText,
    fill_in,
    read_source,
    script_section,
    split_command,
)

SCRIPT_SECONDS = 30.0
NOT_ALLOWED = "not run: scripts run only if the run allows them (allow_scripts)"


async def gather(ctx: StepContext, flow: Flow) -> dict[str, str]:
    """Returns the material of the goal (under an empty name) and of each constraint, by id."""
    names = [name for name, block in flow.sources.items() if block]
    if not names:
        return {}

    async def gather_one(inner: StepContext, name: str) -> str:
        read = read_material(flow, flow.sources[name], ctx.run)
        for message in (*read.errors, *read.warnings):
            inner.progress(f"sources of {name or 'the goal'}: {message}")
        outputs = [script_section(s.name, await _output(inner, flow, s)) for s in read.scripts]
        return material_text(read, outputs)

    # One item for each block: a run that is resumed here reads only what is still missing.
    texts = await ctx.map(names, gather_one, key="sources")
    return dict(zip(names, texts, strict=True))


def read_material(flow: Flow, block: SourceBlock, run: str) -> SourceText:
    """Returns the material that a run finds in files, and the scripts that print more of it."""
    allowed = [flow.home] if flow.home else []
    return read_source(block, root=flow.root, allowed=allowed, variables=_variables(flow, run))


def missing_material(flow: Flow, block: SourceBlock) -> Iterator[str]:
    """Yields which files that a block names cannot be read, and its unknown variables.

    Where scripts are allowed, those that cannot be run as well.
    """
    variables, files = _variables(flow, "NAME"), list[str]()
    for path in (*block.files, *block.globs, *block.scripts):
        try:
            filled = fill_in(path, variables)
        except SourceError as error:
            yield f"{path}: {error}"
            continue
        # The run's own folder does not exist yet.
        if path in block.files and variables["run_dir"] not in filled:
            files.append(path)
    scripts = block.scripts if flow.allow_scripts else ()
    known = tuple(each for each in scripts if "{{" not in each)
    yield from read_material(flow, SourceBlock(files=tuple(files), scripts=known), "NAME").errors


def material_text(read: SourceText, outputs: Sequence[str] = ()) -> str:
    """Returns material as prompts show it, with a line for each source that was not read."""
    missing = [f"(not read: {error})" for error in read.errors]
    return "\n\n".join(part for part in (read.text, *missing, *outputs) if part)


async def _output(ctx: StepContext, flow: Flow, script: Script) -> str:
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
    """Returns the output of a constraint's own script about the artifact; empty without one."""
    if not constraint.script.strip():
        return ""
    if not flow.allow_scripts:
        ctx.progress(f"script of {constraint.id} {NOT_ALLOWED}")
        return ""
    variables = _variables(flow, ctx.run)
    try:
        argv = split_command(constraint.script, variables)
    except SourceError as error:
        ctx.progress(f"script of {constraint.id} not run: {error}")
        return f"(not run: {error})"
    if any(variables["artifact"] in word for word in argv):
        # The run directory shows the artifact too, but only some time after the step that wrote it.
        await ctx.write(_reviewed_path(flow), artifact)
    done = await ctx.command(
        argv,
        key="analysis",
        cwd=str(flow.root),
        stdin=artifact,
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return f"exit code {done.code}\n{done.stdout}{done.stderr}".strip()


def _variables(flow: Flow, run: str) -> Mapping[str, str]:
    """Returns the values of `{{name}}` in paths and commands."""
    home = flow.home or flow.root / ".signoff"
    folder = home / "runs" / run
    return {
        "run_dir": str(folder),
        "project_root": str(flow.root),
        "artifact": str(folder / _reviewed_path(flow)),
        "source": str(flow.root),
        "constraint_dir": str(flow.config.constraints.dir or home / "constraints"),
        "arena_home": str(home),
    }


def _reviewed_path(flow: Flow) -> str:
    """Returns where in the run's folder scripts find the artifact, under its final name."""
    return f"reviewed/{flow.config.output.filename}"
