"""Finds the lines of a user's own files that a mistake stands in."""

from __future__ import annotations

import ast
import importlib
import traceback
from dataclasses import replace
from pathlib import Path

from signoff.errors import InvalidWorkflow

_OURS = str(Path(__file__).parents[1])
_IMPORTLIB = str(Path(importlib.__file__).parent)


def place_of(error: BaseException) -> str:
    """Returns `file:line` of the user's own code where it happened; empty when that is nowhere."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(("<", _OURS, _IMPORTLIB))]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def located(error: InvalidWorkflow) -> InvalidWorkflow:
    """Returns the same problems, each with the line of its step, or of the workflow."""
    place = place_of(error)
    if not place:
        return error
    file = place.rpartition(":")[0]
    lines = _step_lines(Path(file))
    problems = []
    for problem in error.problems:
        line = lines.get(problem.step)
        where = f"{file}:{line}" if line else place
        problems.append(replace(problem, where=f"{where}: {problem.where}"))
    return InvalidWorkflow(error.name, problems)


def _step_lines(file: Path) -> dict[str, int]:
    """Returns where each `StepDef` with a plain id begins; the first one of an id counts."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="StepDef") | ast.Attribute(attr="StepDef"),
                args=[ast.Constant(value=str(step)), *_],
            ):
                found.setdefault(step, node.lineno)
    return found
