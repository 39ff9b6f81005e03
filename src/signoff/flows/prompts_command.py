"""The command `signoff prompts`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import (
    CliCommand,
    complete_run,
    complete_target,
    debug_option,
    json_option,
    open_here,
    output,
)

if TYPE_CHECKING:
    from signoff.cli.output import Output
    from signoff.flows.prompt_preview import PromptPreview


@click.command(cls=CliCommand)
@click.argument("flow", required=False, shell_complete=complete_target)
@click.argument("step", required=False)
@click.option(
    "--run",
    "run",
    metavar="NAME",
    shell_complete=complete_run,
    help="Show the prompts of this run's latest rounds; only STEP may be named then.",
)
@click.option(
    "--goal",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="The goal of the flow.",
)
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Copy the built-in templates to a folder, as a start for your own.",
)
@json_option
@debug_option
def prompts(
    flow: str | None,
    step: str | None,
    run: str | None,
    goal: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the prompts of a flow, or copy their templates.

    Prints what the steps of FLOW send, or one STEP, with the goal, the constraints and the
    sources filled in. Nothing is sent. Texts in parentheses stand for what a run produces;
    with --run they are the real ones.

    Examples:
      signoff prompts flow.yaml --goal goal.yaml
      signoff prompts flow.yaml critique
      signoff prompts --run first-try adjudicate
      signoff prompts --write prompts    then add `prompts: prompts` to the flow
    """
    out = output(as_json)
    if folder is not None:
        _write(folder, out)
        return
    if run is not None:
        if flow and step:
            raise click.UsageError("--run uses the flow of the run: name only a step")
        found = _of_run(run, step or flow)
    elif flow is not None:
        found = _of_flow(flow, step, {"goal": goal} if goal else {})
    else:
        raise click.UsageError("name a flow, a run (--run) or a folder (--write)")
    if as_json:
        out.json([each.to_json() for each in found])
        return
    for each in found:
        _print(each, out)
    if not found:
        out.line("no prompts: the step has not run yet, or no agent is asked")


def _write(folder: Path, out: Output) -> None:
    from signoff.flows.prompt_files import write_templates

    files = write_templates(folder)
    if out.as_json:
        out.json([str(file) for file in files])
        return
    for file in files:
        out.line(f"wrote {file}")
    out.line(f"delete what you do not change, and add `prompts: {folder}` to the flow")


def _of_flow(target: str, step: str | None, options: dict[str, Any]) -> list[PromptPreview]:
    from signoff.app.targets import find_workflow
    from signoff.errors import UsageError
    from signoff.flows.prompt_preview import previews_of_flow

    workflow = find_workflow(target, Path.cwd(), os.environ, options)
    if workflow.notation != "flows":
        raise UsageError(f"{target} is not a review flow; only review flows have prompt templates")
    return previews_of_flow(workflow, step)


def _of_run(name: str, step: str | None) -> list[PromptPreview]:
    from signoff.app.notations import compile_context
    from signoff.flows.commands import recorded_run
    from signoff.flows.prompt_preview import previews_of_run, stored_flow

    with open_here() as project:
        history = recorded_run(project, name).history
        source = json.loads(project.store.description(project.run(name).id))["source"]
        context = compile_context(project.home, project.settings)
    return previews_of_run(stored_flow(source, context), history, step)


def _print(preview: PromptPreview, out: Output) -> None:
    about = f", {preview.constraint}" if preview.constraint else ""
    heading = f"{preview.step}: {preview.kind.value} by {', '.join(preview.agents)}{about}"
    if preview.prompt.system:
        out.line(f"===== {heading}: system prompt", style="bold")
        out.line(f"{preview.prompt.system}\n")
    out.line(f"===== {heading}: prompt", style="bold")
    out.line(str(preview.prompt))
