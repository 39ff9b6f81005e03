"""The commands of profiles: `signoff profile`.

They are shortcuts for the general commands: `init` for `signoff run`, `approve` and `reject` for
the commands of the same name with `--resume`, `status` for `signoff show`.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from signoff.app.trust import context_here
from signoff.cli.options import Group
from signoff.errors import NotTrusted
from signoff.profiles.commands.catalog import list_profiles, providers, show, validate
from signoff.profiles.commands.sessions import approve, cancel, init, reject, status


class ProfileGroup(Group):
    """A group with the commands that profiles add; they are loaded only when one is needed."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command; for one that is not built in, the profiles are loaded."""
        return super().get_command(ctx, cmd_name) or self._additional(cmd_name).get(cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click prescribes it
        """Returns the names of all commands, those of profiles last."""
        own = list(self.commands)
        try:
            return [*own, *(name for name in self._additional() if name not in own)]
        except NotTrusted:
            # Help is for everyone, and imports nothing.
            return own

    def _additional(self, wanted: str | None = None) -> Mapping[str, click.Command]:
        """Returns the commands of profiles; loading stops at the first profile with `wanted`."""
        from signoff.profiles.discovery import profile_commands

        added = click.Group()
        for _ in profile_commands(context_here(), added):
            if wanted in added.commands:
                break
        return added.commands


@click.group(cls=ProfileGroup)
def profile() -> None:
    """Generate code in sessions; a shortcut for `run`, `approve` and `reject`.

    A session stops at every gate whose approver is `manual`, with a file that you may edit
    before you approve it. These commands are shortcuts: sessions are runs, so `signoff runs`,
    `show`, `inbox`, `logs`, `approve`, `reject`, `resume` and `cancel` work on them too.

    Examples:
      signoff profile list
      signoff profile show python-module
      signoff profile init python-module -c module=slugs -c description="..."
      signoff profile approve
      signoff profile reject -f "the plan has no error handling"
      signoff profile status
    """


for command in (
    list_profiles, show, init, approve, reject, status, cancel, providers, validate
):  # fmt: skip
    profile.add_command(command)
