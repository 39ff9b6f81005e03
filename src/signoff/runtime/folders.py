"""Where programs work: where their run was started, whoever takes it up from elsewhere."""

from __future__ import annotations

from pathlib import Path


def current_folder() -> str:
    """Returns the folder this process works in; nothing when that was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def seen_from(folder: str, path: str | None = None) -> str | None:
    """Returns a path as it was meant where a run was started; as it is, for a process there.

    A project may have been moved since: where that folder is gone, this process's own stands in.
    """
    if not folder or folder == current_folder() or not Path(folder).is_dir():
        return path
    return str(Path(folder, path or ""))
