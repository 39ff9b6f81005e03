"""The `signoff` command: finds the sub-command, runs it, and prints errors as one line.

Sub-commands are in modules of `signoff.surfaces.cli.commands`, imported when they are used; the
tables below are all that `--help` needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

import click

from signoff._version import __version__
from signoff.core.errors import NotTrusted, SignoffError, UnknownName
from signoff.surfaces.cli import exits
from signoff.surfaces.cli.options import CliCommand
from signoff.surfaces.cli.output import clean

if TYPE_CHECKING:
    from signoff import notation

SECTIONS = {
    "Define": {
        "init": "Set up signoff in this project.",
        "validate": "Check settings, constraints and workflows without running them.",
        "graph": "Draw a workflow.",
    },
    "Run": {
        "run": "Start a run.",
        "resume": "Resume a run.",
        "cancel": "Cancel a run.",
        "worker": "Drive runs that were handed over.",
        "workers": "List the workers.",
    },
    "Inspect": {
        "runs": "List or delete runs.",
        "show": "Show a run in detail.",
        "findings": "List the findings of a run.",
        "diff": "Show what a run changed, by round.",
        "cat": "Print the artifact of a run.",
        "report": "Write a report of a run.",
        "logs": "Show the log of a run.",
        "export": "Export a run for other programs.",
        "metrics": "Print metrics of all runs, for Prometheus.",
    },
    "Decide": {
        "inbox": "List pending requests.",
        "answer": "Answer a request.",
        "approve": "Approve a request.",
        "reject": "Reject a request.",
        "web": "Serve the web page and the REST interface.",
        "passkeys": "Register passkeys, and check what they signed.",
    },
    "Work": {
        "next": "Show a run's open work, for external workers.",
        "submit": "Submit work; the engine checks it.",
        "mcp": "Serve this project to coding agents (MCP).",
    },
    "Set up": {
        "demo": "Watch a small local model write until the text passes review.",
        "models": "List, download and delete local models.",
        "backup": "Copy the database while it is in use.",
        "store": "Maintain the store of the runs.",
        "config": "Show settings and where each comes from.",
        "doctor": "Check your setup.",
        "trust": "Trust what this project's settings and code may do.",
    },
}
_HOMES = {
    **dict.fromkeys(("answer", "approve", "reject"), "inbox"),
    **dict.fromkeys(("diff", "cat"), "findings"),
    **dict.fromkeys(("report", "metrics"), "export"),
    "backup": "store",
    "cancel": "run",
    "config": "doctor",
    "graph": "validate",
    "logs": "show",
    "models": "demo",
    "passkeys": "web",
    "resume": "run",
    "submit": "next",
    "workers": "worker",
}
"""The modules of commands that share one with another command."""
COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}


class LazyGroup(CliCommand, click.Group):
    """A group that imports a sub-command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click prescribes it
        """Returns the names of all sub-commands."""
        return [*COMMANDS, *_notation_commands()]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  # click prescribes it
        cmd_name: str,
    ) -> click.Command | None:
        """Imports one sub-command."""
        if cmd_name in COMMANDS:
            home = _HOMES.get(cmd_name)
            module = import_module(f"signoff.surfaces.cli.commands.{home or cmd_name}")
            command: click.Command = getattr(module, f"{cmd_name}_command" if home else "command")
            return command
        from signoff import plugins

        found = _notation_commands().get(cmd_name)
        return plugins.load(found.import_path) if found is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the sub-command; an unknown one is reported with the closest ones."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            problem = UnknownName("command", name, self.list_commands(ctx))
            raise click.UsageError(str(problem), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # click prescribes it
        formatter: click.HelpFormatter,
    ) -> None:
        """Lists the sub-commands by purpose, without importing any."""
        sections = {section: list(commands.items()) for section, commands in SECTIONS.items()}
        for name, command in _notation_commands().items():
            sections.setdefault(command.section, []).append((name, command.help))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


def _notation_commands() -> dict[str, notation.Command]:
    from signoff import plugins

    return {
        name: command
        for notation in plugins.notations()
        for name, command in notation.commands.items()
        if name not in COMMANDS
    }


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="signoff", message="%(prog)s %(version)s")
@click.pass_context
def signoff(ctx: click.Context) -> None:
    """AI drafts, critics review, a human signs off; nothing is lost or paid for twice.

    First steps:
      signoff demo                            watch a review loop
      signoff review README.md --preset docs  review a file that exists
      signoff init --preset docs              create a flow and its goal
      signoff run docs --goal docs-goal.yaml  run that flow
      signoff inbox                           list what is waiting for you

    \b
    Exit codes:
      0 completed   1 error   2 usage   10 waiting for a human
      11 round limit   12 budget   13 not converging   14 rejected
      15 cancelled   16 work not accepted   17 findings that block are open
      18 review incomplete
      75 parked   130 interrupted

    \b
    Shell completion (add the line to your shell's startup file):
      bash   eval "$(_SIGNOFF_COMPLETE=bash_source signoff)"
      zsh    eval "$(_SIGNOFF_COMPLETE=zsh_source signoff)"
      fish   _SIGNOFF_COMPLETE=fish_source signoff | source
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run_command(
    arguments: Sequence[str], command: click.Command = signoff, name: str = "signoff"
) -> int:
    """Runs one command line; every expected failure is one line on stderr.

    `command` and its `name` are for modules that are programs of their own.
    """
    _prepare_streams()
    report = partial(_report, "--debug" in arguments, "--json" in arguments)
    try:
        # click would print errors in its own form and exit by itself; here every failure becomes
        # one line and a documented code.
        result = command.main(list(arguments), prog_name=name, standalone_mode=False)
        return _flush_stdout(result)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        return exits.INTERRUPTED
    except click.ClickException as error:
        return report(_format_click_error(error), exits.USAGE, error)
    except SignoffError as error:
        if _gets_trust(error, arguments):
            # Nothing has been started or recorded yet, so the command can begin again.
            return run_command(arguments, command, name)
        return report(_message(error, arguments), exits.code_of_error(error), error)
    except SystemExit:
        # Shell completion ends like this.
        raise
    except BaseException as error:  # noqa: BLE001  # the last line of defence: a traceback on request
        return report(_describe(error), exits.ERROR, error)


def _gets_trust(error: SignoffError, arguments: Sequence[str]) -> bool:
    """Asks the user, if only trust is missing and there is a terminal; returns the answer."""
    from signoff.surfaces.cli.output import has_keyboard

    quiet = {"--json", "--no-input"}.intersection(arguments) or "SIGNOFF_WORKER_TOKEN" in os.environ
    if not isinstance(error, NotTrusted) or not error.asks or quiet:
        return False
    if not (has_keyboard() and sys.stderr.isatty()):
        return False
    from signoff.surfaces.cli.commands.trust import ask

    return ask(error)


def _message(error: SignoffError, arguments: Sequence[str]) -> str:
    if isinstance(error, NotTrusted) and error.declined:
        return "nothing was started; look at the lines again: signoff trust --show"
    from signoff.app.runs.next_commands import error_lines, error_message

    on_terminal = error.remedies and sys.stderr.isatty() and "--json" not in arguments
    return error_lines(error) if on_terminal else error_message(error)


def _prepare_streams() -> None:
    # A closed stream (`<&-`) is None, and the next opened file would get its descriptor.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # On a terminal without UTF-8, a question mark is better than an encoding error.
            stream.reconfigure(errors="replace")


def _flush_stdout(result: object) -> int:
    """Returns a command's exit code once stdout is flushed, or its reader has gone (`| head`)."""
    code = result if isinstance(result, int) else exits.OK
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python flushes stdout again at exit and must not print another error then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise
    return code


def _describe(error: BaseException) -> str:
    """Returns what to print about an error that nobody expected."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}; this is a bug (--debug shows where)"
    try:
        # A deleted working directory breaks everything, in ways that do not name it.
        os.getcwd()  # noqa: PTH109  # pathlib is not needed for anything else
    except OSError:
        return "the current directory no longer exists; change to another one"
    location = f"{error.filename}: " if error.filename else ""
    return f"{location}{error.strerror or error}"


def _format_click_error(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message} (see: {context.command_path} --help)"


def _report(debug: bool, as_json: bool, message: str, code: int, error: BaseException) -> int:
    if as_json:
        from signoff.documents.control_characters import json_text

        remedies = [each.to_json() for each in getattr(error, "remedies", ())]
        described = {"kind": type(error).__name__, "message": message, "remedies": remedies}
        print(json_text({"error": described, "exit_code": code}, indent=2), flush=True)
    if debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    print(f"signoff: {clean(message)}", file=sys.stderr)
    return code
