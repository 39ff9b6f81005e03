"""A command that is nothing by itself: its sub-commands do the work."""

from __future__ import annotations

import click

from signoff.cli import exits


class Group(click.Group):
    """Shows its help to whoever names none of its sub-commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Stops there, as a usage error: a script that forgot the sub-command has nothing yet."""
        if not args and not ctx.resilient_parsing:
            # On stderr, and by us: releases of click differ in where it goes and how it ends.
            click.echo(ctx.get_help(), err=True)
            ctx.exit(exits.USAGE)
        return super().parse_args(ctx, args)
