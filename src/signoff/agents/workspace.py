"""Detects what an agent changed on disk: inside its workspace as diffs, outside as a list.

The workspace is read before and after the call. For the rest of the project only the size,
time and identity of each file are compared, which finds changes without reading everything.
Caches of tools are skipped, and so are workspaces that other calls of this process edited
at the same time.
"""

from __future__ import annotations

import base64
import difflib
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentBadRequest, AgentRefused, UnsafePath
from signoff.documents.home_folder import VARIABLE, find_home_folder
from signoff.documents.regular_files import read_regular
from signoff.runtime.paths import safe_path

SKIPPED_FOLDERS = frozenset(
    ".git .hg .svn .signoff .venv node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache "
    ".tox .hypothesis".split()
)
WATCHED_PARTS = {".git": ("config", "hooks"), ".signoff": ("config.yaml", "constraints", "flows")}
"""Parts of skipped folders that are watched all the same: they decide what runs later."""
MAX_FILES = 50_000
"""In a larger tree, the remaining files are not watched."""
MAX_FILE_BYTES = 1_000_000
MAX_READ_BYTES = 64_000_000
"""Contents beyond these limits, per file and in total, are compared but not shown."""
MAX_DIFF = 100_000
MAX_DIFFS = 2_000_000
"""Characters of one diff, and of all diffs of a call."""

Stamp = tuple[int, int, int, int]
"""Size, modification time in nanoseconds, inode and mode; a file changed if it differs."""

_edited_until: dict[Path, float] = {}
"""When this process stopped editing each workspace, so that calls do not blame each other."""


@dataclass(frozen=True)
class Snapshot:
    """A workspace and the rest of its project at one moment."""

    workspace: Path
    project: Path | None
    """The project folder that contains the workspace, if any."""
    stamps: Mapping[str, Stamp]
    contents: Mapping[str, bytes]
    project_stamps: Mapping[str, Stamp]
    taken_at: float


@dataclass(frozen=True)
class Changes:
    """Changed files."""

    inside: dict[str, str]
    """Diffs by path within the workspace."""
    outside: tuple[str, ...]
    """Paths elsewhere in the project, relative to the workspace."""


@contextmanager
def editing(workspace: Path) -> Iterator[None]:
    """Marks a workspace as being edited, so that other calls do not report its changes."""
    # Without an end as long as it lasts: a call that begins before and ends after must not take
    # these changes for its own.
    _edited_until[workspace] = math.inf
    try:
        yield
    finally:
        _edited_until[workspace] = time.monotonic()


def take_snapshot(workspace: Path) -> Snapshot:
    """Reads a workspace and stamps the files of the project that contains it."""
    taken_at = time.monotonic()
    stamps = _stamps(workspace)
    project = _find_project(workspace)
    outside = _stamps(project, without=workspace) if project else {}
    contents = _read_files(workspace, stamps)
    return Snapshot(workspace, project, stamps, contents, outside, taken_at)


def changes_since(before: Snapshot) -> Changes:
    """Returns what changed since a snapshot."""
    now = _stamps(before.workspace)
    changed = sorted(_changed(before.stamps, now))
    after = _read_files(before.workspace, {path: now[path] for path in changed if path in now})
    inside: dict[str, str] = {}
    room = MAX_DIFFS
    # One agent may rewrite thousands of files. All changes count, but what is stored of them has a
    # limit.
    for path in changed:
        diff = _diff(path, before, after, now, room)
        if diff:
            inside[path] = diff
            room -= len(diff)
    return Changes(inside, tuple(sorted(_changes_outside(before))))


def _changes_outside(before: Snapshot) -> Iterator[str]:
    if before.project is None:
        return
    now = _stamps(before.project, without=before.workspace)
    others = [folder for folder, end in _edited_until.items() if end >= before.taken_at]
    for name in _changed(before.project_stamps, now):
        path = before.project / name
        if not any(path.is_relative_to(other) for other in others):
            yield os.path.relpath(path, before.workspace)


def _changed(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> set[str]:
    """Returns the files that were added, changed or deleted."""
    # The symmetric difference has a changed file twice, with its old and its new stamp.
    return {name for name, _ in before.items() ^ now.items()}


def _diff(
    path: str, before: Snapshot, after: Mapping[str, bytes], now: Mapping[str, Stamp], room: int
) -> str:
    old, new = before.contents.get(path), after.get(path)
    is_new, is_gone = path not in before.stamps, path not in now
    if not is_new and not is_gone and old is not None and old == new:
        old_mode, new_mode = before.stamps[path][3], now[path][3]
        same_mode = old_mode == new_mode
        return "" if same_mode else f"mode changed from {old_mode:o} to {new_mode:o}\n"
    verb = "added" if is_new else "deleted" if is_gone else "changed"
    old_text = "" if is_new else text_of(old)
    new_text = "" if is_gone else text_of(new)
    if old_text is None or new_text is None or room <= 0:
        return f"{verb} (not shown: binary, or too large)\n"
    lines = difflib.unified_diff(
        old_text.splitlines(keepends=True),
        new_text.splitlines(keepends=True),
        "/dev/null" if is_new else f"a/{path}",
        "/dev/null" if is_gone else f"b/{path}",
    )
    diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    if len(diff) > MAX_DIFF:
        return f"{diff[:MAX_DIFF]}\n[... {len(diff) - MAX_DIFF} characters left out ...]\n"
    return diff or f"{verb} (empty)\n"


def text_of(content: bytes | None) -> str | None:
    """Returns the text of a file, or None when the file is binary or was not read."""
    try:
        return None if content is None or b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _stamps(root: Path, without: Path | None = None) -> dict[str, Stamp]:
    stamps: dict[str, Stamp] = {}
    for path in islice(_files(root, without), MAX_FILES):
        with suppress(OSError):  # deleted after it was listed
            stat = path.lstat()
            stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_mode)
            stamps[path.relative_to(root).as_posix()] = stamp
    return stamps


def _files(root: Path, without: Path | None) -> Iterator[Path]:
    folders = [root]
    while folders:
        for entry in _entries(folders.pop()):
            path = Path(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                yield path
            elif entry.name in SKIPPED_FOLDERS:
                parts = [path / name for name in WATCHED_PARTS.get(entry.name, ())]
                folders += filter(Path.is_dir, parts)
                yield from filter(Path.is_file, parts)
            elif path != without:
                folders.append(path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    # A folder that cannot be read cannot be compared. That is no mistake of the agent.
    except OSError:
        return []


def _read_files(root: Path, stamps: Mapping[str, Stamp]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    room = MAX_READ_BYTES
    for name, stamp in stamps.items():
        if stamp[0] > min(room, MAX_FILE_BYTES):
            continue
        content = _read_file(root / name)
        if content is not None:
            contents[name] = content
            room -= len(content)
    return contents


def _read_file(path: Path) -> bytes | None:
    try:
        if path.is_symlink():
            # The content of a link is its target path; the target may belong to someone else.
            return f"link to {path.readlink()}\n".encode()
        return read_regular(path, None)
    except OSError:
        return None


def _find_project(workspace: Path) -> Path | None:
    """Returns the project folder that contains a workspace, if there is one."""
    if (workspace / ".signoff").is_dir():
        return None
    homes = [folder for folder in workspace.parents if (folder / ".signoff").is_dir()]
    if homes or (workspace / ".git").exists():
        return homes[0] if homes else None
    return next((folder for folder in workspace.parents if (folder / ".git").exists()), None)


Contents = Mapping[str, str | Mapping[str, str] | None]
"""By path within the workspace; `{"base64": ...}` is a binary file."""


def apply_edits(files: Contents, request: AgentRequest) -> dict[str, str]:
    """Edits files as an agent would and returns the diffs; refuses paths outside the workspace."""
    if not files:
        return {}
    if not request.edit or request.workspace is None:
        raise AgentRefused("the answer edits files, and the request does not allow it")
    folder = Path(request.workspace)
    # All paths are checked before the first file is written, so a refused edit leaves nothing
    # behind.
    try:
        paths = {name: safe_path(folder, name) for name in files}
    except UnsafePath as error:
        raise AgentRefused(f"the edit leaves the workspace: {error}") from error
    before = take_snapshot(folder)
    for name, content in files.items():
        _write(paths[name], content)
    return changes_since(before).inside


def edited_files(before: Snapshot) -> dict[str, str | dict[str, str] | None]:
    """Returns the contents of the files that changed since a snapshot; None for a deleted one."""
    changed = changes_since(before).inside
    return {name: _read(before.workspace / name) for name in changed}


def _write(path: Path, content: str | Mapping[str, str] | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    data = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _read(path: Path) -> str | dict[str, str] | None:
    if not path.is_file():
        return None
    data = path.read_bytes()
    text = text_of(data)
    return {"base64": base64.b64encode(data).decode("ascii")} if text is None else text


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


def project_program(name: str) -> str:
    """Returns a program of the settings; one that is named by a path is in the project."""
    # The name itself has to be examined, because a `Path` has lost the `./` of `./check.sh`.
    if os.sep not in name:
        return name
    return str(Path(settings_folder(None), Path(name).expanduser()))


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
        why = str(error)[:300]
        raise AgentBadRequest(f"{project} cannot be copied for the check: {why}") from error


def _left_out(folder: str, names: Collection[str]) -> set[str]:
    tools = SKIPPED_FOLDERS | LINKED
    # Reading a pipe would wait forever.
    paths = {name: Path(folder, name) for name in names}
    special = {n for n, p in paths.items() if not (p.is_symlink() or p.is_file() or p.is_dir())}
    return special.union(name for name in names if name in tools)


def _copy_file(copied: Counter[str], source: str, target: str) -> None:
    copied["bytes"] += Path(source).stat().st_size
    if copied["bytes"] > MOST_BYTES:
        raise AgentBadRequest(
            f"the project is larger than {MOST_BYTES:,} bytes, too large to copy it for a check "
            "in every round; use a check of single files"
        )
    shutil.copy2(source, target)
