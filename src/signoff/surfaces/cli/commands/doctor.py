"""`signoff doctor` and `signoff config`: the setup, and where its settings come from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from signoff.app.settings.checks import Check, SetupReport, check_setup
from signoff.app.settings.home import find_home
from signoff.app.settings.settings import load_settings, settings_files
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output

_ABILITIES = (
    *("answered_by_human", "deterministic", "needs_agents", "edits_files", "json_schema"),
    *("system_prompt", "streaming", "prompt_caching", "reports_price", "free"),
)
"""The capabilities that users choose an agent by."""

_INDENT = " " * 19
"""The column where the detail of a check starts."""


@cli.command()
@click.option("-v", "--verbose", is_flag=True, help="Show every agent, and what each can do.")
def command(out: Output) -> int:
    """Check your setup and show how to fix what is not ready.

    Checks settings, permissions, the database, agents and API keys (by name only),
    without calling a model. Exits with 0 if the engine can run, otherwise with 1.

    Examples:
      signoff doctor
      signoff doctor -v
      signoff doctor --json
    """
    report = check_setup(Path.cwd(), os.environ)
    code = exits.OK if report.can_run else exits.ERROR
    if out.as_json:
        checks = [asdict(each) | ({"remedy": ""} if each.ready else {}) for each in report.checks]
        out.json({"can_run": report.can_run, "checks": checks, "advice": report.advice})
        return code
    # Nobody has set up every agent there is, and a page of those would hide the one that is
    # missing.
    hidden = [c.name for c in report.checks if not (c.ready or c.wanted or out.verbose)]
    for check in report.checks:
        if check.name not in hidden:
            _print(check, out)
    if hidden:
        others = f"not ready: {', '.join(hidden)} (details: -v)"
        out.prose(f"{'--':<4}  {'other agents':<12} {others}", hang=_INDENT)
    out.line()
    if report.advice:
        out.line("no agent that can review is ready; set up any one of these:", style="yellow")
        for number, line in enumerate(report.advice, 1):
            out.prose(f"  {number}. {line}", hang="     ")
        out.line()
    out.prose(verdict(report))
    return code


def _print(check: Check, out: Output) -> None:
    mark = "ok" if check.ready else ("FAIL" if check.needed else "--")
    style = "" if check.ready else ("red" if check.needed else "yellow")
    out.prose(f"{mark:<4}  {check.name:<12} {check.detail}", style, _INDENT)
    if not check.ready and check.remedy:
        out.prose(f"{_INDENT}→ {check.remedy}", hang=_INDENT)
    if out.verbose and check.capabilities is not None:
        declared = asdict(check.capabilities)
        words = [name.replace("_", " ") for name in _ABILITIES if declared[name]]
        line = f"{_INDENT}capabilities: {', '.join(words) or 'answers prompts'}"
        out.prose(line, hang=_INDENT)


def verdict(report: SetupReport) -> str:
    """Returns what can run here, in a line."""
    if not report.can_run:
        return "not ready: fix what is marked FAIL"
    if report.advice:
        return (
            "the engine is ready, but no model that can review is: steps that ask humans, "
            "programs, checks or scripts can run; steps that ask such a model cannot"
        )
    if report.unusable:
        return f"ready to run, except for what your settings name: {', '.join(report.unusable)}"
    return "ready to run"


@click.group(cls=cli.Group)
def config_command() -> None:
    """Show settings and where each comes from.

    Examples:
      signoff config show
      signoff config path
      SIGNOFF_LIMITS_USD=2 signoff config show --json

    Lowest to highest precedence: built-in, user file, project file, environment
    (SIGNOFF_DATABASE, SIGNOFF_LOG_LEVEL, SIGNOFF_WORKFLOWS, SIGNOFF_DATA_URL,
    SIGNOFF_LIMITS_USD, ..._TOKENS, ..._CALLS, ..._SECONDS), command line.
    """


@cli.command(group=config_command)
def show(out: Output) -> None:
    """Show all settings and where each comes from."""
    settings = load_settings(find_home(Path.cwd(), os.environ), os.environ).masked()
    documents = {key: {"value": s.value, "origin": s.origin} for key, s in settings.items()}
    rows = [(key, _format(s.value), s.origin) for key, s in settings.items()]
    out.listing(documents, ("SETTING", "VALUE", "FROM"), rows)


@cli.command(group=config_command)
def path(out: Output) -> None:
    """Show the settings files, lowest precedence first."""
    files = settings_files(find_home(Path.cwd(), os.environ), os.environ)
    documents = [{"path": str(file), "exists": file.is_file()} for file in files]
    out.show(documents, *(f"{each}{'' if each.is_file() else '  (not found)'}" for each in files))


def _format(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value)
