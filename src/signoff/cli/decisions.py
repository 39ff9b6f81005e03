"""What follows a person's decision: it is said, and with `--resume` the run goes on."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.app.history import timeline_of
from signoff.app.project import Project
from signoff.app.resume import resume
from signoff.app.run_files import catch_up
from signoff.app.settings import given_limits
from signoff.cli import exits
from signoff.cli.display_options import DisplayOptions
from signoff.cli.driving import drive
from signoff.runtime.store_port import InboxItem


@dataclass(frozen=True)
class Decided:
    """A request that was just answered, and the word for it."""

    item: InboxItem
    word: str


def after_decision(
    project: Project, display: DisplayOptions, decided: Decided, *, go_on: bool
) -> int:
    """Says what was recorded, lets the run go on if wanted, and returns the exit code."""
    item, out = decided.item, display.out
    if go_on:
        out.note(f"{decided.word} #{item.id}")
        row = project.run(item.run)
        return drive(
            project,
            display,
            lambda observers: resume(
                project,
                item.run,
                limits=given_limits(project.settings),
                observers=observers,
                warn=out.warn,
            ),
            workflow=project.find_again(row).workflow,
            known={row.name: timeline_of(project, row)},
        )
    catch_up(project, item.run, out.warn)
    left = len(project.store.items(item.run))
    if out.as_json:
        out.json(
            {
                "number": item.id,
                "run": item.run,
                "state": item.state,
                "answered_by": item.answered_by,
                "answered_at": item.answered_at,
                "digest": item.digest,
                "open": left,
            }
        )
        return exits.OK
    out.line(f"{decided.word} #{item.id}  {item.run}")
    more = f"{left} more to answer: signoff inbox {item.run}; " if left else ""
    out.note(f"{more}to continue it, run: signoff resume {item.run}")
    return exits.OK
