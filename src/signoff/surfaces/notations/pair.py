"""The command of pairs: `signoff pair`.

It is a shortcut for `signoff run pair:PRESET`: the same run, with stdout reserved for the result.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from signoff.app.runs.show import show
from signoff.app.runs.start import StartPlan, plan
from signoff.app.runs.targets import compile_context
from signoff.app.settings.agents import build_agents, find_not_ready, refuse_not_ready
from signoff.app.settings.project import Project
from signoff.documents.control_characters import json_text
from signoff.notation import Ask
from signoff.pair.agents import check_pair
from signoff.pair.config import PRESETS, TEXT, VERDICTS, chosen_options, may_ask_another
from signoff.pair.session import AgentError, ModelNotFoundError, session_of
from signoff.runtime.result import RunResult
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import drive_new, finish
from signoff.surfaces.cli.exits import exit_code
from signoff.surfaces.cli.output import DisplayOptions, Output

STDIN = "-"


@click.command(cls=cli.CliCommand)
@click.argument("task", required=False)
@click.option("--preset", default=TEXT.name, show_default=True, type=click.Choice(list(PRESETS)),
              help="What is written; `slogan` uses Ollama if it runs.")  # fmt: skip
@click.option("--agent", metavar="AGENT", help="The writer and the reviewer.")
@click.option("--writer", metavar="AGENT", help="The writer.")
@click.option("--reviewer", "reviewers", multiple=True, metavar="AGENT[=SPECIALTY]",
              help="A reviewer, perhaps for one aspect only. Repeatable; all must pass it.",
)  # fmt: skip
@click.option("--check", "checks", multiple=True, metavar="RULE",
              help="A check beside the reviewer: words=8, characters=60, lines=1, "
              "contains=WORDS, avoids=WORDS. Repeatable.")  # fmt: skip
@click.option("--no-reviewer", is_flag=True, help="Let the checks alone review the text.")
@click.option("--criteria", metavar="TEXT", help="What the reviewers go by.")
@click.option("--model", "model_name", metavar="MODEL", help="The model of the agent.")
@click.option("--max-turns", metavar="NUMBER", help="At most so many turns, 1 to 10.  [default: 5]")
@click.option("--verdict", type=click.Choice(VERDICTS),
              help="How reviewers decide: by the phrase SHIP IT, or with an object.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Pass a text only if the reply is the phrase alone.")
@click.option("--name", metavar="NAME", help="A name for the run; must be new.")
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE",
              help="Also write the result to FILE; the whole session if it ends in .json.",
)  # fmt: skip
@cli.progress_options
def pair(
    task: str | None,
    preset: str,
    agent: str | None,
    name: str | None,
    file: Path | None,
    limits: dict[str, str],
    display: DisplayOptions,
    **values: Any,
) -> int:
    """Write a short text until its reviewers pass it; a shortcut for `run` and `resume`.

    TASK says what to write; `-`, or nothing with piped input, reads it from stdin. Each turn is
    shown on stderr as it happens, and stdout has the result alone. A pair is a run: `signoff
    runs`, `show`, `logs`, `resume` and `cancel` work on it.

    Examples:
      signoff pair "eco-friendly water bottles" --preset slogan
      slogan=$(signoff pair "smart watches" --preset slogan --agent claude)
      signoff pair "A product note" --writer claude --reviewer gemini=tone
      signoff pair "a tea shop" --preset slogan --no-reviewer --check words=8
      signoff pair - --criteria "no jargon" -o note.txt < task.txt

    Exit codes: 0 passed, 11 not passed within the turns, 13 the text stopped changing, 1 an
    error in a turn, 2 nothing was started.
    """

    params = _params(_task(task), agent, values)
    _check_output(file)
    target, settings = f"pair:{preset}", cli.limit_settings(limits)
    planned = plan(Path.cwd(), os.environ, target, params, name=name, command_line=settings)
    for warning in planned.warnings:
        display.out.warn(warning)
    cli.set_up_logging(planned.settings)
    params = _with_ready_agents(preset, params, planned, display.out)
    display = replace(display, report=partial(_report, display.out, file))
    with planned.open(Path.cwd(), os.environ) as project:
        return drive_new(project, planned, display, params, name=name)


def _with_ready_agents(
    preset: str, params: dict[str, Any], planned: StartPlan, out: Output
) -> dict[str, Any]:
    """Returns the parameters with agents that can answer; raises if there are none.

    Without an Ollama server, the default agent takes its place, unless the user has chosen one.
    """

    context = compile_context(planned.home, planned.settings)
    agents = build_agents(planned.settings.agents)
    try:
        asyncio.run(check_pair(preset, params, context, agents))
    except AgentError as error:
        models = error.available if isinstance(error, ModelNotFoundError) else ()
        # Hardly anybody has the model that the specification names as the default. With one model
        # there is nothing to choose, but a model that the user has named must not be replaced.
        if len(models) == 1 and "model_name" not in chosen_options(params, context):
            out.note(f"no model is set; using the only one that Ollama has, {models[0]}")
            return {**params, "model_name": models[0]}
        if not (error.no_server and may_ask_another(preset, params, context)):
            refuse_not_ready(planned.not_ready(), by_name=False)
            raise
        other = planned.default_agent
        not_ready = find_not_ready(planned.settings.agents, [Ask(other)], planned.home.root)
        refuse_not_ready(not_ready, by_name=False)
        out.note(f"Ollama is not set up here; using the default agent, {other}")
        params = {**params, "writer": other}
        asyncio.run(check_pair(preset, params, context, agents))
    return params


def _task(task: str | None) -> str:
    if task is not None and task != STDIN:
        return task
    if task is None and sys.stdin.isatty():
        raise click.UsageError("say what to write, or pipe it in", click.get_current_context())
    try:
        # As bytes: the text stream would let bytes that are not text pass.
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"stdin is not text: {error}") from error


def _params(task: str, agent: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the options as parameters of the run; those that were not passed are missing."""
    if agent is not None and (values["writer"] or values["reviewers"]):
        raise click.UsageError(
            "--agent is both the writer and the reviewer; use it, or --writer and --reviewer",
            click.get_current_context(),
        )
    # An empty list of reviewers means none, a missing one means the writer's own agent; the flag
    # tells the two apart on the command line.
    no_reviewer = values.pop("no_reviewer")
    if no_reviewer and values["reviewers"]:
        raise click.UsageError(
            "--no-reviewer and --reviewer exclude each other; leave out one of them",
            click.get_current_context(),
        )
    if agent is not None:
        values |= {"writer": agent, "reviewers": [agent]}
    for repeatable in ("reviewers", "checks"):
        values[repeatable] = list(values[repeatable] or ()) or None
    if no_reviewer:
        values["reviewers"] = []
    values["strict"] = values["strict"] or None
    return {"task": task, **{name: value for name, value in values.items() if value is not None}}


def _check_output(file: Path | None) -> None:
    """Refuses a file that cannot be written before anything is paid for."""
    if file is not None and not file.absolute().parent.is_dir():
        raise click.UsageError(f"-o: the folder {file.parent} does not exist")


def _report(out: Output, file: Path | None, project: Project, name: str) -> int:
    """Writes the result where the user wants it, and returns the exit code."""

    details = show(project, name)
    result = RunResult.of(name, details.timeline.state, ())
    # A process that was killed has not recorded how the run stopped; its row knows.
    result = replace(result, status=details.row.status, stop_reason=details.stop_reason)
    session, code = session_of(result), exit_code(details.row.status)
    data = {**session.model_dump(mode="json"), "exit_code": code}
    if file is not None and file.suffix == ".json":
        file.write_text(json_text(data, indent=2) + "\n", encoding="utf-8")
    elif file is not None and session.final_slogan is not None:
        file.write_text(session.final_slogan + "\n", encoding="utf-8")
    if out.as_json:
        out.json(data)
        return code
    return finish(details, out)
