"""What commands share: how they are declared, their options and arguments, and what reads those.

Commands import this module as `cli`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signoff.core.errors import SignoffError
from signoff.notation import OptionKind
from signoff.surfaces.cli import exits
from signoff.surfaces.cli.output import DisplayOptions, Output, clean, one_line, reserved_stdout

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from signoff.app.settings.project import Project
    from signoff.app.settings.settings import Settings
    from signoff.notation import NotationOption


F = TypeVar("F", bound=Callable[..., Any])

_DEBUG = "signoff.debug"
"""The key in click's context under which `--debug` is stored."""
_ENTERED = "signoff.entered"
"""The key under which the folder before `--project-dir` is stored."""
_EXAMPLES = re.compile(r"\n\n(?=(?:Examples|First steps):\n)")


class CliCommand(click.Command):
    """A command whose docstring ends with examples, which its help shows below the options."""

    def __init__(self, name: str | None, help: str | None = None, **others: Any) -> None:  # noqa: A002  # click prescribes it
        text, *examples = _EXAMPLES.split(cleandoc(help or ""), maxsplit=1)
        if examples:
            # The mark keeps click from joining the lines of the examples.
            others["epilog"] = f"\b\n{examples[0]}"
        super().__init__(name, help=text, **others)


class Group(CliCommand, click.Group):
    """A command group that prints its help as a usage error without a sub-command."""

    command_class = CliCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Exits with a usage error if there is no sub-command: a script must notice that."""
        if not (args or self.invoke_without_command or ctx.resilient_parsing):
            # Printed here because releases of click differ in the stream and the exit code.
            click.echo(ctx.get_help(), err=True)
            ctx.exit(exits.USAGE)
        return super().parse_args(ctx, args)


def command(
    name: str | None = None,
    *,
    group: click.Group | None = None,
    cls: type[click.Command] = CliCommand,
    **attributes: Any,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declares a command with the options of every command, which it gets as `out`."""

    def declare(function: Callable[..., Any]) -> click.Command:
        declared = click.command(name, cls=cls, **attributes)(output_options(function))
        # Those of every command come last in its help.
        declared.params.sort(key=lambda option: option.name in ("as_json", "debug"))
        if group is not None:
            group.add_command(declared)
        return declared

    return declare


def json_option(command: F) -> F:
    """Adds `--json`."""
    text = "Print one JSON document on stdout; everything else goes to stderr."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def debug_option(command: F) -> F:
    """Adds `--debug`; the entry point reads it from the command line itself."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_keep_debug,
        help="Show a traceback on errors.",
    )(command)  # fmt: skip


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of every command; passes them, and `--verbose` if there is one, as `out`."""

    @wraps(command)
    def collected(*, as_json: bool, verbose: bool = False, **others: Any) -> Any:
        return command(out=output(as_json, verbose=verbose), **others)

    return json_option(debug_option(collected))


def progress_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of commands that drive runs; passes them as `limits` and `display`."""

    @wraps(command)
    def watched(
        *,
        no_input: bool,
        quiet: bool,
        verbose: bool,
        events: Path | None,
        as_json: bool,
        **others: Any,
    ) -> int:
        return command(
            display=DisplayOptions(output(as_json, quiet, verbose), no_input, events), **others
        )

    for option in (
        debug_option,
        json_option,
        click.option("--events", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Append all events to FILE as JSON lines."),
        click.option("-v", "--verbose", is_flag=True, help="Show more details."),
        click.option("-q", "--quiet", is_flag=True, help="Show the result, but no progress."),
        click.option("--no-input", is_flag=True,
                     help="Never ask on the terminal; a waiting run exits with 10."),
        click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", callback=_limits,
                     help="A limit for this run: usd, tokens, calls or seconds. Repeatable."),
    ):  # fmt: skip
        watched = option(watched)
    return watched


def notation_options(command_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options that notations define for a command; passes those in use as `options`."""
    from signoff import plugins

    return declared_options(plugins.options_of(command_name))


def declared_options(
    declared: Sequence[NotationOption],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds options of a notation to a command; passes those in use as `options`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(**values: Any) -> Any:
            options = {each.name: values.pop(_parameter(each)) for each in declared}
            in_use = {name: value for name, value in options.items() if value}
            return command(options=in_use, **values)

        for each in reversed(declared):
            collected = _click_option(each)(collected)
        return collected

    return decorate


def project_dir_option(command: F) -> F:
    """Adds `--project-dir`: everything happens as if signoff were run in that folder."""
    return click.option(
        "--project-dir",
        # Checked when it is entered: a command that found it earlier is in that folder by now.
        type=click.Path(file_okay=False),
        metavar="DIR",
        # Eager, so that the paths of other options start in that folder.
        is_eager=True,
        expose_value=False,
        callback=_enter,
        help="Work in this folder instead of the current one.",
    )(command)


def in_project(command: str, folder: str) -> str:
    """Returns a command that works wherever it is run; `folder` is the project's, or empty."""
    return f"{command} --project-dir {shlex.quote(folder)}" if folder else command


def entered_folder() -> tuple[Path, Path] | None:
    """Returns the current folder before `--project-dir`, and the option's value."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_ENTERED) if context is not None else None


def enter_folder(context: click.Context, name: str) -> None:
    """Makes a folder the current one until the command ends, unless it has one already."""
    if _ENTERED in context.meta:
        return
    before = Path.cwd()
    try:
        os.chdir(name)
    except OSError as error:
        what = f"Invalid value for '--project-dir': {name!r}: {error.strerror}."
        raise click.UsageError(what, context) from error
    context.meta[_ENTERED] = before, Path(name)
    context.call_on_close(lambda: os.chdir(before))


def _enter(context: click.Context, _option: click.Parameter, folder: str | None) -> None:
    if folder is not None:
        enter_folder(context, folder)


def run_argument(command: F) -> F:
    """Adds the optional name of a run."""
    return click.argument("run", required=False, shell_complete=complete_run)(command)


def answer_options(command: F) -> F:
    """Adds the options that every answer has."""
    for option in (
        click.option("--resume", "resume_now", is_flag=True, help="Resume the run at once."),
        click.option("--digest", metavar="DIGEST",
                     help="The digest of what you were shown; refused if the content has changed."),
        click.option("--by", default="", metavar="NAME",
                     help="Who decides; the logged-in user by default."),
    ):  # fmt: skip
        command = option(command)
    return command


def open_here(*, limits: Mapping[str, str] | None = None, drives: bool = False) -> Project:
    """Opens the project around the current folder; `drives` is for commands that drive runs."""
    from signoff.app.settings.project import open_project

    project = open_project(
        Path.cwd(), os.environ, command_line=limit_settings(limits or {}), drives=drives
    )
    set_up_logging(project.settings)
    return project


def limit_settings(limits: Mapping[str, str]) -> dict[str, str]:
    """Returns `--limit` options as settings."""
    return {f"limits.{name}": value for name, value in limits.items()}


def output(as_json: bool = False, quiet: bool = False, verbose: bool = False) -> Output:
    """Returns the output of a command; with `as_json`, stdout is reserved for the document."""
    if not as_json:
        return Output(quiet=quiet, verbose=verbose)
    # A workflow may print while it is imported or run; that must not end up in the document.
    # A resource of the context, so that stdout is given back however the command ends.
    results = click.get_current_context().with_resource(reserved_stdout())
    return Output(as_json, quiet, verbose, results)


def read_text_file(path: Path) -> str:
    """Returns the text of a file that the user named, with its line ends unchanged."""
    from signoff.documents.regular_files import read_regular

    try:
        return read_regular(path, None, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {path} as text: {error}") from error


def complete_run(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the names of runs, newest first."""
    from click.shell_completion import CompletionItem

    try:
        with open_here() as project:
            rows = project.store.rows(limit=200)
    except SignoffError:
        return []
    return [
        CompletionItem(row.name, help=row.status.value)
        for row in rows
        if row.name.startswith(incomplete)
    ]


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Parses `name=value` texts; raises `BadParameter` for anything else."""
    parsed = {}
    for text in values:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        parsed[name.strip()] = value
    return parsed


def replaced_agents(values: Sequence[str]) -> dict[str, str]:
    """Parses the `NAME=OTHER` texts of --agent; `OTHER` alone has an empty name."""
    named = pairs([each for each in values if "=" in each], "--agent")
    others = [each for each in values if "=" not in each]
    return {**named, "": others[-1]} if others else named


def inputs(values: Sequence[str], option: str = "-i") -> dict[str, Any]:
    """Parses the values of an option: `key=text`, or `key:=JSON` for lists and other values."""
    params: dict[str, Any] = {}
    for text in values:
        for key, value in pairs([text], option).items():
            name = key.removesuffix(":").strip()
            if name in params:
                raise click.BadParameter(
                    f'{name!r} is given twice; for a list: {option} {name}:=\'["a", "b"]\'',
                    param_hint=option,
                )
            if value == f"<{name}>":
                # Pasted from a command that was shown; choices are checked by their domain.
                what = f"{name!r} still has its placeholder {value}; fill in a value"
                raise click.BadParameter(what, param_hint=option)
            params[name] = _json(name, value) if key.endswith(":") else value
    return params


def _parameter(option: NotationOption) -> str:
    # The prefix avoids clashes with the command's own parameters.
    return f"notation_{option.name}"


def _click_option(option: NotationOption) -> Callable[[F], F]:
    form: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    match option.kind:
        case OptionKind.FLAG:
            form = {"help": option.help, "is_flag": True}
        case OptionKind.FILE:
            form["type"] = click.Path(exists=True, dir_okay=False)
        case OptionKind.LIST:
            form["callback"] = _json_list
        case OptionKind.TEXT:
            pass
    return click.option(option.flag, _parameter(option), **form)


def _json_list(_context: click.Context, option: click.Parameter, text: str | None) -> list[Any]:
    try:
        values = json.loads(text) if text is not None else []
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint=option.opts[0]) from error
    if not isinstance(values, list):
        raise click.BadParameter("is not a JSON list", param_hint=option.opts[0])
    return values


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"the value of {name} is not valid JSON: {error}", param_hint="--input"
        ) from error


def _keep_debug(context: click.Context, _option: click.Parameter, debug: bool) -> None:
    context.meta[_DEBUG] = debug


def _limits(
    _context: click.Context, _option: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    return pairs(values, "--limit")


def set_up_logging(settings: Settings) -> None:
    """Prints log records of at least the level of the settings, each as one line."""
    import logging

    context = click.get_current_context(silent=True)
    debug = context is not None and context.meta.get(_DEBUG, False)
    lines: logging.Handler = LogLines(debug=debug)
    if settings.logs_json_lines:
        from signoff.views.run_log import JsonLines, Stderr

        lines = Stderr()
        lines.setFormatter(JsonLines())
    logging.basicConfig(handlers=[lines])
    logging.getLogger("signoff").setLevel(settings.log_level.upper())


OURS = "signoff"


class LogLines(logging.Handler):
    """Prints log records as `warning: ...`, with tracebacks only in debug mode."""

    def __init__(self, *, debug: bool = False) -> None:
        super().__init__()
        self._debug = debug
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one record unless it repeats the last line."""
        line = self._format(record)
        if line == self._last:
            return
        self._last = line
        # `sys.stderr` is read on each call because a live view replaces it while it draws. A
        # closed stream must not affect the run.
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    def _format(self, record: logging.LogRecord) -> str:
        # The logger's name is shown for records of other packages.
        ours = record.name.partition(".")[0] == OURS
        whose = "" if ours and not self._debug else f"{record.name}: "
        line = f"{record.levelname.lower()}: {whose}{clean(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        if self._debug:
            return f"{line}\n{''.join(traceback.format_exception(error)).rstrip()}"
        return one_line(f"{line}: {str(error) or type(error).__name__}")
