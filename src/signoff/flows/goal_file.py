"""Goal files: what to write, and the material to write it from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import mistakes_of
from signoff.documents.yaml_text import Document, newer_version, read_yaml
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.sections import Goal
from signoff.review.constraint import SourceBlock

VERSION = 1
YAML_NAMES = frozenset({".yaml", ".yml"})


class GoalFile(Goal):
    """What to write, and the material to write it from."""

    version: Literal[1] = Field(1, title="The form of this file", description="1")


def load_goal(path: Path | str) -> Goal:
    """Returns the goal of a file, or of a folder that holds one; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    goal = read_goal(Path(path), problems)
    if goal is None:
        raise InvalidWorkflow("goal", problems)
    return goal


def read_goal(path: Path, problems: list[Problem]) -> Goal | None:
    """Returns the goal of a file; its mistakes go to `problems`."""
    if path.is_dir():
        return _of_folder(path, problems)
    text = read_text(path, problems)
    if text is None:
        return None
    if path.suffix.lower() not in YAML_NAMES:
        return _whole(text, path, problems)
    document = read_yaml(text, display_path(path), problems)
    if document is None:
        return None
    if not isinstance(document.content, dict):
        return _whole(text, path, problems)
    return _of_mapping(document, problems)


def _of_folder(folder: Path, problems: list[Problem]) -> Goal | None:
    for name in ("goal.yaml", "goal.yml"):
        if (folder / name).is_file():
            return read_goal(folder / name, problems)
    if not (folder / "goal.md").is_file():
        problems.append(Problem(display_path(folder), "holds no goal.yaml and no goal.md"))
        return None
    goal = read_goal(folder / "goal.md", problems)
    if goal is None or not (folder / "source.md").is_file():
        return goal
    material = read_text(folder / "source.md", problems)
    if material is None:
        return None
    return goal.model_copy(update={"source": SourceBlock(inline=material)})


def _of_mapping(document: Document, problems: list[Problem]) -> Goal | None:
    newer = newer_version(document, VERSION)
    if newer is not None:
        problems.append(newer)
        return None
    try:
        goal = GoalFile.model_validate(document.content)
    except ValidationError as error:
        mistakes = sorted(mistakes_of(error, GoalFile), key=lambda m: document.line(m.path))
        problems.extend(mistake.problem(document.at) for mistake in mistakes)
        return None
    return Goal(goal=goal.goal, source=goal.source)


def _whole(text: str, path: Path, problems: list[Problem]) -> Goal | None:
    if not text.strip():
        problems.append(Problem(display_path(path), "is empty", "say in it what to write"))
        return None
    return Goal(goal=text)
