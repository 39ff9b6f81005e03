"""Tells what an agent changed on disk: inside its workspace as diffs, outside as a list.

The workspace is read before and after the call. The project around it is only looked at
(size, time, identity of each file), which finds changes without reading everything.
Folders that tools fill for themselves are left out, and so are workspaces that other
calls of this process edited meanwhile.
"""

from __future__ import annotations

import difflib
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from signoff.documents.regular_files import read_regular

SKIPPED = frozenset(
    ".git .hg .svn .signoff .venv node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache "
    ".tox .hypothesis".split()
)
WATCHED = {".git": ("config", "hooks"), ".signoff": ("config.yaml", "constraints", "flows")}
"""Parts of such folders that decide what runs later, and so are looked at all the same."""
MOST_FILES = 50_000
"""A tree with more files is not looked at beyond these."""
MOST_FILE_BYTES = 1_000_000
MOST_READ_BYTES = 64_000_000
"""Files larger than the first, or read after the second is used up, are compared, not shown."""
MOST_DIFF = 100_000
MOST_DIFFS = 2_000_000
"""Characters of one diff, and of all of one call."""

Stamp = tuple[int, int, int, int]
"""Size, time of change in nanoseconds, file number and mode: another one means a change."""

_until: dict[Path, float] = {}
"""Until when each workspace was edited by this process; calls know nothing of each other."""


@dataclass(frozen=True)
class Snapshot:
    """A workspace, and the project around it, at one moment."""

    workspace: Path
    project: Path | None
    """The folder around the workspace that belongs to the same project, if any."""
    stamps: Mapping[str, Stamp]
    contents: Mapping[str, bytes]
    around: Mapping[str, Stamp]
    at: float


@dataclass(frozen=True)
class Changes:
    """What happened to the files between two moments."""

    inside: dict[str, str]
    """Diffs by path within the workspace."""
    outside: tuple[str, ...]
    """Paths elsewhere in the project, as seen from the workspace."""


@contextmanager
def editing(workspace: Path) -> Iterator[None]:
    """Makes known that a workspace is being edited, so its changes are not taken for another's."""
    _until[workspace] = math.inf
    try:
        yield
    finally:
        _until[workspace] = time.monotonic()


def take(workspace: Path) -> Snapshot:
    """Reads a workspace and looks at the project around it."""
    at = time.monotonic()
    stamps = _stamps(workspace)
    project = _project(workspace)
    contents = _contents(workspace, stamps)
    return Snapshot(workspace, project, stamps, contents, _around(project, workspace), at)


def compare(before: Snapshot) -> Changes:
    """Looks again and returns what changed since."""
    now = _stamps(before.workspace)
    changed = sorted(
        path
        for path in before.stamps.keys() | now.keys()
        if before.stamps.get(path) != now.get(path)
    )
    after = _contents(before.workspace, {path: now[path] for path in changed if path in now})
    inside: dict[str, str] = {}
    room = MOST_DIFFS
    for path in changed:
        diff = _diff(path, before, after, now, room)
        if diff:
            inside[path] = diff
            room -= len(diff)
    return Changes(inside, tuple(sorted(_outside(before))))


def _outside(before: Snapshot) -> Iterator[str]:
    if before.project is None:
        return
    now = _around(before.project, before.workspace)
    others = [place for place, end in _until.items() if end >= before.at]
    for name in now.keys() | before.around.keys():
        path = before.project / name
        changed = now.get(name) != before.around.get(name)
        if changed and not any(path.is_relative_to(other) for other in others):
            yield os.path.relpath(path, before.workspace)


def _diff(
    path: str,
    before: Snapshot,
    after: Mapping[str, bytes],
    now: Mapping[str, Stamp],
    room: int,
) -> str:
    old, new = before.contents.get(path), after.get(path)
    is_new, is_gone = path not in before.stamps, path not in now
    if not is_new and not is_gone and old is not None and old == new:
        return _mode_change(before.stamps[path], now[path])
    verb = "added" if is_new else "deleted" if is_gone else "changed"
    old_text, new_text = _text(old, is_new), _text(new, is_gone)
    if old_text is None or new_text is None or room <= 0:
        return f"{verb} (not shown: binary, or too large)\n"
    lines = difflib.unified_diff(
        old_text.splitlines(keepends=True),
        new_text.splitlines(keepends=True),
        "/dev/null" if is_new else f"a/{path}",
        "/dev/null" if is_gone else f"b/{path}",
    )
    diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    if len(diff) > MOST_DIFF:
        return f"{diff[:MOST_DIFF]}\n[... {len(diff) - MOST_DIFF} characters left out ...]\n"
    return diff or f"{verb} (empty)\n"


def _mode_change(old: Stamp, new: Stamp) -> str:
    return f"mode changed from {old[3]:o} to {new[3]:o}\n" if old[3] != new[3] else ""


def _text(content: bytes | None, absent: bool) -> str | None:
    """Returns a file's text, nothing for one that is not there, None for one not to be shown."""
    if absent:
        return ""
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _around(project: Path | None, workspace: Path) -> dict[str, Stamp]:
    if project is None:
        return {}
    return _stamps(project, without=workspace)


def _stamps(root: Path, without: Path | None = None) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    folders = [root]
    while folders and len(found) < MOST_FILES:
        folder = folders.pop()
        for entry in _entries(folder):
            place = Path(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                _note(found, root, place)
            elif entry.name in SKIPPED:
                watched = [place / name for name in WATCHED.get(entry.name, ())]
                folders += [each for each in watched if each.is_dir()]
                for each in watched:
                    if each.is_file():
                        _note(found, root, each)
            elif place != without:
                folders.append(place)
    return found


def _note(found: dict[str, Stamp], root: Path, place: Path) -> None:
    try:
        stat = place.lstat()
    except OSError:
        return  # gone between listing and looking
    name = place.relative_to(root).as_posix()
    found[name] = (stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_mode)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _contents(root: Path, stamps: Mapping[str, Stamp]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    room = MOST_READ_BYTES
    for name, stamp in stamps.items():
        if stamp[0] > min(room, MOST_FILE_BYTES):
            continue
        content = _content(root / name)
        if content is not None:
            contents[name] = content
            room -= len(content)
    return contents


def _content(path: Path) -> bytes | None:
    try:
        if path.is_symlink():
            # Where it points is its content; what stands there is somebody else's.
            return f"link to {path.readlink()}\n".encode()
        return read_regular(path, None)
    except OSError:
        return None


def _project(workspace: Path) -> Path | None:
    """Returns the folder around a workspace that belongs to the same project, if there is one."""
    if (workspace / ".signoff").is_dir():
        return None
    homes = [folder for folder in workspace.parents if (folder / ".signoff").is_dir()]
    if homes or (workspace / ".git").exists():
        return homes[0] if homes else None
    return next((folder for folder in workspace.parents if (folder / ".git").exists()), None)
