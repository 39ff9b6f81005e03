"""Goal files: what to write, and the material for it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import line_of, mistakes_of
from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.sections import Goal

VERSION = 1


class GoalFile(Goal):
    """What to write, and the material for it."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""


def load_goal(path: Path | str) -> Goal:
    """Returns the goal of a file, or of a folder that contains one; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    goal = read_goal(Path(path), problems)
    if goal is None:
        raise InvalidWorkflow("goal", problems)
    return goal


def read_goal(path: Path, problems: list[Problem]) -> Goal | None:
    """Returns the goal of a file or a folder; None after adding to `problems`."""
    if path.is_dir():
        return _goal_of_folder(path, problems)
    file = SourceFile(path)
    if path.suffix.lower() in (".yaml", ".yml") and isinstance(file.content, dict | None):
        return _goal_of_mapping(file, problems)
    text = read_text(path, problems)
    if text is not None and not text.strip():
        problems.append(Problem(display_path(path), "is empty", "write the goal into it"))
    return Goal(goal=text) if text and text.strip() else None


def _goal_of_folder(folder: Path, problems: list[Problem]) -> Goal | None:
    names = [name for name in ("goal.yaml", "goal.yml", "goal.md") if (folder / name).is_file()]
    if not names:
        problems.append(Problem(display_path(folder), "contains no goal.yaml and no goal.md"))
        return None
    return read_goal(folder / names[0], problems)


def _goal_of_mapping(file: SourceFile, problems: list[Problem]) -> Goal | None:
    document = file.mapping(problems, "fields", VERSION)
    if document is None:
        return None
    try:
        goal = GoalFile.model_validate(document.content)
    except ValidationError as error:
        found = [mistake.problem(document.at) for mistake in mistakes_of(error, GoalFile)]
        problems.extend(sorted(found, key=line_of))
        return None
    return Goal(goal=goal.goal, source=goal.source)
