"""The commands of skills: `signoff skill`. Each is imported when it is used."""

from __future__ import annotations

from pkgutil import resolve_name

import click

from signoff.cli.options import Group

MODULES = {
    "install": "install:install",
    "list": "catalog:list_skills",
    "qr": "quality_review:qr",
    "script": "script:script",
    "show": "catalog:show",
    "step": "step:step",
    "uninstall": "install:uninstall",
}
"""Where each command is defined, seen from this package."""


class SkillGroup(Group):
    """A group that imports a command when it is used: a step must not wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click prescribes it
        """Returns the names of all commands."""
        return list(MODULES)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  # click prescribes it
        cmd_name: str,
    ) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in MODULES:
            return None
        command: click.Command = resolve_name(f"{__name__}.{MODULES[cmd_name]}")
        return command


@click.group(cls=SkillGroup)
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
