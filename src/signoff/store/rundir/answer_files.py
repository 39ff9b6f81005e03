"""Files in `hitl/` that people have made: found, read once, archived."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.core.requests import ItemState
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.disk import Disk, read_plain

ANSWERS = "answers.json"
CLOCK_STEP = 0.02
"""Seconds by which a file system's clock may lag behind the system's: it moves in steps."""

_RESPONSE = re.compile(r"([0-9]{1,15})-response\.md")


@dataclass(frozen=True)
class AnswerFile:
    """A file with answers, as it was when it was read."""

    path: Path
    token: str
    """Tells it from any other file, and from itself after a change."""
    changed_at: float
    """When it was written last, in seconds since 1970: by then, its answers were given."""
    placed_at: float
    """When it got here in its present form. Unlike `changed_at`, no program can set this one."""

    @property
    def number(self) -> int | None:
        """The request it answers, when it is a response beside a prompt."""
        matched = _RESPONSE.fullmatch(self.path.name)
        return int(matched[1]) if matched else None


def find_answer_files(folder: Path) -> list[Path]:
    """Returns the files in which answers may be, `answers.json` first."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    found = {path.name: path for path in folder.iterdir()}
    responses = [name for name in found if _RESPONSE.fullmatch(name)]
    ordered = sorted(responses, key=lambda name: int(name.split("-")[0]))
    return [found[name] for name in (ANSWERS, *ordered) if name in found]


def read_answer_file(path: Path) -> tuple[AnswerFile, bytes] | None:
    """Returns a file and what it holds; None when it is not a plain, readable file."""
    data = read_plain(path)
    try:
        found = path.lstat()
    except OSError:
        return None
    if data is None:
        return None
    changed = found.st_mtime_ns
    # With the time of change: a person may well give the same answer again to a later question.
    token = hashlib.sha256(b"%d\n%s" % (changed, data)).hexdigest()[:16]
    return AnswerFile(path, token, changed / 1e9, found.st_ctime), data


def was_early(file: AnswerFile, opened_at: float) -> bool:
    """Tells whether a file was there before a request, so that it cannot be its answer."""
    return file.placed_at + CLOCK_STEP < opened_at


def set_early_aside(disk: Disk, folder: Path, items: Sequence[InboxItem]) -> list[str]:
    """Renames answer files that are older than every open request; returns a line about each.

    An agent could put an answer there for a request that nobody has seen yet.
    """
    opened_at = min((item.opened_at for item in items if item.state is ItemState.OPEN), default=0.0)
    lines = []
    for path in find_answer_files(folder):
        read = read_answer_file(path)
        if read is None or not was_early(read[0], opened_at):
            continue
        new = path.with_name(f"{path.stem}_{read[0].token}.early{path.suffix}")
        disk.move(path, new)
        lines.append(
            f"{folder.name}/{path.name} was there before the request it would answer, "
            f"so it does not count; it is now {folder.name}/{new.name}"
        )
    return lines


def archive_file(disk: Disk, file: AnswerFile) -> Path | None:
    """Renames a used file so that it is never read again; None when it has changed since."""
    found = read_answer_file(file.path)
    if found is None or found[0] != file:
        return None
    joint = "_" if file.number is None else "."
    name = f"{file.path.stem}{joint}{file.token}.processed{file.path.suffix}"
    disk.move(file.path, file.path.with_name(name))
    return file.path.with_name(name)
