"""Drives a run on the terminal: shows it, asks what it waits for, says how it ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from signoff.app.project import Project
from signoff.app.resume import resume
from signoff.app.run_files import catch_up
from signoff.app.show import RunDetails, show
from signoff.cli import exits
from signoff.cli.display_options import DisplayOptions
from signoff.cli.interrupts import Interrupted, run_interruptibly
from signoff.cli.output import Output, is_terminal
from signoff.cli.summary import report_to_json, summarise
from signoff.cli.terminal import is_ours
from signoff.cli.views import PlainView, View
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.errors import UsageError
from signoff.runtime.observers import JsonlObserver
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult
from signoff.runtime.timeline import Timeline

Work = Callable[[Sequence[Observer]], Coroutine[Any, Any, RunResult]]
"""A use case that drives a run, given who watches."""


def drive(
    project: Project,
    display: DisplayOptions,
    work: Work,
    *,
    workflow: Workflow | None = None,
    known: dict[str, Timeline] | None = None,
) -> int:
    """Drives a run as far as it goes with the person's help; returns the exit code."""
    jsonl = events_file(display.events)
    watchers: list[Observer] = [jsonl] if jsonl is not None else []
    try:
        name, timelines = _once(display.out, work, watchers, workflow, known or {})
        while name is not None and display.may_ask and _may_go_on(project, name, display.out):
            name, timelines = _once(
                display.out, _going_on(project, name, display), watchers, workflow, timelines
            )
    finally:
        if jsonl is not None:
            jsonl.close()
    if name is None:
        return exits.INTERRUPTED
    return finish(show(project, name), display.out)


def choose_view(
    out: Output,
    *,
    workflow: Workflow | None = None,
    known: dict[str, Timeline] | None = None,
    several: bool = False,
) -> View:
    """Returns the view that fits where stderr leads; `known` is the story before a resume."""
    if out.quiet:
        return View(known)
    if is_terminal(sys.stderr) and is_ours(sys.stderr) and not several:
        from signoff.cli.live import LiveView

        return LiveView(workflow, known, verbose=out.verbose)
    return PlainView(known, verbose=out.verbose, several=several)


def events_file(path: Path | None) -> JsonlObserver | None:
    """Opens the file that `--events` names; None when it names none."""
    if path is None:
        return None
    try:
        return JsonlObserver(path)
    except OSError as error:
        raise UsageError(f"--events: cannot write {path}: {error.strerror or error}") from error


def finish(report: RunDetails, out: Output) -> int:
    """Says how a run came to rest and returns the code for it."""
    # Whether anybody still reads (`| head`) makes no difference to how the run ended.
    with suppress(BrokenPipeError):
        if out.as_json:
            out.json(report_to_json(report))
        else:
            summarise(report, out)
    code = exits.exit_code(report.row.status)
    # A run that is still said to be running was stopped before it could say so itself.
    return code if code is not None else exits.INTERRUPTED


def _once(
    out: Output,
    work: Work,
    watchers: Sequence[Observer],
    workflow: Workflow | None,
    known: dict[str, Timeline],
) -> tuple[str | None, dict[str, Timeline]]:
    """Drives until the run rests; returns its name, None when it was stopped too early for one."""
    view = choose_view(out, workflow=workflow, known=known)
    with view:
        try:
            name = run_interruptibly(work([view, *watchers]), view).run
        except Interrupted:
            return _latest(view), view.timelines
    return name, view.timelines


def _latest(view: View) -> str | None:
    return next(reversed(view.timelines), None)


def _may_go_on(project: Project, name: str, out: Output) -> bool:
    """Asks what a run waits for; tells whether it has something new to go on with.

    Whoever leaves at a prompt wants their shell back: the run then rests, answers and all.
    """
    from signoff.cli.asking import ask_all

    if project.store.row(name).status is not Status.WAITING:
        return False
    asked = ask_all(project, project.store.items(name))
    if asked.answered and asked.left:
        catch_up(project, name, out.warn)
    return asked.answered > 0 and not asked.left


def _going_on(project: Project, name: str, display: DisplayOptions) -> Work:
    def work(observers: Sequence[Observer]) -> Coroutine[Any, Any, RunResult]:
        return resume(project, name, observers=observers, warn=display.out.warn)

    return work
