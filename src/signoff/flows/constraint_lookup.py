"""Finds the constraints of a flow: those in its files, in its folder, and in the flow itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.documents.files import display_path
from signoff.documents.mistakes import Mistake, format_path
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.yaml_text import Document
from signoff.errors import Problem
from signoff.flows.constraint_file import (
    ID_WORDS,
    constraint_files,
    inline_constraint,
    is_id,
    read_constraints,
)
from signoff.flows.sections import ConstraintConfig
from signoff.review.constraint import Constraint


@dataclass(frozen=True)
class ConstraintLookup:
    """Where a flow's constraints are looked for, and where problems are collected."""

    config: ConstraintConfig
    folders: Sequence[Path]
    """Where relative paths may start, in this order."""
    home: Path | None
    """The project's `.signoff/`; its constraints are used by flows that name none."""
    document: Document
    problems: list[Problem]
    warnings: list[Problem]

    def constraints(self) -> list[Constraint]:
        """Returns the constraints in the order of definition."""
        paths = list(self._files())
        folder = self._folder()
        if folder is not None:
            paths += constraint_files(folder, self.problems)
        unique = {path.resolve(): path for path in reversed(paths)}
        files = [path for path in paths if unique.pop(path.resolve(), None) is not None]
        constraints = read_constraints(files, self.problems, self.warnings)
        return [*constraints, *self._inline({constraint.id for constraint in constraints})]

    def _files(self) -> Iterator[Path]:
        for position, name in enumerate(self.config.files):
            path = self._find(name)
            if path is not None and not path.is_dir():
                yield path
            else:
                self._report_missing(("constraints", "files", position), name, "file")

    def _folder(self) -> Path | None:
        if self.config.dir is None:
            # A flow that has constraints of its own means these and no others.
            own = self.config.files or self.config.inline
            default = self.home / "constraints" if self.home and not own else None
            return default if default is not None and default.is_dir() else None
        folder = self._find(self.config.dir)
        if folder is not None and folder.is_dir():
            return folder
        self._report_missing(("constraints", "dir"), self.config.dir, "folder")
        return None

    def _inline(self, taken: set[str]) -> Iterator[Constraint]:
        for position, (name, section) in enumerate(self.config.inline.items()):
            path = ("constraints", "inline", name)
            if not is_id(name):
                self._report(path, f"constraints.inline has the id {name!r:.60}", ID_WORDS)
            elif name in taken:
                what = f"the id {name!r} is taken by a constraint file"
                self._report(path, what, "give each constraint its own id")
            else:
                yield inline_constraint(name, position + 1, section)

    def _find(self, name: str) -> Path | None:
        paths = (folder / name for folder in self.folders)
        return next((path for path in paths if path.exists()), None)

    def _report_missing(self, path: KeyPath, name: str, kind: str) -> None:
        folders = dict.fromkeys(display_path(folder) for folder in self.folders)
        what = f"{format_path(path)} is {name!r}, but there is no such {kind}"
        self._report(path, what, f"searched {' and '.join(folders)}")

    def _report(self, path: KeyPath, what: str, remedy: str) -> None:
        self.problems.append(Mistake(path, what, remedy).problem(self.document.at))
