"""Answers from the command line: records one, then reports it or resumes the run."""

from __future__ import annotations

import json

import click

from signoff.app.answering import AnswerInput, decide, find_item
from signoff.app.hand_over import wake_if_handed_over
from signoff.app.project import Project
from signoff.app.runs import catch_up
from signoff.cli import exits
from signoff.cli.driving import drive_resume
from signoff.cli.options import answer_options, complete_run, open_here, progress_options
from signoff.cli.output import DisplayOptions
from signoff.runtime.store_port import InboxItem


def decision_command(verb: str, *, yes: bool, text: str) -> click.Command:
    """Returns the `approve` or the `reject` command; `text` is its help."""
    examples = f"""\b
Examples:
  signoff {verb}                          the latest run's only request
  signoff {verb} 7 --why "..." --resume
  signoff {verb} first-try --digest 3f2a9c01b7de
"""

    @click.command(help=text, epilog=examples)
    @click.argument("where", required=False, metavar="[REQUEST|RUN]", shell_complete=complete_run)
    @click.option("--why", "--text", "why", default="", help="The reason, which is recorded.")
    @answer_options
    @progress_options
    def command(
        where: str | None,
        why: str,
        by: str,
        digest: str | None,
        resume_now: bool,
        limits: dict[str, str],
        display: DisplayOptions,
    ) -> int:
        with open_here(limits=limits, drives=resume_now) as project:
            item = find_item(project, where)
            if not (yes or why) and display.may_ask:
                # Without a reason, the next one to work on it can only guess.
                why = click.prompt("Why", default="", show_default=False, err=True)
            decided = decide(project, item.id, AnswerInput(None, why, by, digest), yes=yes)
            status = "approved" if yes else "rejected"
            return after_decision(project, display, decided, status, resume_now=resume_now)

    return command


def after_decision(
    project: Project, display: DisplayOptions, item: InboxItem, status: str, *, resume_now: bool
) -> int:
    """Reports an answer that was just recorded, or resumes its run; returns the exit code."""
    out = display.out
    if resume_now:
        out.note(f"{status} #{item.id}")
        return drive_resume(project, display, project.run(item.run))
    handed_over = wake_if_handed_over(project, item.run)
    catch_up(project, item.run, out.warn)
    remaining = len(project.store.items(item.run))
    if out.as_json:
        out.json(
            {
                "number": item.id,
                "run": item.run,
                "state": item.state,
                "answered_by": item.answered_by,
                "answered_at": item.answered_at,
                "digest": item.digest,
                "value": json.loads(item.answer or "{}").get("value"),
                "open": remaining,
            }
        )
        return exits.OK
    out.line(f"{status} #{item.id}  {item.run}")
    more = f"{remaining} more to answer: signoff inbox {item.run}; " if remaining else ""
    if handed_over:
        out.note(f"{more}a worker continues it; follow it: signoff logs -f {item.run}")
    else:
        out.note(f"{more}to continue it, run: signoff resume {item.run}")
    return exits.OK
