"""`signoff validate` and `signoff graph`: what definitions say, without a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from signoff.app.runs.targets import find_workflow
from signoff.app.settings.checks import ValidationResult, validate
from signoff.core import graph
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output


@cli.command()
@click.argument("targets", nargs=-1, type=click.Path(), metavar="[TARGET]...")
@click.option("--strict", is_flag=True, help="Count warnings as problems.")
@click.option("--agent", "agents", multiple=True, metavar="[NAME=]OTHER",
              help="Check that `run` could replace these agents. Repeatable.")  # fmt: skip
@cli.notation_options("validate")
def command(
    targets: tuple[str, ...],
    strict: bool,
    agents: tuple[str, ...],
    options: dict[str, Any],
    out: Output,
) -> int:
    """Check settings, constraints and workflows without running them.

    Every problem is reported with its location and how to fix it. Exits with 2 if there
    are any. Warnings do not change the exit code, except with --strict.

    Examples:
      signoff validate flow.py
      signoff validate package.module:NAME other.py
      signoff validate flow.yaml --agent writer=manual
      signoff validate     settings, constraints and all workflows with names
    """
    if agents and not targets:
        raise click.UsageError("--agent is about the agents of a workflow; name a target")
    replaced = cli.replaced_agents(agents)
    checked = validate(targets, Path.cwd(), os.environ, options, replaced)
    if strict:
        checked = [each.strict for each in checked]
    valid = all(each.valid for each in checked)
    if out.as_json:
        problems = [
            {"target": each.target, "where": p.where, "what": p.what, "remedy": p.remedy}
            for each in checked
            for p in each.problems
        ]
        workflows = [each.workflow for each in checked if each.workflow]
        warnings = [{"target": each.target, "what": w} for each in checked for w in each.warnings]
        out.json(
            {"valid": valid, "workflows": workflows, "problems": problems, "warnings": warnings}
        )
    else:
        for each in checked:
            _print(each, out)
        if valid and not any(each.workflow for each in checked):
            out.line("settings and constraints are valid; no workflows can be run by name")
    return exits.OK if valid else exits.USAGE


def _print(checked: ValidationResult, out: Output) -> None:
    if checked.workflow:
        out.line(f"ok  {checked.workflow}  ({checked.target})")
    for warning in checked.warnings:
        # Some warnings start with their file and line.
        located = warning.startswith(Path(checked.target).name)
        out.warn(warning if located else f"{checked.target}: {warning}")
    for problem in checked.problems:
        # Relative paths are shorter, and editors and terminals can open them.
        out.line(str(problem).replace(f"{Path.cwd()}{os.sep}", ""), style="red")


@cli.command()
@click.argument("target", type=click.Path())
@click.option("--format", "form", type=click.Choice(["text", "mermaid"]), default="text",
              show_default=True, help="The output format: text, or a Mermaid diagram.")  # fmt: skip
@cli.notation_options("graph")
def graph_command(target: str, form: str, options: dict[str, Any], out: Output) -> None:
    """Draw the steps of TARGET and where each outcome leads.

    Loops are marked with their bounds.

    Examples:
      signoff graph flow.py
      signoff graph flow.py --format mermaid > flow.mmd
    """
    workflow = find_workflow(target, Path.cwd(), os.environ, options)
    draw = graph.mermaid if form == "mermaid" else graph.text
    out.show(graph.data(workflow), draw(workflow).rstrip("\n"))
