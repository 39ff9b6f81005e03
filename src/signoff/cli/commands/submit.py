"""`signoff submit`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from signoff.cli import exits
from signoff.cli.options import debug_option, json_option, open_here, output, run_argument

_EPILOG = """\b
Examples:
  signoff submit book --result '{"decision": "approved"}'
  signoff submit book --item 7 --result - < result.json
  signoff submit book --item 7 --result '{}' \\
      --statements '[["UPDATE chapters SET words = ? WHERE id = 3", [900]]]'
  signoff submit book --item 7 --failure "chapter 3 is missing"

Exit codes: 0 accepted, and there is more work or the run is completed; 16 not accepted: what
is wrong is said, and what is open now; 10 accepted, and a person has to decide first;
anything else as for `run`.
"""


@click.command(epilog=_EPILOG)
@run_argument
@click.option("--result", metavar="JSON", help="What the work gave; - reads it from stdin.")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Take the result from a file.")  # fmt: skip
@click.option("--failure", metavar="WHY", help="It could not be done, and why.")
@click.option("--item", "number", type=click.IntRange(1), metavar="N",
              help="Which piece of work, when several are open.")  # fmt: skip
@click.option("--statements", metavar="JSON",
              help="For the database: a list of [SQL] or [SQL, PARAMETERS].")  # fmt: skip
@click.option("--hint", metavar="STEP", help="Which step should follow, in your opinion.")
@click.option("--digest", metavar="DIGEST",
              help="Of what you were shown; refused if that has changed.")  # fmt: skip
@click.option("--by", default="", metavar="NAME",
              help="Who did it; whoever is logged in, if not given.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Tell what happens meanwhile.")
@json_option
@debug_option
def command(
    run: str | None,
    result: str | None,
    file: Path | None,
    failure: str | None,
    number: int | None,
    statements: str | None,
    hint: str | None,
    digest: str | None,
    by: str,
    verbose: bool,
    as_json: bool,
) -> int:
    """Hand in a piece of work of RUN, or say that it could not be done.

    The engine checks what must be true afterwards and answers with what is next. Work is
    handed in once; work that falls short is asked for once more with the reason, then a
    person decides. What a run asks of people cannot be answered here.
    """
    from signoff.app.external_work import Submission, submit
    from signoff.cli.external_work import code_of, follow, tell

    text = _said(result, file, failure)
    if failure is not None and (statements or hint):
        raise click.UsageError("--failure changes nothing: leave --statements and --hint out")
    given = Submission(
        text,
        failed=failure is not None,
        statements=_statements(statements),
        hint=hint,
        digest=digest,
        by=by,
    )
    out = output(as_json, verbose=verbose)
    with open_here() as project:
        found = follow(
            out,
            lambda observers: submit(
                project, run, number, given, observers=observers, warn=out.warn
            ),
        )
    if found is None:
        return exits.INTERRUPTED
    tell(found, out)
    return code_of(found)


def _said(result: str | None, file: Path | None, failure: str | None) -> str:
    if sum(each is not None for each in (result, file, failure)) != 1:
        raise click.UsageError("give one of --result, --file and --failure")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} cannot be read as text: {error}") from error
    if result == "-":
        return sys.stdin.read()
    return (failure if result is None else result) or ""


def _statements(text: str | None) -> list[Any]:
    if text is None:
        return []
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--statements") from error
    if not isinstance(listed, list):
        raise click.BadParameter("is no list of [SQL, PARAMETERS]", param_hint="--statements")
    return listed
