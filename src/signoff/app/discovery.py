"""Finds workflows that can be run by name: in Python modules and in files of notations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from signoff import plugins
from signoff.app.home import Home
from signoff.app.notations import compile_path
from signoff.core.workflow import Workflow
from signoff.discovery import (
    Discovery,
    discover_files,
    load_module,
    python_files,
    source_files,
)
from signoff.documents.python_files import make_importable
from signoff.errors import Problem
from signoff.notation import CompileContext


def discover(context: CompileContext, searched: Sequence[str] = ()) -> Discovery:
    """Searches the home's flows and the configured folders and modules."""
    # Options are for the one workflow that is run, not for all that are found.
    context = replace(context, options={}, check_only=True)
    make_importable([context.root])
    problems: list[Problem] = []
    files = _flow_files(Home(context.home).flows) if context.home is not None else []
    if files:
        context.trust("flows")
    for source in searched:
        files.extend(source_files(source, context.root, problems))

    def load(path: Path) -> Workflow | None:
        return load_module(path) if path.suffix == ".py" else compile_path(path, context)

    return discover_files(files, problems, load)


def _flow_files(folder: Path) -> list[Path]:
    # Notations are loaded only if there is a folder to search.
    notations = plugins.notations() if folder.is_dir() else ()
    suffixes = {suffix for each in notations for suffix in each.suffixes}
    others = (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)
    return [*python_files(folder), *others]
