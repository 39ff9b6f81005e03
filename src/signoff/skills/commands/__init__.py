"""The commands of skills: `signoff skill`."""

from __future__ import annotations

import click

from signoff.cli.options import Group
from signoff.skills.commands.qr import qr


@click.group(cls=Group)
def skill() -> None:
    """Follow a procedure, one step at a time."""


skill.add_command(qr)
