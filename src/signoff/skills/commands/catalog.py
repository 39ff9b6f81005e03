"""`signoff skill list` and `show`: which skills there are, and what one of them does."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import click

from signoff.cli import exits
from signoff.cli.options import CliCommand, output_options
from signoff.cli.output import Output
from signoff.skills.commands.project import context_here


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
    from signoff.skills.discovery import all_skills

    with redirect_stdout(sys.stderr):
        skills, problems = all_skills(context_here())
    if out.as_json:
        out.json(
            [
                {
                    "name": skill.workflow.name,
                    "description": skill.workflow.description,
                    "steps": skill.workflow.total_steps,
                    "origin": skill.source.origin,
                }
                for skill in skills
            ]
        )
    else:
        rows = [(s.workflow.name, s.workflow.total_steps, s.source.origin, s.workflow.description)
                for s in skills]  # fmt: skip
        out.table(("SKILL", "STEPS", "FROM", "DESCRIPTION"), rows, spare=("FROM", "STEPS"))
    for problem in problems:
        out.warn(str(problem))
    return exits.ERROR if problems else exits.OK
