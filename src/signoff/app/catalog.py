"""Lists the workflows that a project can run by name, for surfaces that offer them."""

from __future__ import annotations

from typing import NamedTuple

from signoff import plugins
from signoff.app.discovery import discover
from signoff.app.notations import (
    compile_context,
    named_by_notations,
    portable_path,
    shipped_targets,
)
from signoff.app.project import Project
from signoff.discovery import NAME
from signoff.errors import Problem


class CatalogEntry(NamedTuple):
    """A workflow that can be started."""

    name: str
    target: str
    """What starts it."""
    description: str
    kind: str
    """What it is, in words: a review flow, a skill, a workflow in Python."""
    own: bool
    """Whether it belongs to the project, not to a package."""


class Catalog(NamedTuple):
    """What can be started, those of the project first, and what is wrong with the rest."""

    entries: tuple[CatalogEntry, ...]
    problems: tuple[Problem, ...]

    def find(self, target: str) -> CatalogEntry | None:
        """Returns the entry with this target; None if there is none."""
        return next((each for each in self.entries if each.target == target), None)


def catalog(project: Project) -> Catalog:
    """Searches the project's flows, the folders and modules of its settings, and its packages."""
    settings = project.settings
    context = compile_context(project.home, settings, agents=project.agents, check_only=True)
    found = discover(context, settings.workflows)
    entries = []
    for each in found.found:
        location = portable_path(each.path, context.root)
        target = f"{location}:{NAME}" if each.path.suffix == ".py" else location
        workflow = each.workflow
        kind = _kind(workflow.notation)
        entries.append(CatalogEntry(workflow.name, target, workflow.description, kind, own=True))
    shipped = shipped_targets()
    for name, notations in named_by_notations(context).items():
        for notation in notations:
            target = f"{notation.scheme}:{name}"
            # A notation that names none of its own ships all of them.
            own = bool(notation.shipped) and target not in shipped
            entries.append(CatalogEntry(name, target, "", notation.label, own))
    entries.sort(key=lambda entry: (not entry.own, entry.kind, entry.name))
    return Catalog(tuple(entries), found.problems)


def _kind(notation: str) -> str:
    found = plugins.notation(notation)
    return found.label if found is not None else "workflow in Python"
