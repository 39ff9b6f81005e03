"""`signoff workers`."""

from __future__ import annotations

import time

import click

from signoff.app.hand_over import worker_to_json
from signoff.app.run_records import living_workers
from signoff.cli.options import CliCommand, open_here, output_options
from signoff.cli.output import Output
from signoff.cli.text import ago


@click.command(cls=CliCommand)
@output_options
def command(out: Output) -> None:
    """List the workers that drive runs, with their load.

    Examples:
      signoff workers
      signoff workers --json
    """
    with open_here() as project:
        workers = living_workers(project.store)
    if out.as_json:
        out.json([worker_to_json(each) for each in workers])
    elif workers:
        now = time.time()
        cells = [
            (
                each.number,
                each.owner.host_name,
                each.owner.pid,
                f"{each.running}/{each.slots}",
                ago(each.started_at, now),
                ", ".join(each.capabilities),
            )
            for each in workers
        ]
        out.table(("WORKER", "HOST", "PID", "RUNS", "STARTED", "CAPABILITIES"), cells)
    else:
        out.line("no workers; start one: signoff worker")
