"""Notices that files which a long-lived process has loaded were changed since.

Python loads a module once, and settings are read when a project is opened. A worker that did not
notice a change would drive runs with code that their users no longer have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from signoff.app.agents import named_files
from signoff.app.project import Project
from signoff.app.settings import settings_files

_Stamp = tuple[int, int] | None


class LoadedFiles:
    """The settings files, what they name, and the modules of a project, as first seen."""

    def __init__(self, project: Project) -> None:
        root = project.code_root or project.home.root
        self._root = str(root) + os.sep
        self._settings = [
            *settings_files(project.home, os.environ),
            *named_files(project.settings, root),
        ]
        self._seen = {path: _stamp(path) for path in self._paths()}

    def changed(self) -> bool:
        """Tells whether one of them is different now; new modules are noted."""
        return any(
            self._seen.setdefault(path, stamp) != stamp
            for path, stamp in ((path, _stamp(path)) for path in list(self._paths()))
        )

    def _paths(self) -> Iterator[Path]:
        yield from self._settings
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            # Installed packages inside the folder, such as in .venv, are not the project's own.
            if file and file.startswith(self._root) and "site-packages" not in file:
                yield Path(file)


def _stamp(path: Path) -> _Stamp:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
