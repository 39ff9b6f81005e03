"""`signoff profile init`, `approve` and `reject`: each drives the session to its next wait."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import (
    CliCommand,
    declared_options,
    limit_settings,
    open_here,
    pairs,
    progress_options,
    project_dir_option,
)
from signoff.cli.output import DisplayOptions
from signoff.errors import InvalidParams, UsageError
from signoff.profiles.commands.project import find_session, session_argument
from signoff.profiles.notation import NOTATION
from signoff.profiles.providers import FsAbility
from signoff.profiles.transitions import SessionCommand, TransitionTable
from signoff.remedies import PassOption

if TYPE_CHECKING:
    from signoff.app.answering import AnswerInput
    from signoff.app.project import Project
    from signoff.app.start import StartPlan
    from signoff.app.targets import Target
    from signoff.profiles.commands.session_view import SessionView
    from signoff.runtime.store_port import RunRow

CURRENT_USER = "\N{NULL}"
"""The value of `--dev` without a name; no user has this name."""

_adopt_option = click.option(
    "--adopt", is_flag=True, help="Continue with settings or a profile that have changed."
)


def _context_values(
    _context: click.Context, _option: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for text in values:
        for key, value in pairs([text], "--context").items():
            name = key.replace("-", "_")
            if name in parsed:
                raise click.BadParameter(f"{name!r} is given twice", param_hint="--context")
            parsed[name] = value
    return parsed


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
@click.option("-c", "--context", "params", multiple=True, metavar="KEY=VALUE",
              callback=_context_values,
              help="A value of the profile's context. Repeatable.")  # fmt: skip
@click.option("--name", "run_name", metavar="NAME", help="A name for the session; must be new.")
@declared_options([each for each in NOTATION.options if each.name != "dev"])
@click.option("--dev", is_flag=False, flag_value=CURRENT_USER, metavar="[NAME]",
              help="The developer, recorded; without a name, the logged-in user.")  # fmt: skip
@project_dir_option
@progress_options
def init(
    name: str,
    params: dict[str, str],
    run_name: str | None,
    options: dict[str, Any],
    dev: str | None,
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
    from signoff.app.readiness import refuse_not_ready
    from signoff.app.start import start
    from signoff.cli.driving import drive
    from signoff.cli.options import set_up_logging

    with _context_errors(name):
        planned = _planned(name, params, run_name, dev, options, limits)
        set_up_logging(planned.settings)
        target = planned.target if planned.home.path.is_dir() else _prepared(planned)
    for warning in (*planned.warnings, *target.workflow.warnings):
        display.out.warn(str(warning))
    refuse_not_ready(planned.not_ready())
    if display.events is not None and not display.events.parent.is_dir():
        # Opening the file would report it too, but only after a new project has been created.
        raise UsageError(f"--events: there is no folder {display.events.parent}")
    with _context_errors(name), planned.open(Path.cwd(), os.environ) as project:
        return drive(
            project,
            _session_display(display),
            lambda watchers: start(
                project,
                target,
                params,
                name=run_name,
                limits=planned.own_limits,
                observers=watchers,
            ),
            workflow=target.workflow,
        )


def _planned(
    name: str,
    params: dict[str, str],
    run_name: str | None,
    dev: str | None,
    options: dict[str, str | None],
    limits: dict[str, str],
) -> StartPlan:
    """Returns everything that a session would start with; raises where it would be refused."""
    from signoff.app.answering import current_user
    from signoff.app.start import plan
    from signoff.runtime.names import checked_name

    return plan(
        Path.cwd(),
        os.environ,
        f"profile:{name}",
        params,
        name=run_name and checked_name(run_name),
        command_line=limit_settings(limits),
        options={**options, "dev": current_user() if dev == CURRENT_USER else dev},
    )


def _prepared(planned: StartPlan) -> Target:
    """Returns the target with everything that it prepares for this run.

    The engine does this too, but only after a new project has been created.
    """
    from signoff.runtime.environment import Secrets
    from signoff.runtime.preparation import prepared_params

    workflow = planned.target.workflow
    values = prepared_params(workflow, planned.params, Secrets.of(os.environ))
    return replace(planned.target, workflow=workflow.with_prepare(lambda _params: values))


@contextmanager
def _context_errors(name: str) -> Iterator[None]:
    """Lists the problems of parameters as those of the context that they are for a profile."""
    try:
        yield
    except InvalidParams as error:
        problems = [f"  - {str(each).removeprefix('parameter ')}" for each in error.problems]
        count = f"{len(problems)} problem{'s' if problems[1:] else ''}"
        lines = [f"the context of profile {name!r} has {count}:", *problems]
        raise UsageError("\n".join(lines)) from error


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
    command: str | None,
    why: str,
    fs_ability: str | None,
    hash_prompts: bool | None,
    adopt: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Approve what a session waits for, and continue it.

    SESSION is the latest one by default. The file counts as it is now: edit it first if you like.
    At a response that you write yourself, this hands it in. A decision that is recorded already
    is used.

    Examples:
      signoff profile approve
      signoff profile approve first-try --revise --why "the names are unclear"
    """
    from signoff.app.answering import AnswerInput
    from signoff.profiles.commands.session_view import view_session

    extras = {"command": command, "fs_ability": fs_ability, "hash_prompts": hash_prompts}
    chosen = {name: value for name, value in extras.items() if value is not None}
    with open_here(limits=limits, drives=True) as project:
        view = view_session(project, find_session(project, session))
        if view.answered and not (chosen or why):
            _check_definition(project, view.row, adopt=adopt)
            return _continue(project, display, view, adopt=adopt)
        _check_pending(view, "approve")
        if command is not None:
            _check_overruling(view, SessionCommand(command))
        answer = AnswerInput(None, why, extras=chosen)
        return _decide(project, display, view, answer, yes=True, adopt=adopt)


@click.command(cls=CliCommand)
@session_argument
@click.option("-f", "--feedback", required=True, metavar="TEXT", help="What has to change.")
@_adopt_option
@project_dir_option
@progress_options
def reject(
    session: str | None,
    feedback: str,
    adopt: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Reject what a session waits for.

    SESSION is the latest one by default. An agent's response is requested once more with the
    feedback. Anything else waits for you to edit the file.

    Examples:
      signoff profile reject -f "the plan has no error handling"
    """
    from signoff.app.answering import AnswerInput
    from signoff.profiles.commands.session_view import view_session

    if not feedback.strip():
        raise UsageError("the feedback is empty; write what has to change: -f TEXT")
    with open_here(limits=limits, drives=True) as project:
        view = view_session(project, find_session(project, session))
        _check_pending(view, "reject")
        return _decide(project, display, view, AnswerInput(None, feedback), yes=False, adopt=adopt)


def _check_pending(view: SessionView, verb: str) -> None:
    """Raises `UsageError` if a session does not wait for a decision."""
    if view.requests:
        return
    raise UsageError(
        f"session {view.row.name!r} has nothing to {verb}: phase {view.phase.value}, "
        f"stage {view.stage or 'none'}, status {view.status.value}",
        remedy=view.remedies,
    )


def _check_overruling(view: SessionView, command: SessionCommand) -> None:
    from signoff.profiles.commands.session_view import OVERRULING

    if TransitionTable.get(view.phase, view.stage, command) is None:
        raise UsageError(
            f"{OVERRULING[command]} overrules the verdict of a review, but session "
            f"{view.row.name!r} is at {view.position}"
        )


def _decide(
    project: Project,
    display: DisplayOptions,
    view: SessionView,
    answer: AnswerInput,
    *,
    yes: bool,
    adopt: bool,
) -> int:
    """Records a decision and continues the session."""
    from signoff.app.answering import decide, find_item

    item = find_item(project, view.row.name)
    # A decision that cannot be used must not be recorded: it could not be taken back.
    _check_definition(project, view.row, adopt=adopt)
    decide(project, item.id, answer, yes=yes)
    return _continue(project, display, view, adopt=adopt)


def _continue(project: Project, display: DisplayOptions, view: SessionView, *, adopt: bool) -> int:
    """Continues a session with the decision that is recorded."""
    from signoff.cli.driving import drive_resume

    shown = _session_display(display, view)
    return drive_resume(project, shown, project.run(view.row.name), adopt=adopt)


def _check_definition(project: Project, row: RunRow, *, adopt: bool) -> None:
    """Raises `UsageError` if a session can only be continued with another definition."""
    if project.find_again(row).workflow.digest != row.definition and not adopt:
        raise UsageError(
            f"the settings in 'profiles:' or the profile have changed since session {row.name!r} "
            "was started, so nothing was done; undo the change, or continue with it",
            remedy=PassOption("adopt"),
        )


def _session_display(display: DisplayOptions, view: SessionView | None = None) -> DisplayOptions:
    """Returns the options with which a session is shown: its own events, and its own report."""
    from signoff.cli import exits
    from signoff.profiles.commands.session_view import print_session, view_session
    from signoff.profiles.events import SessionEventsFile, SessionPosition

    def report(project: Project, name: str) -> int:
        now = view_session(project, project.run(name))
        # A reader that closed the pipe (`| head`) does not change how the session stopped.
        with suppress(BrokenPipeError):
            print_session(now, display.out)
        return exits.exit_code(now.row.status)

    positions = {}
    if view is not None and view.row.step is not None:
        positions[view.row.name] = SessionPosition(view.row.step, view.row.iteration)
    open_events = partial(SessionEventsFile, positions=positions)
    return replace(display, open_events=open_events, report=report)
