"""Finds the constraints a flow names: its files, its folder, its own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from signoff.documents.files import display_path
from signoff.documents.yaml_text import Document
from signoff.errors import Problem
from signoff.flows.constraint_file import (
    ID,
    ID_WORDS,
    constraint_files,
    inline_constraint,
    read_constraints,
)
from signoff.flows.sections import ConstraintConfig
from signoff.review.constraint import Constraint


def constraints_of(
    config: ConstraintConfig,
    places: Sequence[Path],
    home: Path | None,
    document: Document,
    problems: list[Problem],
    remarks: list[Problem],
) -> list[Constraint]:
    """Returns a flow's constraints in the order of definition, each file's every problem told.

    Paths are looked for in each of `places` in turn. A flow that names neither a folder
    nor files has those of the project home.
    """
    files = _files(config, places, home, document, problems)
    constraints = read_constraints(files, problems, remarks)
    return [*constraints, *_inline(config, constraints, document, problems)]


def _files(
    config: ConstraintConfig,
    places: Sequence[Path],
    home: Path | None,
    document: Document,
    problems: list[Problem],
) -> list[Path]:
    found: list[Path] = []
    for position, name in enumerate(config.files):
        path = _look(name, places)
        if path is None or path.is_dir():
            what = f"constraints.files[{position}] is {name!r}, and there is no such file"
            at = document.at(("constraints", "files", position))
            problems.append(Problem(at, what, _looked(places)))
        else:
            found.append(path)
    folder = _folder(config, places, home, document, problems)
    if folder is not None:
        found.extend(constraint_files(folder, problems))
    unique = {path.resolve(): path for path in reversed(found)}
    return [path for path in found if unique.pop(path.resolve(), None) is not None]


def _folder(
    config: ConstraintConfig,
    places: Sequence[Path],
    home: Path | None,
    document: Document,
    problems: list[Problem],
) -> Path | None:
    if config.dir is None:
        default = home / "constraints" if home is not None and not config.files else None
        return default if default is not None and default.is_dir() else None
    folder = _look(config.dir, places)
    if folder is None or not folder.is_dir():
        what = f"constraints.dir is {config.dir!r}, and there is no such folder"
        at = document.at(("constraints", "dir"))
        problems.append(Problem(at, what, _looked(places)))
        return None
    return folder


def _inline(
    config: ConstraintConfig,
    others: Sequence[Constraint],
    document: Document,
    problems: list[Problem],
) -> list[Constraint]:
    taken = {constraint.id for constraint in others}
    found = []
    for position, (name, sentence) in enumerate(config.inline.items()):
        at = document.at(("constraints", "inline", name))
        if not re.match(ID, name):
            problems.append(Problem(at, f"constraints.inline has the id {name!r:.60}", ID_WORDS))
        elif name in taken:
            what = f"the id {name!r} is taken by a constraint file"
            problems.append(Problem(at, what, "give each constraint an id of its own"))
        else:
            found.append(inline_constraint(name, sentence, position + 1))
    return found


def _look(name: str, places: Sequence[Path]) -> Path | None:
    return next((place / name for place in places if (place / name).exists()), None)


def _looked(places: Sequence[Path]) -> str:
    return f"looked in {' and '.join(dict.fromkeys(display_path(place) for place in places))}"
