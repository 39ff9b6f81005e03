"""The commands of profiles: `signoff profile`.

They are shortcuts for the general commands: each does what `run`, `approve`, `reject`, `cancel` and
`show` do, with the latest session where none is named. What there is to use is in `catalog`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from signoff.app.agents import refuse_not_ready
from signoff.app.answering import AnswerInput, decide, find_item
from signoff.app.project import Project
from signoff.app.runs import cancel as cancel_run
from signoff.app.runs import catch_up
from signoff.app.show import show as details_of
from signoff.app.start import plan
from signoff.app.trust import context_here
from signoff.cli import exits
from signoff.cli.driving import drive_new, drive_resume, finish
from signoff.cli.options import (
    CliCommand,
    Group,
    complete_run,
    declared_options,
    inputs,
    limit_settings,
    open_here,
    output_options,
    progress_options,
    project_dir_option,
    set_up_logging,
)
from signoff.cli.output import DisplayOptions, Output
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.errors import NotTrusted, UsageError
from signoff.profiles.commands.catalog import list_profiles, providers, show, validate
from signoff.profiles.discovery import profile_commands
from signoff.profiles.notation import NOTATION
from signoff.profiles.providers import FsAbility
from signoff.profiles.transitions import SessionCommand, TransitionTable
from signoff.profiles.view import position
from signoff.remedies import Resume, ShowRun
from signoff.runtime.store_port import RunRow

F = TypeVar("F", bound=Callable[..., Any])

OVERRULING = {
    SessionCommand.APPROVE_COMPLETE: "--complete",
    SessionCommand.APPROVE_REVISE: "--revise",
}
"""How a user overrules a verdict."""

_adopt_option = click.option(
    "--adopt", is_flag=True, help="Continue with settings or a profile that have changed."
)


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


def session_argument(command: F) -> F:
    """Adds the optional name of a session."""
    return click.argument(
        "session", required=False, metavar="[SESSION]", shell_complete=complete_run
    )(command)


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
@click.option("-c", "--context", "values", multiple=True, metavar="KEY=VALUE",
              help="A value of the profile's context. Repeatable.")  # fmt: skip
@click.option("--name", "run_name", metavar="NAME", help="A name for the session; must be new.")
@declared_options(NOTATION.options)
@project_dir_option
@progress_options
def init(
    name: str,
    values: tuple[str, ...],
    run_name: str | None,
    options: dict[str, Any],
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Start a session and drive it to its first gate.

    NAME is a profile. Does what `signoff run NAME -i KEY=VALUE` does. Roles without a provider
    here or in the settings are done by hand: you paste the prompt into a chat and save its
    answer.

    Examples:
      signoff profile init python-module -c module=slugs -c description="..."
      signoff profile init jpa-mt -c ddl=products.sql ... --generator claude
    """
    params = {key.replace("-", "_"): value for key, value in inputs(values, "-c").items()}
    planned = plan(
        Path.cwd(), os.environ, f"profile:{name}", params,
        name=run_name, command_line=limit_settings(limits), options=options,
    )  # fmt: skip
    set_up_logging(planned.settings)
    for warning in (*planned.warnings, *planned.target.workflow.warnings):
        display.out.warn(str(warning))
    refuse_not_ready(planned.not_ready())
    with planned.open(Path.cwd(), os.environ) as project:
        return drive_new(project, planned, display, params, name=run_name)


@click.command(cls=CliCommand)
@session_argument
@click.option("--complete", "command", flag_value=SessionCommand.APPROVE_COMPLETE.value,
              help="Finish the session, whatever the review's verdict is.")  # fmt: skip
@click.option("--revise", "command", flag_value=SessionCommand.APPROVE_REVISE.value,
              help="Revise the code, whatever the review's verdict is.")  # fmt: skip
@click.option("--why", default="", metavar="TEXT",
              help="The reason, which is recorded; --revise passes it on.")  # fmt: skip
@click.option("--fs-ability", type=click.Choice([each.value for each in FsAbility]),
              help="What the provider can do with files, from now on.")  # fmt: skip
@click.option("--hash-prompts/--no-hash-prompts", default=None,
              help="Whether the digests of prompts are recorded, from now on.")  # fmt: skip
@_adopt_option
@project_dir_option
@progress_options
def approve(
    session: str | None,
    why: str,
    adopt: bool,
    limits: dict[str, str],
    display: DisplayOptions,
    **extras: Any,
) -> int:
    """Approve what a session waits for, and continue it.

    Does what `signoff approve SESSION --resume` does. SESSION is the latest one by default. The
    file counts as it is now: edit it first if you like. At a response that you write yourself,
    this hands it in. A decision that is recorded already is used.

    Examples:
      signoff profile approve
      signoff profile approve first-try --revise --why "the names are unclear"
    """
    chosen = {name: value for name, value in extras.items() if value is not None}
    with open_here(limits=limits, drives=True) as project:
        row = find_session(project, session)
        if not project.store.items(row.name, state=(ItemState.ANSWERED,)):
            if project.store.items(row.name):
                _check_overruling(row, chosen.get("command"))
            _decide(project, row, AnswerInput(None, why, extras=chosen), yes=True)
        elif chosen or why:
            raise UsageError(f"session {row.name!r} has a decision that it has not used yet")
        return drive_resume(project, display, project.run(row.name), adopt=adopt)


@click.command(cls=CliCommand)
@session_argument
@click.option("-f", "--feedback", required=True, metavar="TEXT", help="What has to change.")
@_adopt_option
@project_dir_option
@progress_options
def reject(
    session: str | None, feedback: str, adopt: bool, limits: dict[str, str], display: DisplayOptions
) -> int:
    """Reject what a session waits for.

    Does what `signoff reject SESSION --resume` does. SESSION is the latest one by default. An
    agent's response is requested once more with the feedback. Anything else waits for you to
    edit the file.

    Examples:
      signoff profile reject -f "the plan has no error handling"
    """
    if not feedback.strip():
        raise UsageError("the feedback is empty; write what has to change: -f TEXT")
    with open_here(limits=limits, drives=True) as project:
        row = find_session(project, session)
        _decide(project, row, AnswerInput(None, feedback), yes=False)
        return drive_resume(project, display, project.run(row.name), adopt=adopt)


@click.command(cls=CliCommand)
@session_argument
@click.option("--why", default="", help="The reason, which is recorded.")
@project_dir_option
@output_options
def cancel(session: str | None, why: str, out: Output) -> int:
    """Cancel a session; its files stay.

    Does what `signoff cancel SESSION` does. SESSION is the latest one by default.

    Examples:
      signoff profile cancel first-try --why "wrong table"
    """
    with open_here() as project:
        name, ended = asyncio.run(cancel_run(project, find_session(project, session).name, why))
        catch_up(project, name, out.warn)
        finish(details_of(project, name), out)
    return exits.OK if ended is Status.CANCELLED else exits.ERROR


@click.command(cls=CliCommand)
@session_argument
@project_dir_option
@output_options
def status(session: str | None, out: Output) -> None:
    """Show where a session is and what it waits for.

    Does what `signoff show SESSION` does, in short. SESSION is the latest one by default. The
    session's own state is in its `state.json`.

    Examples:
      signoff profile status
      signoff profile status first-try --json
    """
    with open_here() as project:
        finish(details_of(project, find_session(project, session).name), out)


def find_session(project: Project, name: str | None) -> RunRow:
    """Returns a session by its run's name, or the latest one."""
    if name is None:
        for row in project.store.rows(limit=-1):
            if is_session(project, row):
                return row
        raise UsageError("there are no sessions yet; start one: signoff profile init NAME")
    row = project.run(name)
    if not is_session(project, row):
        raise UsageError(f"run {row.name!r} is not a session of a profile", remedy=ShowRun(name))
    return row


def is_session(project: Project, row: RunRow) -> bool:
    """Tells whether a run is a session of a profile."""
    if row.target:
        return row.target.startswith(f"{NOTATION.scheme}:")
    # A workflow that was compiled in Python need not record its target.
    found = project.notation_of(row)
    return found is not None and found.name == NOTATION.name


def _check_overruling(row: RunRow, command: str | None) -> None:
    phase, stage, _ = position(row.status, row.step)
    if command is not None and TransitionTable.get(phase, stage, command) is None:
        raise UsageError(
            f"{OVERRULING[SessionCommand(command)]} overrules the verdict of a review, but session "
            f"{row.name!r} is at {row.step}"
        )


def _decide(project: Project, row: RunRow, answer: AnswerInput, *, yes: bool) -> None:
    if not project.store.items(row.name):
        details = details_of(project, row.name)
        what = "an answer that it has not used yet" if details.answered else "nothing to decide"
        raise UsageError(
            f"session {row.name!r} is {row.status.value} and has {what}",
            remedy=Resume(row.name) if details.answered else details.remedies,
        )
    decide(project, find_item(project, row.name).id, answer, yes=yes)


for command in (
    list_profiles, show, init, approve, reject, status, cancel, providers, validate
):  # fmt: skip
    profile.add_command(command)
