"""`signoff profile list`, `show`, `providers` and `validate`: what there is to use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import CliCommand, output_options
from signoff.cli.output import Output
from signoff.profiles.commands.project import context_here, project_dir_option

if TYPE_CHECKING:
    from signoff.notation import CompileContext


@click.command("list", cls=CliCommand)
@project_dir_option
@output_options
def list_profiles(out: Output) -> None:
    """List profiles: shipped ones, installed ones, and those of the project.

    A profile that cannot be used is listed with the reason.
    """
    from signoff.profiles.discovery import all_profiles

    entries = all_profiles(context_here())
    if out.as_json:
        out.json(
            [
                {
                    "name": each.name,
                    "description": each.description,
                    "origin": each.origin,
                    "problem": str(each.problem) if each.problem else None,
                }
                for each in entries
            ]
        )
        return
    rows = [(e.name, e.origin, f"cannot be used: {e.problem}" if e.problem else e.description)
            for e in entries]  # fmt: skip
    out.table(("PROFILE", "FROM", "DESCRIPTION"), rows, spare=("FROM",))
