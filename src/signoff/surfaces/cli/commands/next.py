"""`signoff next` and `signoff submit`, for external workers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from signoff import plugins
from signoff.app.people import external_work
from signoff.app.people.answering import AnswerInput
from signoff.app.people.external_work import RunStatus, WorkItem
from signoff.core.digest import SHORT
from signoff.core.errors import UsageError
from signoff.core.outcome import Status
from signoff.documents.control_characters import json_text
from signoff.runtime.ports import Observer
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import choose_view, events_file
from signoff.surfaces.cli.output import Output, one_line
from signoff.surfaces.cli.summary import WORDS, question_lines
from signoff.surfaces.cli.views import Interrupted, run_interruptibly


@cli.command()
@cli.run_argument
@click.option("--item", metavar="ITEM",
              help="Show only the work with this number, or for this item.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show progress.")
@cli.project_dir_option
def command(run: str | None, item: str | None, out: Output) -> int:
    """Show the open work of RUN and the conditions it must meet.

    For external workers, in a run started with `run --pull`. A step with several items has
    several work items, each with a number; they can be done in any order and by several
    workers. A stopped run is resumed until there is work.

    Examples:
      signoff run book.py --pull --name book
      signoff next book
      signoff next book --item 7 --json
      signoff submit book --item 7 --result '{"decision": "approved"}'

    Exit codes: 0 there is work, or the run is completed; 10 waiting for a human; otherwise
    as for `run`.
    """
    with cli.open_here(drives=True) as project:
        status = drive_external(
            out,
            lambda seen: external_work.next_work(project, run, observers=seen, warn=out.warn),
            which=item,
        )
    return status_exit_code(status)


@cli.command()
@cli.run_argument
@click.option("--result", metavar="RESULT",
              help="The result, JSON or text; - reads it from stdin.")  # fmt: skip
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path),
              help="Read the result from a file.")  # fmt: skip
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE",
              help="Another value of the result; NAME:=JSON for lists. Repeatable.")  # fmt: skip
@click.option("--failure", metavar="WHY", help="Report that it could not be done, and why.")
@click.option("--item", metavar="ITEM",
              help="The number of the work, or its item, if several are open.")  # fmt: skip
@cli.notation_options("submit")
@click.option("--digest", metavar="DIGEST",
              help="The digest of what you were shown; refused if it has changed.")  # fmt: skip
@click.option("--by", default="", metavar="NAME",
              help="Who did it; the logged-in user by default.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show progress.")
@cli.project_dir_option
def submit_command(
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
    fields = cli.inputs(values, "--set")
    text = _parse(result, file, failure, needed=not fields)
    if failure is not None and (options or fields):
        given = [*options, *(["--set"] if fields else [])]
        raise click.UsageError(f"--failure cannot be combined with {' or '.join(given)}")
    answer = AnswerInput(
        text, failed=failure is not None, values=fields, extras=options, digest=digest, by=by
    )
    with cli.open_here(drives=True) as project:
        status = drive_external(
            out,
            lambda observers: external_work.submit(
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
        before, _ = cli.entered_folder() or (Path(), Path())
        return cli.read_text_file(before / file)
    if result == "-":
        return sys.stdin.read()
    return (failure if result is None else result) or ""


_FOR_PEOPLE = ("number", "kind", "step", "prompt", "questions", "commands")
"""What a worker is shown of a request that only a human answers."""

_FIXABLE = frozenset({Status.FAILED, Status.INTERRUPTED})

SHOWN = 5
"""How many work items are shown in full; a worker's context window is small."""

_SUB_AGENT = (
    "Do not do this yourself. Launch a sub-agent with the role {role!r}, give it the instructions "
    "below, and submit its answer."
)

Work = Callable[[Sequence[Observer]], Coroutine[Any, Any, RunStatus]]


def drive_external(
    out: Output, work: Work, *, which: str | None = None, events: Path | None = None
) -> RunStatus | None:
    """Drives a run up to its next open work and prints that; returns None if interrupted.

    `which` selects one of several open work items, by its number or its item.
    """
    # The output is read by a program, so progress is shown on request only.
    view = choose_view(Output(out.as_json, quiet=not out.verbose, verbose=out.verbose))
    try:
        with events_file(events) as watchers, view:
            status = run_interruptibly(work([view, *watchers]), view)
    except Interrupted:
        return None
    items = [item for item in status.work if which is None or item.is_named(which)]
    if which is not None and not items:
        listed = ", ".join(f"#{each.number}" for each in status.work) or "none"
        raise UsageError(f"run {status.row.name!r} has no open work {which!r} (open: {listed})")
    print_status(status, out, items)
    return status


def status_exit_code(status: RunStatus | None) -> int:
    """Returns 0 if there is open work or the run is completed, else the code of its status."""
    if status is None:
        return exits.INTERRUPTED
    if status.verdict is not None and not status.verdict.accepted:
        return exits.NOT_ACCEPTED
    if status.work:
        return exits.OK
    return exits.exit_code(status.row.status)


def print_status(status: RunStatus, out: Output, items: Sequence[WorkItem]) -> None:
    """Prints the verdict on a submission, and open work."""
    if out.as_json:
        out.json(to_json(status, items))
        return
    verdict = status.verdict
    if verdict is not None:
        which = f"#{verdict.number}"
        out.line(
            f"accepted {which}" if verdict.accepted else f"not accepted {which}: {verdict.problem}"
        )
        out.line()
    if items:
        for line in status.progress.lines if status.progress is not None and not verdict else ():
            out.line(one_line(line, 500))
        for item in items[:SHOWN]:
            # A worker that submits knows the results so far, and would pay for reading them again.
            _print_item(item, status.root, out, whole=verdict is None)
        _print_others(items[SHOWN:], status.root, out)
        if status.token and not out.quiet:
            out.note(
                "to keep the worker from answering for a human, set in its environment: "
                f"SIGNOFF_WORKER_TOKEN={status.token}"
            )
        return
    _print_rest(status, out)


def to_json(status: RunStatus, items: Sequence[WorkItem]) -> dict[str, Any]:
    """Returns a run's status as plain values."""
    from signoff.app.json_documents import run_info

    row, verdict = status.row, status.verdict
    return {
        **run_info(row),
        "accepted": verdict.accepted if verdict else None,
        "problem": (verdict.problem or None) if verdict else None,
        "work": [{**asdict(item), "submit": _commands(item, status.root)} for item in items],
        "for_people": [{name: request[name] for name in _FOR_PEOPLE} for request in status.people],
        "exit_code": status_exit_code(status),
        "progress": status.progress.facts if status.progress is not None else None,
        **({"worker_token": status.token} if status.token else {}),
    }


def _print_item(item: WorkItem, root: str, out: Output, *, whole: bool) -> None:
    again = f", attempt {item.attempt}" if item.attempt > 1 else ""
    out.line(f"--- work #{item.number} of run {item.run}: {item.step}{again} ---")
    if item.role:
        out.line(_SUB_AGENT.format(role=item.role))
        out.line()
    out.line(item.prompt if whole else item.prompt[item.context :])
    if item.role:
        out.line("--- end of its instructions ---")
    out.line()
    _print_conditions(item, out)
    out.line("When it is done, or cannot be done:")
    for command in _commands(item, root):
        out.line(f"  {command}")
    out.line("  A long result: --file FILE in place of --result, or --result - for stdin.")
    if item.form:
        out.line("  The values apart from a result that is a text: --set NAME=VALUE, repeatable.")
    if item.context and not whole:
        shown = cli.in_project(f"signoff next {shlex.quote(item.run)} --item {item.number}", root)
        out.line(f"  The results so far, if you do not know them: {shown}")
    for option in plugins.options_of("submit") if item.takes else ():
        if option.word in item.takes:
            out.line(f"  Optional: {option.flag} {option.metavar}. {option.help}")
    out.line()


def _print_conditions(item: WorkItem, out: Output) -> None:
    conditions = [each for each in item.must_hold if each not in item.prompt]
    if conditions:
        out.line("Conditions that the engine checks:")
        for each in conditions:
            out.line(f"- {each}")
        out.line()
    if item.schema and not item.form:
        out.line("The result must match this JSON Schema:")
        out.line(json_text(item.schema, indent=1))
        out.line()


def _print_others(items: Sequence[WorkItem], root: str, out: Output) -> None:
    if items:
        first, last, run = items[0].number, items[-1].number, shlex.quote(items[0].run)
        which = f"#{first}" if len(items) == 1 else f"#{first} to #{last}"
        command = cli.in_project(f"signoff next {run} --item {first}", root)
        out.line(f"and {len(items)} more ({which}): {command}")


def _commands(item: WorkItem, root: str) -> list[str]:
    submit = f"signoff submit {shlex.quote(item.run)} --item {item.number}"
    bound = f"{submit} --digest {item.digest[:SHORT]}"
    return [
        cli.in_project(f"{bound} --result {shlex.quote(_result_form(item))}", root),
        cli.in_project(f"{bound} --failure {shlex.quote(external_work.REASON_PLACEHOLDER)}", root),
    ]


def _result_form(item: WorkItem) -> str:
    """Returns what stands for the result; a submission that still has it is not accepted."""
    if item.form:
        return json_text(item.form)
    is_data = item.schema or item.takes
    return external_work.JSON_PLACEHOLDER if is_data else external_work.TEXT_PLACEHOLDER


def _print_rest(status: RunStatus, out: Output) -> None:
    row = status.row
    words = WORDS.get(row.status, row.status.value)
    why = f": {one_line(row.reason)}" if row.reason and row.status is not Status.WAITING else ""
    out.line(f"no open work; run {row.name} is {words}{why}")
    if row.status in _FIXABLE:
        command = cli.in_project(f"signoff next {shlex.quote(row.name)}", status.root)
        out.line(f"  fix that, then run: {command} (no work is lost)")
    for request in status.people:
        prompt = one_line(request["prompt"], 200)
        out.line(f"  a human decides #{request['number']} ({request['step']}): {prompt}")
        for line in _for_human(request):
            out.line(f"    {line}")


def _for_human(request: Mapping[str, Any]) -> list[str]:
    """Returns what a worker that talks to the human passes on.

    Questions come with the commands that answer them. A decision about the run is the human's
    own, so the worker gets the command that shows it, and not those that take it.
    """
    if request["questions"]:
        return [*question_lines(request), *request["commands"]]
    return [*question_lines(request), f"to see and answer it: signoff inbox {request['number']}"]
