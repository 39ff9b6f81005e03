"""The command of the package. It uses the helpers that signoff's own commands use."""

import click

from signoff.surfaces.cli.options import debug_option, json_option, output


@click.command()
@json_option
@debug_option
def checklists(as_json):
    """List the checklists that can be run by name."""
    from signoff_checklist.compiler import NAMED

    out = output(as_json)
    if as_json:
        out.json(NAMED)
        return
    out.table(["TARGET", "ITEMS"], [[f"checklist:{name}", len(NAMED[name])] for name in NAMED])
