"""Deletes runs that are no longer needed, and backs up the database."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.core.outcome import FINAL, Status
from signoff.errors import UsageError, WriteFailed
from signoff.remedies import CancelRun
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunRow
from signoff.store.rundir.files import LATEST

_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,5})([hdw])")


@dataclass(frozen=True)
class DatabaseCopy:
    """A backup of the database that was checked."""

    file: Path
    runs: int
    size: int
    """In bytes."""


def age_in_seconds(text: str) -> int:
    """Returns how long an age such as `12h`, `30d` or `8w` is; raises `UsageError`."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age; write 12h, 30d or 8w")
    return int(match[1]) * _SECONDS[match[2]]


def named_runs(project: Project, names: Sequence[str]) -> list[RunRow]:
    """Returns runs to delete by their names; raises `UsageError` if one of them is running."""
    rows = [current_row(project, project.store.row(name)) for name in dict.fromkeys(names)]
    for row in rows:
        if row.status is Status.RUNNING:
            raise UsageError(
                f"run {row.name!r} is running, so it is not deleted", remedy=CancelRun(row.name)
            )
    return rows


def ended_runs(project: Project, age: str) -> list[RunRow]:
    """Returns the runs that ended longer ago than an age; those that can be resumed stay."""
    before = project.clock.now() - age_in_seconds(age)
    rows = project.store.rows(status=sorted(FINAL))
    return [row for row in rows if row.updated_at < before]


def delete_runs(project: Project, rows: Sequence[RunRow]) -> None:
    """Deletes runs with their files; raises `RunBusy` if one was resumed in the meantime."""
    for row in rows:
        project.store.delete(row.id, is_alive)
        folder = project.folder(row.name)
        # The database goes first: files without a run are only left over, but a run without
        # files would write them again.
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    latest = project.home.runs / LATEST
    if latest.is_symlink() and not latest.exists():
        latest.unlink(missing_ok=True)


def back_up(project: Project, file: Path) -> DatabaseCopy:
    """Copies the database to a new file while runs may be using it; raises `UsageError`."""
    if file.exists():
        raise UsageError(f"{file} exists already; name a new file")
    try:
        runs = project.store.backup(file)
        return DatabaseCopy(file, runs, file.stat().st_size)
    except FileExistsError:
        raise UsageError(f"{file} exists already; name a new file") from None
    except OSError as error:
        raise WriteFailed(f"cannot write {file}: {error.strerror or error}") from error
