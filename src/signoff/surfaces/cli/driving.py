"""Drives a run on the terminal: shows progress, asks the user, and prints how it ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.app.runs.history import events_of, history_fold, resume_report, timeline_of
from signoff.app.runs.runs import catch_up
from signoff.app.runs.show import RunDetails, show
from signoff.app.runs.start import StartPlan, resume, start
from signoff.app.settings.project import Project
from signoff.app.settings.settings import command_line_limits
from signoff.core.errors import UsageError
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.observers import JsonlObserver
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import RunRow
from signoff.surfaces.cli import exits
from signoff.surfaces.cli.output import (
    DisplayOptions,
    Output,
    clean,
    in_foreground,
    is_terminal,
    one_line,
)
from signoff.surfaces.cli.summary import print_summary, report_to_json
from signoff.surfaces.cli.views import Interrupted, OpenReview, PlainView, View, run_interruptibly
from signoff.views.timeline import Timeline

if TYPE_CHECKING:
    from signoff.notation import HistoryFold

Work = Callable[[Sequence[Observer]], Coroutine[Any, Any, RunResult]]
"""A use case that drives a run while observers watch."""


def drive(
    project: Project,
    display: DisplayOptions,
    work: Work,
    *,
    workflow: Workflow | None = None,
    history: dict[str, Timeline] | None = None,
) -> int:
    """Drives a run until it ends, or waits and the user does not answer; returns the exit code."""

    def resume_work(observers: Sequence[Observer]) -> Coroutine[Any, Any, RunResult]:
        return resume(project, name, observers=observers, warn=display.out.warn)

    # A run is driven, asked about and driven on, until nobody answers: each time it is one use
    # case.
    drive_once = partial(_drive_once, project, display.out, workflow=workflow)
    with events_file(display.events) as watchers:
        name, timelines = drive_once(work, watchers, history=history or {})
        may_ask = display.may_ask and not project.worker_token
        while name is not None and may_ask and _ask_pending(project, name, display.out):
            name, timelines = drive_once(resume_work, watchers, history=timelines)
    if name is None:
        return exits.INTERRUPTED
    if display.report is not None:
        return display.report(project, name)
    return finish(show(project, name), display.out)


def drive_new(
    project: Project,
    planned: StartPlan,
    display: DisplayOptions,
    params: Mapping[str, Any],
    **options: Any,
) -> int:
    """Starts a planned run on the terminal; `options` are those of the use case."""
    # Only the limits of the command line: the engine puts those of the workflow and of the project
    # below them.
    options = {"limits": planned.own_limits, **options}
    return drive(
        project,
        display,
        lambda observers: start(project, planned.target, params, observers=observers, **options),
        workflow=planned.target.workflow,
    )


def drive_resume(
    project: Project,
    display: DisplayOptions,
    row: RunRow,
    *,
    target: str | None = None,
    **options: Any,
) -> int:
    """Resumes a run on the terminal; `options` are those of the use case."""
    if not _may_continue(project, display, row):
        return finish(show(project, row.name), display.out)
    return drive(
        project,
        display,
        lambda observers: resume(
            project,
            row.name,
            limits=command_line_limits(project.settings),
            target=target,
            observers=observers,
            warn=display.out.warn,
            **options,
        ),
        workflow=None if target else project.find_again(row).workflow,
        history={row.name: timeline_of(project, row)},
    )


def _may_continue(project: Project, display: DisplayOptions, row: RunRow) -> bool:
    """Shows what failed before the run stopped; on a terminal, the user decides about a retry."""
    report = resume_report(project, row)
    if report is None:
        return True
    for line in report.lines:
        display.out.note(one_line(line, 500))
    if not report.is_retry or row.status is Status.WAITING or not display.may_ask:
        return True
    from signoff.surfaces.cli.asking import ask_retry

    return ask_retry()


def choose_view(
    out: Output,
    *,
    workflow: Workflow | None = None,
    history: dict[str, Timeline] | None = None,
    several: bool = False,
    open_review: OpenReview = lambda _run: None,
) -> View:
    """Returns a live view on a terminal and plain lines elsewhere.

    `history` holds the timelines of resumed runs up to now.
    """
    if out.quiet:
        return View(history)
    if is_terminal(sys.stderr) and in_foreground(sys.stderr) and not several:
        from signoff.surfaces.cli.live import LiveView

        return LiveView(workflow, history, verbose=out.verbose, open_review=open_review)
    return PlainView(history, verbose=out.verbose, several=several, open_review=open_review)


@contextmanager
def events_file(path: Path | None) -> Iterator[list[Observer]]:
    """Gives the observer that writes the file of `--events`, or none without that option."""
    if path is None:
        yield []
        return
    try:
        file = JsonlObserver(path)
    except OSError as error:
        raise UsageError(f"--events: cannot write {path}: {error.strerror or error}") from error
    with closing(file):
        yield [file]


def finish(report: RunDetails, out: Output) -> int:
    """Prints how a run stopped and returns its exit code."""
    # A reader that closed the pipe (`| head`) does not change how the run ended.
    with suppress(BrokenPipeError):
        if out.as_json:
            out.json(report_to_json(report))
        else:
            _print_end(report, out)
    return exits.exit_code(report.row.status)


def _print_end(report: RunDetails, out: Output) -> None:
    text = report.notation_report.text if report.notation_report is not None else None
    if text is None or report.row.status is Status.QUEUED:
        print_summary(report, out)
        return
    if report.row.status is not Status.COMPLETED:
        # Why it is not what was asked for, and what the user can do; stdout is for the text alone.
        with redirect_stdout(sys.stderr):
            print_summary(report, replace(out, quiet=True))
    if text:
        print(clean(text))


def _drive_once(
    project: Project,
    out: Output,
    work: Work,
    watchers: Sequence[Observer],
    *,
    workflow: Workflow | None,
    history: dict[str, Timeline],
) -> tuple[str | None, dict[str, Timeline]]:
    """Drives a run until it stops; returns its name, or None if it was interrupted before that."""
    review = partial(open_review, project, resumed=frozenset(history))
    if project.settings.logs_json_lines:
        # Programs read standard error then, and progress is not JSON.
        out = replace(out, quiet=True)
    view = choose_view(out, workflow=workflow, history=history, open_review=review)
    with view:
        try:
            name = run_interruptibly(work([view, *watchers]), view).run
        except Interrupted:
            return next(reversed(view.timelines), None), view.timelines
    return name, view.timelines


def open_review(project: Project, run: str, *, resumed: Collection[str]) -> HistoryFold | None:
    """Returns what follows the review of a run that starts, or of a resumed one up to now."""
    row = project.store.row(run)
    fold = history_fold(project, row)
    if fold is not None and run in resumed:
        for _, event in events_of(project, row):
            fold.apply(event)
    return fold


def _ask_pending(project: Project, name: str, out: Output) -> bool:
    """Asks the user for every pending answer; tells whether the run can continue with them.

    A user who leaves a prompt with ctrl-c wants the shell back, so the run is not resumed.
    The answers entered until then are stored.
    """
    from signoff.surfaces.cli.asking import ask_all

    if project.store.row(name).status is not Status.WAITING:
        return False
    answered, left = ask_all(project, project.store.items(name))
    if answered and left:
        catch_up(project, name, out.warn)
    return answered > 0 and not left
