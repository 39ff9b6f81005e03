"""Answer files that humans put into `hitl/`: found, read once, archived."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.core.requests import ItemState
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.disk import Disk, read_regular_file

ANSWERS = "answers.json"
CLOCK_STEP = 0.02
"""Seconds by which a file's timestamp may lag behind the system clock: it moves in steps."""

_RESPONSE = re.compile(r"([0-9]{1,15})-response\.md")


@dataclass(frozen=True)
class AnswerFile:
    """A file with answers, at the moment it was read."""

    path: Path
    token: str
    """Distinguishes it from any other file, and from itself after a change."""
    changed_at: float
    """When it was last written, in seconds since 1970; its answers are at least that old."""
    placed_at: float
    """When it arrived in its present form. Unlike `changed_at`, no program can set it."""

    @property
    def number(self) -> int | None:
        """The request it answers, if it is a response file next to a prompt."""
        match = _RESPONSE.fullmatch(self.path.name)
        return int(match[1]) if match else None


def find_answer_files(folder: Path) -> list[Path]:
    """Returns the files that may contain answers, `answers.json` first."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    paths = {path.name: path for path in folder.iterdir()}
    responses = [name for name in paths if _RESPONSE.fullmatch(name)]
    ordered = sorted(responses, key=lambda name: int(name.split("-")[0]))
    return [paths[name] for name in (ANSWERS, *ordered) if name in paths]


def read_answer_file(path: Path) -> tuple[AnswerFile, bytes] | None:
    """Returns a file and its content; None if it is not a regular, readable file."""
    data = read_regular_file(path)
    try:
        status = path.lstat()
    except OSError:
        return None
    if data is None:
        return None
    changed = status.st_mtime_ns
    # The token includes the time of change because a human may give the same answer to a later
    # question, and that file must not count as already used.
    token = hashlib.sha256(b"%d\n%s" % (changed, data)).hexdigest()[:16]
    return AnswerFile(path, token, changed / 1e9, status.st_ctime), data


def is_early(file: AnswerFile, opened_at: float) -> bool:
    """Whether a file was there before a request was opened, so it cannot be its answer."""
    return file.placed_at + CLOCK_STEP < opened_at


def rename_early_files(disk: Disk, folder: Path, items: Sequence[InboxItem]) -> list[str]:
    """Renames answer files that are older than every open request; returns a warning for each.

    Otherwise an agent could leave an answer to a request that no human has seen yet.
    """
    opened_at = min((item.opened_at for item in items if item.state is ItemState.OPEN), default=0.0)
    warnings = []
    for path in find_answer_files(folder):
        read = read_answer_file(path)
        if read is None or not is_early(read[0], opened_at):
            continue
        new = path.with_name(f"{path.stem}_{read[0].token}.early{path.suffix}")
        disk.move(path, new)
        warnings.append(
            f"{folder.name}/{path.name} is older than the request it would answer, "
            f"so it does not count; it was renamed to {folder.name}/{new.name}"
        )
    return warnings


def archive_file(disk: Disk, file: AnswerFile) -> Path | None:
    """Renames a used file so that it is never read again; None if it changed since."""
    current = read_answer_file(file.path)
    if current is None or current[0] != file:
        return None
    separator = "_" if file.number is None else "."
    name = f"{file.path.stem}{separator}{file.token}.processed{file.path.suffix}"
    disk.move(file.path, file.path.with_name(name))
    return file.path.with_name(name)
