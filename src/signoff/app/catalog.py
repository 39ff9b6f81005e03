"""Lists the workflows that a project can run by name, and finds one by what a caller calls it.

Surfaces that run workflows for others use it: a file or a module that is not in the catalog could
be any code of this machine, so they start nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from signoff import plugins
from signoff.app.discovery import discover
from signoff.app.home import Home
from signoff.app.notations import (
    compile_context,
    named_by_notations,
    portable_path,
    shipped_targets,
)
from signoff.app.project import Project
from signoff.app.settings import Settings
from signoff.discovery import NAME, locate_module
from signoff.errors import Problem, UnknownName, UsageError
from signoff.runtime.ports import Agent

REVIEW = "review"
"""The name under which files that exist are reviewed, unless a workflow has it."""
_IN_FILE = re.compile(rf"(?P<path>.+?)(?::{NAME})?")
_IN_MODULE = re.compile(rf"(?P<module>[A-Za-z_][\w.]*):{NAME}")


class CatalogEntry(NamedTuple):
    """A workflow that can be started."""

    name: str
    target: str
    """What starts it, whatever else has the same name."""
    description: str
    kind: str
    """What it is, in words: a review flow, a skill, a workflow in Python."""
    own: bool
    """Whether it belongs to the project, not to a package."""
    path: Path | None = None
    """The file that defines it, if it was found by its file."""


class Catalog(NamedTuple):
    """What can be started, those of the project first, and what is wrong with the rest."""

    entries: tuple[CatalogEntry, ...]
    problems: tuple[Problem, ...]

    def find(self, target: str, cwd: Path) -> CatalogEntry:
        """Returns the entry that a target means, in any form that `run` takes.

        A target is a name, `scheme:name`, a file seen from `cwd`, or a module. Nothing is imported
        for it. Raises `UnknownName` with the valid names, and `UsageError` if several have it.
        """
        candidates = self._candidates(target, cwd)
        if not candidates:
            raise UnknownName("workflow", target, [*self.by_name()])
        if len(candidates) > 1:
            meant = " or ".join(each.target for each in candidates)
            raise UsageError(f"{target!r} can mean {meant}; use one of these instead")
        return candidates[0]

    def by_name(self) -> dict[str, CatalogEntry]:
        """Returns the entries by the shortest target of each: the name, where it is unique."""
        return {
            each.name if self._named(each.name) == [each] else each.target: each
            for each in self.entries
        }

    def _candidates(self, target: str, cwd: Path) -> list[CatalogEntry]:
        exact = [each for each in self.entries if each.target == target]
        return exact or self._named(target) or self._defined_in(target, cwd)

    def _named(self, name: str) -> list[CatalogEntry]:
        """Returns what has a name; what belongs to the project goes before what a package has."""
        named = [each for each in self.entries if each.name == name]
        return [each for each in named if each.own] or named

    def _defined_in(self, target: str, cwd: Path) -> list[CatalogEntry]:
        files: list[Path] = []
        if match := _IN_MODULE.fullmatch(target):
            files += filter(None, [locate_module(match["module"])])
        if match := _IN_FILE.fullmatch(target):
            files += _resolved(cwd, match["path"])
        return [each for each in self.entries if each.path is not None and each.path in files]


def _resolved(cwd: Path, path: str) -> list[Path]:
    try:
        return [(cwd / Path(path).expanduser()).resolve()]
    except (OSError, RuntimeError, ValueError):
        # Too long for a path, an unknown user, a null character: no file has such a name.
        return []


def catalog(project: Project) -> Catalog:
    """Searches the project's flows, the folders and modules of its settings, and its packages."""
    return read_catalog(project.home, project.settings, project.agents)


def read_catalog(
    home: Home, settings: Settings, agents: Mapping[str, Agent] | None = None
) -> Catalog:
    """Returns the catalog of a project that need not be open, or exist yet."""
    context = compile_context(home, settings, agents=agents, check_only=True)
    found = discover(context, settings.workflows)
    entries = []
    for each in found.found:
        location = portable_path(each.path, context.root)
        target = f"{location}:{NAME}" if each.path.suffix == ".py" else location
        name, about, kind = each.workflow.name, each.workflow.description, each.workflow.notation
        entries.append(CatalogEntry(name, target, about, _kind(kind), own=True, path=each.path))
    shipped = shipped_targets()
    for name, notations in named_by_notations(context).items():
        for notation in notations:
            target = f"{notation.scheme}:{name}"
            # A notation that names none of its own ships all of them.
            own = bool(notation.shipped) and target not in shipped
            entries.append(CatalogEntry(name, target, "", notation.label, own))
    if all(each.name != REVIEW for each in entries):
        entries += _file_reviews()
    entries.sort(key=lambda entry: (not entry.own, entry.kind, entry.name))
    return Catalog(tuple(entries), found.problems)


def _file_reviews() -> list[CatalogEntry]:
    """Returns the review of files that exist, which needs no definition."""
    about = "Review files or a change until they are clean."
    able = [each for each in plugins.notations() if each.review]
    return [CatalogEntry(REVIEW, REVIEW, about, each.label, own=False) for each in able[:1]]


def _kind(notation: str) -> str:
    found = plugins.notation(notation)
    return found.label if found is not None else "workflow in Python"
