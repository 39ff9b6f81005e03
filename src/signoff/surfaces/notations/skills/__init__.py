"""The commands of skills: `signoff skill`."""

from __future__ import annotations

import click

from signoff.surfaces.cli import options as cli
from signoff.surfaces.notations.skills.catalog import install, list_skills, show
from signoff.surfaces.notations.skills.quality_review import qr
from signoff.surfaces.notations.skills.step import script, step


@click.group(cls=cli.Group)
def skill() -> None:
    """Follow a procedure step by step; a shortcut for `run`, `next` and `submit`.

    A skill hands an agent the instructions of one step, and the command for the next. The steps
    keep nothing between commands. `signoff run NAME` follows the same skill as a run instead: it
    is recorded, can be resumed, and no step can be skipped.

    Examples:
      signoff skill list
      signoff skill show decision-critic
      signoff skill step decision-critic --step 1
      signoff skill install
      signoff run decision-critic --pull
    """


for command in (install, list_skills, qr, script, show, step):
    skill.add_command(command)
