"""Lists, cancels, deletes and moves runs, reads their files, and adds up what they have cost."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from signoff.app.runs.run_records import live_row, live_rows, stored_statuses
from signoff.app.settings.project import Project
from signoff.core import errors as er
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import CancelRun
from signoff.core.requests import ItemState
from signoff.documents.regular_files import read_regular
from signoff.runtime.owner import is_alive, this_process
from signoff.runtime.paths import safe_path
from signoff.runtime.run_transfer import parse_copy, read_copy, text_id
from signoff.runtime.store_port import LedgerTotal, Owner, RunId, RunRow, Store
from signoff.store.run_files import LARGEST_READ, LATEST


def list_runs(project: Project, *, status: Sequence[str] = (), limit: int = -1) -> list[RunRow]:
    """Returns runs with their current status, newest first."""
    most = limit if limit >= 0 else None
    chosen = RunFilter(tuple(map(_status, status)))
    return list(islice(_matching(project, chosen, None, most or _MANY), most))


def answered_runs(project: Project) -> set[str]:
    """Returns the waiting runs that have every answer they wait for, and were not resumed yet."""
    answered = {item.run for item in project.store.items(state=(ItemState.ANSWERED,))}
    return answered - {line.run for line in project.store.waiting()} if answered else answered


def current_row(project: Project, row: RunRow) -> RunRow:
    """Returns a run's row as it is now, also if its process died without recording that."""
    return live_row(project.store, row)


async def cancel(project: Project, name: str | None = None, why: str = "") -> tuple[str, Status]:
    """Cancels a run, whichever process drives it; returns its name and final status."""
    row = project.run(name)
    if row.status in FINAL and row.status is not Status.CANCELLED:
        how = row.status.value.replace("_", " ")
        raise er.RunEnded(f"run {row.name!r} has already ended: {how}")
    async with project.engine() as engine:
        return row.name, await engine.cancel(row.name, why or "by the user")


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        raise er.UnknownName("status", name, [status.value for status in Status]) from None


_MANY = 1_000
"""Rows to read at once, where all are wanted."""
_LOOK_AHEAD = 50
"""Rows to read at least, where some may have another status than the stored one."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs to list; empty fields match all."""

    status: Sequence[Status] = ()
    workflow: str = ""
    text: str = ""
    """A part of the run's name, its workflow or its reason, in any case."""


@dataclass(frozen=True)
class RunListPage:
    """Some runs, newest first."""

    rows: list[RunRow]
    next: str | None
    """The cursor of the following page; None on the last."""


def list_page(
    project: Project, chosen: RunFilter, *, cursor: str = "", limit: int = 50
) -> RunListPage:
    """Returns the runs after a cursor, with their current status.

    Runs that are started meanwhile appear before the first page and shift nothing.
    """
    rows = list(islice(_matching(project, chosen, _before(cursor), limit + 1), limit + 1))
    more = len(rows) > limit
    return RunListPage(rows[:limit], str(rows[limit - 1].id) if more else None)


def _before(cursor: str) -> RunId | None:
    if not cursor:
        return None
    if not cursor.isdecimal() or not cursor.isascii() or len(cursor) > 18:
        raise er.UsageError(f"{cursor!r} is not a cursor; use the one that the page before names")
    return RunId(int(cursor))


def _matching(
    project: Project, chosen: RunFilter, before: RunId | None, size: int
) -> Iterator[RunRow]:
    """Yields the runs that match by their current status.

    A run whose process died is stored as running, so rows are read by their stored status, and
    then chosen by their current one.
    """
    stored = tuple(stored_statuses(chosen.status))
    while True:
        # More than asked for, since some of them may have another status by now.
        rows = project.store.rows(
            status=stored,
            workflow=chosen.workflow,
            text=chosen.text,
            before=before,
            limit=max(size, _LOOK_AHEAD),
        )
        for row in live_rows(project.store, rows):
            if not chosen.status or row.status in chosen.status:
                yield row
        if len(rows) < max(size, _LOOK_AHEAD):
            return
        before = rows[-1].id


# The directory of a run mirrors the database. While no engine drives the run, nobody else would
# write what an answer or a cancellation has changed.

Warn = Callable[[str], None]
"""Receives warnings for the user."""


def catch_up(
    project: Project, run: str, warn: Warn = lambda _warning: None, *, repair: bool = True
) -> None:
    """Updates a run's directory to the current state and restores missing files.

    Without `repair`, a directory that shows the whole journal is left as it is: to compare all of
    its files takes a second if the run is long. The directory only mirrors the database, so a
    failure to write it is just a warning.
    """
    row = current_row(project, project.store.row(run))
    if row.status is Status.RUNNING:
        # The process that drives the run writes its directory.
        return
    try:
        directory = project.directory()
        if repair or not directory.is_current(row):
            directory.catch_up(row.name)
    except (er.SignoffError, OSError) as error:
        warn(f"the directory of run {row.name} is not up to date: {error}")


MOST_FILES = 2_000


class RunFileInfo(NamedTuple):
    """A file in a run's folder."""

    path: str
    """Seen from the run's folder, with slashes."""
    size: int


def list_files(project: Project, run: str) -> list[RunFileInfo]:
    """Returns the files of a run, by path; links and hidden files are left out."""
    catch_up(project, run, repair=False)
    folder = project.folder(run)
    return sorted(islice(_walk(folder, folder), MOST_FILES))


def read_file(project: Project, run: str, path: str) -> bytes:
    """Returns a file of a run; raises `UnknownName`, `UnsafePath` or `UnreadableFile`."""
    file = safe_path(project.folder(run), path)
    try:
        content = read_regular(file, LARGEST_READ)
    except (FileNotFoundError, NotADirectoryError):
        raise er.UnknownName(
            "file", path, [each.path for each in list_files(project, run)]
        ) from None
    except OSError as error:
        raise er.UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    if len(content) > LARGEST_READ:
        raise er.UnreadableFile(f"{path} is larger than {LARGEST_READ // 2**20} MiB")
    return content


def _walk(folder: Path, root: Path) -> Iterator[RunFileInfo]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), root)
        elif entry.is_file(follow_symlinks=False):
            path = Path(entry.path).relative_to(root).as_posix()
            yield RunFileInfo(path, entry.stat(follow_symlinks=False).st_size)


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
        raise er.UsageError(f"{text!r} is not an age; write 12h, 30d or 8w")
    return int(match[1]) * _SECONDS[match[2]]


def named_runs(project: Project, names: Sequence[str]) -> list[RunRow]:
    """Returns runs to delete by their names; raises `UsageError` if one of them is running."""
    rows = [current_row(project, project.store.row(name)) for name in dict.fromkeys(names)]
    for row in rows:
        if row.status is Status.RUNNING:
            raise er.UsageError(
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
    try:
        runs = project.store.backup(file)
        return DatabaseCopy(file, runs, file.stat().st_size)
    except FileExistsError:
        raise er.UsageError(f"{file} exists already; name a new file") from None
    except OSError as error:
        raise er.WriteFailed(f"cannot write {file}: {error.strerror or error}") from error


DAY_SECONDS = 86400.0


def spending(project: Project, days: float) -> tuple[float, list[LedgerTotal]]:
    """Returns since when, and what runs that changed in the last days have cost in all."""
    since = max(0.0, project.clock.now() - days * DAY_SECONDS)
    return since, project.store.ledger_totals(since)


# A move that is killed at any point can be started again and finishes what it began: the port of
# transfers explains why nothing is lost or doubled.

HOLD_SECONDS = 600.0
"""How long a run stays ours if this process is killed and its death cannot be seen."""

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_PASSWORD_OPTION = re.compile(r"(?<=[?&])[a-z]*password=[^&]*&?")


@dataclass(frozen=True)
class MovedRun:
    """A run that was moved."""

    run: str
    commits: int
    requests: int
    digest: str
    """Of its content, which both stores agreed on."""
    pending: tuple[int, ...] = ()
    """The new numbers of its pending requests: every store numbers its own."""


def move_runs(
    project: Project,
    target: Store,
    address: str,
    names: Iterable[str] | None,
    report: Callable[[MovedRun], None],
) -> tuple[list[MovedRun], list[str]]:
    """Moves the named runs, or all that are at rest, and reports each.

    Returns them, and the names of those that were left out because they are running.
    """
    rows = list(live_rows(project.store, project.store.rows())) if names is None else []
    running = [row.name for row in rows if row.status is Status.RUNNING]
    at_rest = [row.name for row in rows if row.status is not Status.RUNNING]
    moved = []
    for name in at_rest if names is None else dict.fromkeys(names):
        try:
            moved.append(move_run(project.store, target, name, address))
        except er.RunBusy:
            # Of all runs, one may have been started meanwhile.
            if names is not None:
                raise
            running.append(name)
        else:
            report(moved[-1])
    return moved, running


def move_run(source: Store, target: Store, name: str, address: str) -> MovedRun:
    """Moves one run; raises `RunBusy` if a process drives it, `NameTaken` if the target has one."""
    try:
        row = source.row(name)
    except er.UnknownName:
        # An earlier mover was killed after the old store gave the run up: it only has to arrive.
        if target.staged(name) is None:
            raise
        return _admit(target, name)
    if live_row(source, row).status is Status.RUNNING:
        problem = f"run {name!r} is running, so it is not moved; wait until it rests"
        raise er.RunBusy(problem, remedy=CancelRun(name))
    # Looked up before the run is taken, because a refused move must not disturb it.
    _refuse_taken(target, name)
    with _held(source, row) as fence:
        _send(source, target, source.row(name), fence, address)
    return _admit(target, name)


def public_address(address: str) -> str:
    """Returns an address without its passwords, to show it and to remember where a run went."""
    return _PASSWORD_OPTION.sub("", _PASSWORD.sub(r"\1", address)).rstrip("?&")


def _refuse_taken(target: Store, name: str) -> None:
    try:
        target.row(name)
    except er.UnknownName:
        return
    raise er.NameTaken(f"run {name!r} already exists in the other store; delete or rename one")


@contextmanager
def _held(source: Store, row: RunRow) -> Iterator[int]:
    """Takes a run, so that no other process drives it, and gives it back if it stays."""
    owner: Owner = this_process()
    fence = source.take(row.id, owner, is_alive, lease_seconds=HOLD_SECONDS)
    try:
        yield fence
    finally:
        source.leave(owner)


def _send(source: Store, target: Store, row: RunRow, fence: int, address: str) -> None:
    """Gives a run up to the other store."""
    while True:
        copy = read_copy(source, row)
        document = copy.to_text()
        target.stage(row.name, document)
        if target.staged(row.name) != document:
            raise er.StoreDamaged(f"the other store did not keep run {row.name!r} as it was sent")
        # Someone may answer a request while it is copied; then it is copied again.
        if source.retire(row.id, fence, copy.requests, public_address(address)):
            return
        if source.row(row.name).fence != fence:
            raise er.RunBusy(f"another process has taken run {row.name!r}; it was not moved")


def _admit(target: Store, name: str) -> MovedRun:
    document = target.staged(name)
    if document is None:
        raise er.UsageError(f"run {name!r} is being moved by another process")
    target.admit(name)
    sent = parse_copy(document)
    # From now on it is a run like any other there, and may continue while it is compared.
    arrived = read_copy(target, target.row(name))
    same_journal = arrived.journal[: len(sent.journal)] == sent.journal
    if not same_journal or not sent.blobs.items() <= arrived.blobs.items():
        raise er.StoreDamaged(f"run {name!r} is not in the other store as it was sent; report this")
    pending = tuple(item.id for item in arrived.items if item.state is ItemState.OPEN)
    return MovedRun(name, len(sent.journal), len(sent.items), text_id(document), pending)
