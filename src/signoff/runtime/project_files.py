"""Puts files back into a user's project: checked by digest, and each replaced atomically.

Doing it twice does no harm. A process that dies in between leaves each file as it was or as it
should be, and the next one writes the rest. It also removes what the dead one has left: the name
of a temporary file follows from the file and its new text, so the next process knows it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signoff.core.digest import text_digest
from signoff.core.errors import UnsafePath, WriteFailed
from signoff.documents.regular_files import create_private, make_private_folder, read_regular

SCRATCH = ".write-back"
"""The folder of temporary files, next to the runs, where git and reviews look for nothing."""


def replace_files(
    root: Path, files: Mapping[str, str], expected: Mapping[str, str]
) -> dict[str, list[str]]:
    """Writes all files, or none if one of them is neither what is expected nor the new text."""
    scratch = {path: _scratch_files(root, path, text) for path, text in files.items()}
    for left in (each for found in scratch.values() for each in found):
        with suppress(OSError):
            left.unlink()
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
            _replace(_target(root, path), text, scratch[path])
    with suppress(OSError):
        _scratch_folder(root).rmdir()
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


def _scratch_folder(root: Path) -> Path:
    return root.resolve() / ".signoff" / "runs" / SCRATCH


def _scratch_files(root: Path, path: str, text: str) -> list[Path]:
    """Returns where a new text may be written before it replaces a file, the best place first."""
    name = text_digest(f"{path}\0{text_digest(text)}")[:24]
    target = _target(root, path)
    return [_scratch_folder(root) / name, target.with_name(f".signoff-{name}")]


def _replace(path: Path, text: str, scratch: Sequence[Path]) -> None:
    try:
        for temporary in scratch:
            if temporary.parent == path.parent or _can_hold(temporary.parent):
                try:
                    return _write_over(path, text, temporary)
                except OSError as error:
                    # Only trying tells: two mounts of one file system have the same number.
                    if error.errno != errno.EXDEV:
                        raise
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


def _write_over(path: Path, text: str, temporary: Path) -> None:
    try:
        with os.fdopen(create_private(temporary), "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _can_hold(folder: Path) -> bool:
    """Whether the project has a home for this folder of temporary files, which is then made."""
    runs = folder.parent
    if not runs.parent.is_dir() or any(map(Path.is_symlink, (runs.parent, runs, folder))):
        return False
    for each in (runs, folder):
        make_private_folder(each, exist_ok=True)
    return True
