"""The commands of profiles: `signoff profile`.

They are shortcuts for the general commands: each does what `run`, `approve`, `reject` and `show`
do, with the latest session where none is named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from signoff.app.people.answering import AnswerInput, decide, find_item
from signoff.app.runs.show import show as details_of
from signoff.app.runs.start import plan
from signoff.app.settings.agents import refuse_not_ready
from signoff.app.settings.project import Project
from signoff.app.settings.trust import context_here
from signoff.core.errors import NotTrusted, UsageError
from signoff.core.remedies import Resume, ShowRun
from signoff.core.requests import ItemState
from signoff.profiles import factories
from signoff.profiles.profile_notation import NOTATION
from signoff.profiles.providers import FsAbility
from signoff.profiles.session import ROLES
from signoff.profiles.settings import STAGES, ProfilesSection
from signoff.profiles.transitions import SessionCommand, TransitionTable
from signoff.profiles.view import position
from signoff.runtime.store_port import RunRow
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import drive_new, drive_resume, finish
from signoff.surfaces.cli.output import DisplayOptions, Output


@cli.command("list")
@cli.project_dir_option
def list_profiles(out: Output) -> None:
    """List profiles.

    These are shipped with signoff, installed by packages, or in the project's .signoff/profiles/.
    A profile whose file cannot be read is listed with the reason.
    """
    from signoff.documents.entry_points import package_summary

    listed = [
        {
            "name": each.name,
            # Only loading an installed profile would show its own description.
            "description": each.description or package_summary(factories.GROUP, each.name),
            "origin": each.origin,
            "problem": str(each.problem) if each.problem else None,
        }
        for each in factories.all_profiles(context_here())
    ]
    rows = [
        (
            each["name"],
            each["origin"],
            f"cannot be used: {each['problem']}" if each["problem"] else each["description"],
        )
        for each in listed
    ]
    out.listing(listed, ("PROFILE", "FROM", "DESCRIPTION"), rows, spare=("FROM",))


@cli.command()
@click.argument("name", metavar="NAME")
@cli.project_dir_option
def show(name: str, out: Output) -> None:
    """Show what a profile needs.

    Lists the values of its context, its options, and who would respond and approve in a session
    now.

    Examples:
      signoff profile show python-module
    """
    context = context_here()
    profile = factories.find_profile(name, context)
    metadata, section = profile.get_metadata(), ProfilesSection.of(context.settings)
    schema, options = metadata.get("context_schema") or {}, metadata.get("options") or {}
    providers = {role: section.provider_for(role) for role in ROLES.values()}
    approvers = {stage: section.stage(stage).approver for stage in STAGES}
    if out.as_json:
        out.json(
            {
                "name": name,
                "description": metadata.get("description", ""),
                "context_schema": schema,
                "options": options,
                "can_regenerate_prompts": profile.can_regenerate_prompts,
                "providers": providers,
                "approvers": approvers,
                "max_iterations": section.max_iterations,
            }
        )
        return
    out.line(f"{name}: {metadata.get('description', '')}")
    for heading, fields in (("CONTEXT", schema), ("OPTION", options)):
        if fields or heading == "CONTEXT":
            out.line()
            out.table((heading, "TYPE", "VALUE", "DESCRIPTION"), [*_fields(fields)])
    out.line()
    out.table(("ROLE", "PROVIDER"), list(providers.items()))
    out.line()
    out.table(("STAGE", "APPROVER"), list(approvers.items()))
    out.line()
    needed = [key for key, field in schema.items() if _is_required(field)]
    values = "".join(f" -c {key}=..." for key in needed)
    out.line(f"start a session: signoff profile init {name}{values}")


def _fields(schema: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    for key, field in schema.items():
        default = field.get("default")
        value = "optional" if default in (None, "") else f"default: {default}"
        value = "required" if _is_required(field) else value
        if choices := field.get("choices"):
            value += f"; one of: {', '.join(map(str, choices))}"
        if field.get("exists"):
            value += "; must exist"
        yield key, str(field.get("type", "string")), value, str(field.get("description", ""))


def _is_required(field: Mapping[str, Any]) -> bool:
    return bool(field.get("required")) and "default" not in field


F = TypeVar("F", bound=Callable[..., Any])

OVERRULING = {
    SessionCommand.APPROVE_COMPLETE: "--complete",
    SessionCommand.APPROVE_REVISE: "--revise",
}
"""How a user overrules a verdict."""

_adopt_option = click.option(
    "--adopt", is_flag=True, help="Continue with settings or a profile that have changed."
)


class ProfileGroup(cli.Group):
    """A group with the commands that profiles add; they are loaded only when one is needed."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command; for one that is not built in, the profiles are loaded."""
        return super().get_command(ctx, cmd_name) or self._additional().get(cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click prescribes it
        """Returns the names of all commands, those of profiles last."""
        own = list(self.commands)
        try:
            return [*own, *(name for name in self._additional() if name not in own)]
        except NotTrusted:
            # Help is for everyone, and imports nothing.
            return own

    def _additional(self) -> Mapping[str, click.Command]:
        """Returns the commands of profiles."""
        added = click.Group()
        # A profile that cannot be loaded is listed with its problem by `profile list`.
        list(factories.profile_commands(context_here(), added))
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
        "session", required=False, metavar="[SESSION]", shell_complete=cli.complete_run
    )(command)


@click.command(cls=cli.CliCommand)
@click.argument("name", metavar="NAME")
@click.option("-c", "--context", "values", multiple=True, metavar="KEY=VALUE",
              help="A value of the profile's context. Repeatable.")  # fmt: skip
@click.option("--name", "run_name", metavar="NAME", help="A name for the session; must be new.")
@cli.declared_options(NOTATION.options)
@cli.project_dir_option
@cli.progress_options
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
    params = {key.replace("-", "_"): value for key, value in cli.inputs(values, "-c").items()}
    planned = plan(
        Path.cwd(), os.environ, f"profile:{name}", params,
        name=run_name, command_line=cli.limit_settings(limits), options=options,
    )  # fmt: skip
    cli.set_up_logging(planned.settings)
    for warning in (*planned.warnings, *planned.target.workflow.warnings):
        display.out.warn(str(warning))
    refuse_not_ready(planned.not_ready())
    with planned.open(Path.cwd(), os.environ) as project:
        return drive_new(project, planned, display, params, name=run_name)


@click.command(cls=cli.CliCommand)
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
@cli.project_dir_option
@cli.progress_options
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
    with cli.open_here(limits=limits, drives=True) as project:
        row = find_session(project, session)
        if not project.store.items(row.name, state=(ItemState.ANSWERED,)):
            if project.store.items(row.name):
                _check_overruling(row, chosen.get("command"))
            _decide(project, row, AnswerInput(None, why, extras=chosen), yes=True)
        elif chosen or why:
            raise UsageError(f"session {row.name!r} has a decision that it has not used yet")
        return drive_resume(project, display, project.run(row.name), adopt=adopt)


@click.command(cls=cli.CliCommand)
@session_argument
@click.option("-f", "--feedback", required=True, metavar="TEXT", help="What has to change.")
@_adopt_option
@cli.project_dir_option
@cli.progress_options
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
    with cli.open_here(limits=limits, drives=True) as project:
        row = find_session(project, session)
        _decide(project, row, AnswerInput(None, feedback), yes=False)
        return drive_resume(project, display, project.run(row.name), adopt=adopt)


@cli.command()
@session_argument
@cli.project_dir_option
def status(session: str | None, out: Output) -> None:
    """Show where a session is and what it waits for.

    Does what `signoff show SESSION` does, in short. SESSION is the latest one by default. The
    session's own state is in its `state.json`.

    Examples:
      signoff profile status
      signoff profile status first-try --json
    """
    with cli.open_here() as project:
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


for command in (list_profiles, show, init, approve, reject, status):
    profile.add_command(command)
