"""`signoff metrics`."""

from __future__ import annotations

import sys

import click

from signoff.app.metrics import metrics_text
from signoff.cli.options import CliCommand, debug_option, open_here


@click.command(cls=CliCommand)
@debug_option
def command() -> None:
    """Print metrics of all runs in the text format of Prometheus.

    They are computed from the database, so they are right after crashes and restarts, and
    include runs that other processes drive.

    Examples:
      signoff metrics
      signoff metrics > /var/lib/node_exporter/signoff.prom
    """
    with open_here() as project:
        sys.stdout.write(metrics_text(project.store, project.clock.now()))
