"""Copies a project for programs that execute it, with some files replaced by other texts.

So a project's tests can be run on a change that is not accepted yet, and what they write stays in
the copy. What tools create by themselves is not copied; installed dependencies are linked.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from signoff.agents.workspace import SKIPPED_FOLDERS
from signoff.errors import AgentBadRequest
from signoff.runtime.home_folder import VARIABLE, find_home_folder
from signoff.runtime.paths import safe_path

LINKED = frozenset({".venv", "venv", "node_modules"})
"""Folders of dependencies: large, needed by tests, and not changed by them."""
MOST_BYTES = 500_000_000
"""A larger project is refused, because it is copied in every round."""


def project_folder(folder: Path, environment: Mapping[str, str]) -> Path:
    """Returns the folder of the project that a run was started in."""
    home = find_home_folder(folder, environment)
    return home.parent if home is not None else folder


def settings_folder(folder: str | None) -> str:
    """Returns the folder of the project around a folder: paths in its settings start there.

    It is not searched where a variable names the home. A review whose rules come from before a
    change works in a folder of its own then, which that variable would lead out of.
    """
    start = Path(folder or Path.cwd())
    return str(start if VARIABLE in os.environ else project_folder(start, {}))


def copy_project(project: Path, target: Path, files: Mapping[str, str]) -> None:
    """Copies a project to a new folder; files have the texts that are passed."""
    copied = Counter[str]()
    try:
        shutil.copytree(
            project,
            target,
            symlinks=True,
            ignore=_left_out,
            copy_function=partial(_copy_file, copied),
        )
        for name in LINKED:
            if (project / name).is_dir():
                (target / name).symlink_to(project / name, target_is_directory=True)
        for name, text in files.items():
            path = safe_path(target, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise AgentBadRequest(f"{project} cannot be copied for the check: {_why(error)}") from error


def _left_out(folder: str, names: Collection[str]) -> set[str]:
    tools = SKIPPED_FOLDERS | LINKED
    # Reading a pipe would wait forever.
    return {name for name in names if name in tools or _is_special(Path(folder, name))}


def _is_special(path: Path) -> bool:
    return not (path.is_symlink() or path.is_file() or path.is_dir())


def _copy_file(copied: Counter[str], source: str, target: str) -> None:
    copied["bytes"] += Path(source).stat().st_size
    if copied["bytes"] > MOST_BYTES:
        raise AgentBadRequest(
            f"the project is larger than {MOST_BYTES:,} bytes, too large to copy it for a check "
            "in every round; use a check of single files"
        )
    shutil.copy2(source, target)


def _why(error: OSError) -> str:
    """Returns one reason; `copytree` collects one for each file."""
    reasons = error.args[0] if isinstance(error, shutil.Error) else None
    if isinstance(reasons, list) and reasons:
        source, _target, reason = reasons[0]
        return f"{source}: {reason}"
    return error.strerror or str(error)
