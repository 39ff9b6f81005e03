"""Puts files back into a user's project: checked by digest, and each replaced atomically.

Doing it twice does no harm. A process that dies in between leaves each file as it was or as it
should be, and the next one writes the rest.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signoff.core.digest import text_digest
from signoff.documents.regular_files import read_regular
from signoff.errors import UnsafePath, WriteFailed


def replace_files(
    root: Path, files: Mapping[str, str], expected: Mapping[str, str]
) -> dict[str, list[str]]:
    """Writes all files, or none if one of them is neither what is expected nor the new text."""
    states = {path: _digest(_target(root, path)) for path in files}
    conflicts = [
        path
        for path, digest in states.items()
        if digest not in (expected.get(path), text_digest(files[path]))
    ]
    if conflicts:
        return {"written": [], "conflicts": conflicts}
    for path, text in files.items():
        if states[path] != text_digest(text):
            _replace(_target(root, path), text)
    return {"written": list(files), "conflicts": []}


def conflict_text(paths: Sequence[str]) -> str:
    """Returns why no file was written, naming the files that were changed meanwhile."""
    verb = "was" if len(paths) == 1 else "were"
    return f"{', '.join(paths)} {verb} changed during the review; no file was written"


def written_note(written: Mapping[str, list[str]]) -> str:
    """Returns which files of the project were replaced, or why none was; empty if none had to."""
    if written.get("conflicts"):
        return conflict_text(written["conflicts"])
    return f"wrote {', '.join(written['written'])}" if written.get("written") else ""


def _target(root: Path, path: str) -> Path:
    """Returns where a file is; raises `UnsafePath` for one outside of the folder, or a link."""
    base = root.resolve()
    target = base / path
    inside = target.parent.resolve().is_relative_to(base) and ".." not in Path(path).parts
    if not inside or target.is_symlink():
        raise UnsafePath(f"{path!r} cannot be written: it is a link, or outside of the project")
    return target


def _digest(path: Path) -> str | None:
    """Returns the digest of a file's text; None if it has none."""
    try:
        return text_digest(read_regular(path, None).decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _replace(path: Path, text: str) -> None:
    try:
        mode = path.stat().st_mode
        handle, name = tempfile.mkstemp(prefix=".signoff-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error
