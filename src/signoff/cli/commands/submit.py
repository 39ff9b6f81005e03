"""`signoff submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from signoff.app.answering import AnswerInput
from signoff.app.external_work import submit
from signoff.cli.external_work import drive_external, status_exit_code
from signoff.cli.options import (
    CliCommand,
    entered_folder,
    inputs,
    notation_options,
    open_here,
    output_options,
    project_dir_option,
    read_text_file,
    run_argument,
)
from signoff.cli.output import Output


@click.command(cls=CliCommand)
@run_argument
@click.option("--result", metavar="RESULT",
              help="The result, JSON or text; - reads it from stdin.")  # fmt: skip
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path),
              help="Read the result from a file.")  # fmt: skip
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE",
              help="Another value of the result; NAME:=JSON for lists. Repeatable.")  # fmt: skip
@click.option("--failure", metavar="WHY", help="Report that it could not be done, and why.")
@click.option("--item", metavar="ITEM",
              help="The number of the work, or its item, if several are open.")  # fmt: skip
@notation_options("submit")
@click.option("--digest", metavar="DIGEST",
              help="The digest of what you were shown; refused if it has changed.")  # fmt: skip
@click.option("--by", default="", metavar="NAME",
              help="Who did it; the logged-in user by default.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show progress.")
@project_dir_option
@output_options
def command(
    run: str | None,
    result: str | None,
    file: Path | None,
    values: tuple[str, ...],
    failure: str | None,
    item: str | None,
    options: dict[str, Any],
    digest: str | None,
    by: str,
    out: Output,
) -> int:
    """Submit work for RUN, or report that it could not be done.

    The engine checks the conditions and prints the next work. Work that does not meet them
    can be submitted once more, with the reason shown; then a human decides. Requests to
    humans cannot be answered here.

    Examples:
      signoff submit book --result '{"decision": "approved"}'
      signoff submit book --item 7 --result - < result.json
      signoff submit critic --file findings.md --set confidence=high
      signoff submit book --item 7 --result '{}' \\
          --statements '[["UPDATE chapters SET words = ? WHERE id = 3", [900]]]'
      signoff submit book --item 7 --failure "chapter 3 is missing"

    Exit codes: 0 accepted, and there is more work or the run is completed; 16 not accepted, which
    uses up an attempt (the reason and the open work are printed); 2 malformed or too late, which
    changes nothing; 10 accepted, and waiting for a human; otherwise as for `run`.
    """
    fields = inputs(values, "--set")
    text = _parse(result, file, failure, needed=not fields)
    if failure is not None and (options or fields):
        given = [*options, *(["--set"] if fields else [])]
        raise click.UsageError(f"--failure cannot be combined with {' or '.join(given)}")
    answer = AnswerInput(
        text, failed=failure is not None, values=fields, extras=options, digest=digest, by=by
    )
    with open_here(drives=True) as project:
        status = drive_external(
            out,
            lambda observers: submit(
                project, run, item, answer, observers=observers, warn=out.warn
            ),
        )
    return status_exit_code(status)


def _parse(result: str | None, file: Path | None, failure: str | None, *, needed: bool) -> str:
    given = sum(each is not None for each in (result, file, failure))
    if given > 1 or (needed and not given):
        raise click.UsageError("give one of --result, --file and --failure")
    if file is not None:
        # The worker names a file where it is, whatever the folder of the project.
        before, _ = entered_folder() or (Path(), Path())
        return read_text_file(before / file)
    if result == "-":
        return sys.stdin.read()
    return (failure if result is None else result) or ""
