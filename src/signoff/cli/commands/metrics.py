"""`signoff metrics`."""

from __future__ import annotations

import sys

import click

from signoff.app.run_records import metrics_text
from signoff.cli.options import CliCommand, open_here, output_options
from signoff.cli.output import Output


@click.command(cls=CliCommand)
@output_options
def command(out: Output) -> None:
    """Print metrics of all runs in the text format of Prometheus.

    They are computed from the database, so they are right after crashes and restarts, and
    include runs that other processes drive.

    Examples:
      signoff metrics
      signoff metrics > /var/lib/node_exporter/signoff.prom
    """
    with open_here() as project:
        text = metrics_text(project.store, project.clock.now())
    if out.as_json:
        out.json({"format": "prometheus", "text": text})
    else:
        sys.stdout.write(text)
