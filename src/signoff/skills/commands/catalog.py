"""`signoff skill list` and `show`: which skills there are, and what one of them does."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from signoff.app.trust import context_here
from signoff.cli import exits
from signoff.cli.options import CliCommand, output_options, project_dir_option
from signoff.cli.output import Output
from signoff.core.args import Param, placeholder, value_text
from signoff.core.workflow import Workflow
from signoff.skills.commands.step import SkillPlace, first_command, option_name


@click.command("list", cls=CliCommand)
@output_options
def list_skills(out: Output) -> int:
    """List skills.

    These are shipped with signoff, in the project's .signoff/skills/, or where the setting
    `workflows` says. Exits with 1 if a module cannot be used.

    Examples:
      signoff skill list
      signoff skill list --json
    """
    from signoff.skills.discovery import listed_skills

    skills, problems = listed_skills(context_here())
    if out.as_json:
        out.json(
            [
                {
                    "name": skill.name,
                    "description": skill.description,
                    "steps": skill.steps,
                    "origin": skill.origin,
                }
                for skill in skills
            ]
        )
    else:
        rows = [
            (each.name, each.steps or "", each.origin, _first_sentence(each.description))
            for each in skills
        ]
        out.table(("SKILL", "STEPS", "FROM", "DESCRIPTION"), rows, spare=("FROM", "STEPS"))
    for problem in problems:
        out.warn(str(problem))
    return exits.ERROR if problems else exits.OK


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
@project_dir_option
@output_options
def show(name: str, out: Output) -> None:
    """Show the steps and the parameters of a skill.

    Examples:
      signoff skill show decision-critic
      signoff skill show decision-critic --json
    """
    from signoff.skills.discovery import find_in_folder

    # Importing a skill runs its module, which may print; stdout is for the answer.
    with redirect_stdout(sys.stderr):
        workflow, folder = find_in_folder(name, context_here())
    steps, params = _steps(workflow), _params(workflow)
    pinned = str(folder.absolute()) if folder is not None else ""
    first = first_command(workflow, SkillPlace(name, pinned))
    if out.as_json:
        shown = {"name": workflow.name, "description": workflow.description}
        out.json({**shown, "steps": steps, "params": params, "first_command": first})
        return
    out.prose(f"{workflow.name}: {' '.join(workflow.description.split())}")
    out.line()
    rows = [(s["step"], s["title"], s["agent"], _arrows(s["next"])) for s in steps]
    out.table(("STEP", "TITLE", "BY", "NEXT"), rows, spare=("BY",))
    if params:
        out.line()
        rows_of_params = [
            (p["option"], p["values"], "required" if p["required"] else p["default"] or "",
             p["description"]) for p in params
        ]  # fmt: skip
        out.table(("OPTION", "VALUES", "DEFAULT", "DESCRIPTION"), rows_of_params)
    out.line()
    needed = [each for each in workflow.input_params.values() if each.required]
    inputs = [word for each in needed for word in ("-i", f"{each.name}={placeholder(each)}")]
    run = shlex.join(["signoff", "run", name, *inputs])
    out.line(f"first step: {first}")
    out.line(f"as a run:   {run} --pull (you do the work), or {run} (an agent does)")


def _steps(workflow: Workflow) -> list[dict[str, Any]]:
    numbers = {step: number for number, step in enumerate(workflow.steps, 1)}
    return [
        {
            "step": numbers[step.id],
            "id": step.id,
            "title": step.title,
            "agent": step.agent,
            "next": {
                edge.name: numbers.get(edge.to) if edge.to is not None else None
                for edge in workflow.edges.from_step(step.id)
            },
        }
        for step in workflow.steps.values()
    ]


def _params(workflow: Workflow) -> list[dict[str, Any]]:
    return [
        {
            "option": option_name(name),
            "values": placeholder(param),
            "required": param.required,
            "default": None if param.required or param.default is None
            else value_text(param.default),
            "description": param.arg.description,
        }
        for name, param in {**_undeclared(workflow), **workflow.declared_params}.items()
    ]  # fmt: skip


def _undeclared(workflow: Workflow) -> dict[str, Param]:
    """Returns the texts that handlers read from their context without declaring them."""
    return {name: Param(name, str, default=None) for name in sorted(workflow.inputs or ())}


def _first_sentence(text: str) -> str:
    """Returns what a table has room for; the rest says when to use the skill and when not."""
    first, separator, _ = " ".join(text.split()).partition(". ")
    return first + separator.strip()


def _arrows(targets: dict[str, int | None]) -> str:
    """Returns where each outcome leads; a single way on needs no name."""
    # Most steps have one way on, and naming its outcome would only fill the table.
    if len(set(targets.values())) == 1:
        return str(next(iter(targets.values())) or "end")
    return ", ".join(f"{name}: {number or 'end'}" for name, number in targets.items())
