"""What the workflows of installed packages are for, as lists show it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from signoff.app.project import Project
from signoff.app.targets import REVIEW, CatalogEntry, find_workflow
from signoff.errors import SignoffError


def described(project: Project, entry: CatalogEntry) -> CatalogEntry:
    """Returns an entry with the description of its workflow."""
    if entry.description or entry.own or entry.target == REVIEW:
        return entry
    return entry._replace(description=_shipped_description(entry.target, project.home.root))


@cache
def _shipped_description(target: str, root: Path) -> str:
    """Returns what a shipped workflow is for; it has to be imported to find out, once."""
    try:
        return find_workflow(target, root, os.environ).description
    except SignoffError:
        return ""
