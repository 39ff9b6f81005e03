"""Files in `hitl/` that people have made: found, read once, archived."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from signoff.store.rundir.disk import Disk, read_plain

ANSWERS = "answers.json"
_RESPONSE = re.compile(r"([0-9]{1,15})-response\.md")


@dataclass(frozen=True)
class AnswerFile:
    """A file with answers, as it was when it was read."""

    path: Path
    token: str
    """Tells it from any other file, and from itself after a change."""
    changed_at: float
    """When it was written last, in seconds since 1970: by then, its answers were given."""

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
        changed = path.lstat().st_mtime_ns
    except OSError:
        return None
    if data is None:
        return None
    # With the time of change: a person may well give the same answer again to a later question.
    token = hashlib.sha256(b"%d\n%s" % (changed, data)).hexdigest()[:16]
    return AnswerFile(path, token, changed / 1e9), data


def archive_file(disk: Disk, file: AnswerFile) -> Path | None:
    """Renames a used file so that it is never read again; None when it has changed since."""
    found = read_answer_file(file.path)
    if found is None or found[0] != file:
        return None
    joint = "_" if file.number is None else "."
    name = f"{file.path.stem}{joint}{file.token}.processed{file.path.suffix}"
    disk.move(file.path, file.path.with_name(name))
    return file.path.with_name(name)
