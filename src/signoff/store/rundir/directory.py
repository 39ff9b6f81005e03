"""The run directory: readable files that show what the journal says.

The journal is the truth. A directory that lags is continued, one that is damaged or
lost is rebuilt, and nothing in it is ever read back into a run, except answers.
`state.json` is written last and says how much of the journal the rest shows.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.runtime.paths import safe_path
from signoff.runtime.store_port import JournalRow, RunRow, Store
from signoff.store.rundir.answer_files import archive_file
from signoff.store.rundir.answers import FileAnswer, FileAnswers, read_answers
from signoff.store.rundir.disk import Disk, read_plain
from signoff.store.rundir.documents import (
    VERSION,
    Seen,
    as_bytes,
    read_seen,
    resolution_document,
    state_document,
)
from signoff.store.rundir.files import as_written, file_of
from signoff.store.rundir.layout import Layout, PlainLayout
from signoff.store.rundir.place import (
    DEFINITION,
    ENGINES_OWN,
    HIDDEN,
    HITL,
    LATEST,
    LOG,
    RESOLUTION,
    STATE,
    THREAD,
    folder_of,
)
from signoff.store.rundir.projector import Page, Projector
from signoff.store.rundir.questions import question_files, questions_shown

ROWS_AT_ONCE = 200
"""Commits whose files are held in memory at once while a long run is rebuilt."""

_log = logging.getLogger(__name__)
_NOTHING = Seen(VERSION, "", 0.0, "", 0, 0, 0, ())
_EVERY_STATE = ("open", "answered", "used", "withdrawn")


class RunDirectory:
    """Shows runs as files below one root; safe to use by several processes at once."""

    def __init__(
        self,
        root: Path,
        store: Store,
        *,
        layouts: Mapping[str, Layout] | None = None,
        disk: Disk | None = None,
    ) -> None:
        """`layouts` names files as a notation's users know them, by notation."""
        self._root = root
        self._store = store
        self._layouts = layouts if layouts is not None else {}
        self._disk = disk or Disk(root)
        self._followers: dict[str, _Follower] = {}

    def path(self, run: str) -> Path:
        """Returns a run's folder, whether it is there or not."""
        return folder_of(self._root, run)

    def catch_up(self, run: str) -> None:
        """Makes a run's directory show all of its journal; raises `WriteFailed`."""
        try:
            self._catch_up(run)
        except _Lost:
            self._catch_up(run, rebuild=True)

    def take_answers(self, run: str) -> FileAnswers:
        """Returns what people have answered by file; recording it is the caller's work.

        A file whose answers were recorded by a process that died before it could archive
        it is archived now.
        """
        items = self._store.items(run, state=_EVERY_STATE)
        found = read_answers(self.path(run) / HITL, items, self._store.blob)
        for spent in found.spent:
            archive_file(self._disk, spent)
        return found

    def archive(self, answer: FileAnswer) -> Path | None:
        """Puts a used answer file aside for good; None when somebody has changed it since."""
        return archive_file(self._disk, answer.file)

    def _catch_up(self, run: str, *, rebuild: bool = False) -> None:
        # Taken out, and put back only when everything went well: after a failure the
        # follower is ahead of the files.
        follower = self._followers.pop(run, None)
        folder = self.path(run)
        # The directory is looked at before the store, so it can only be behind, not ahead.
        seen = None if rebuild else _look(folder, follower)
        row = self._store.row(run)
        seen = self._trusted(folder, row, seen)
        if follower is None or not follower.fits(row, seen):
            follower = self._follow(row)
        rows = self._store.journal(row.id, follower.projector.head)
        lines = self._show_files(folder, follower, rows, seen)
        inbox = self._show_questions(folder, follower)
        if not seen.head:
            self._write_definition(folder, row, follower.projector.layout)
            self._point_to_newest()
        if (follower.projector.head, inbox) != (seen.head, seen.inbox):
            self._extend_logs(folder, follower, lines)
            self._show_end(folder, follower)
            self._write_state(folder, follower, follower.claim(row, inbox))
        if follower.projector.state.status is Status.RUNNING:
            self._followers[run] = follower

    def _trusted(self, folder: Path, row: RunRow, seen: Seen | None) -> Seen:
        """Returns what the directory shows of this very run; nothing unless all of it fits."""
        if seen is None or seen.run != row.name:
            return _NOTHING
        if seen.created_at != row.created_at:
            self._put_aside(folder, seen)
            return _NOTHING
        if (seen.version, seen.definition) != (VERSION, row.definition) or seen.head > row.head:
            return _NOTHING
        logs = ((THREAD, seen.thread_bytes), (LOG, seen.log_bytes))
        whole = all(_size(folder / name) >= size for name, size in logs)
        return seen if whole else _NOTHING

    def _put_aside(self, folder: Path, seen: Seen) -> None:
        """Keeps the directory of an earlier run that had the same name, under another one."""
        stem = f"{folder.name}.old-{text_digest(str(seen.created_at))[:8]}"
        names = (f"{stem}-{n}" if n else stem for n in count())
        free = next(name for name in names if not folder.with_name(name).exists())
        self._disk.move(folder, folder.with_name(free))

    def _follow(self, row: RunRow) -> _Follower:
        description = json.loads(self._store.description(row.id))
        layout = self._layouts.get(description.get("notation", ""), PlainLayout())
        phases = {step["id"]: step.get("phase", "") for step in description.get("steps", ())}
        return _Follower(Projector(row.name, phases, layout), row.definition)

    def _show_files(
        self, folder: Path, follower: _Follower, rows: Sequence[JournalRow], seen: Seen
    ) -> _Lines:
        """Writes the files of new commits, mends those of known ones, and returns new log lines."""
        fresh = _Lines()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            known, new = Page(), Page()
            for row in rows[start : start + ROWS_AT_ONCE]:
                events = [ev.from_json(e) for e in decode(row.events, self._store.blob)]
                page = known if row.seq <= seen.head else new
                _merge(page, follower.projector.feed(row.seq, events))
            follower.count(known)
            fresh.take(new)
            self._mend(folder, known)
            self._write(folder, new, follower.projector.written)
        if seen.head and (follower.thread_bytes, follower.log_bytes) != seen.sizes:
            raise _Lost
        return fresh

    def _mend(self, folder: Path, page: Page) -> None:
        """Restores what a power cut emptied or somebody deleted; a look at the size is enough."""
        for path, data in page.files.items():
            place = file_of(folder, path)
            if _size(place) != len(data):
                self._disk.put(place, data, lasting=False)
        for path, text in page.writes.items():
            place = file_of(folder, path)
            if not place.exists():
                self._disk.put(place, as_written(text))

    def _write(self, folder: Path, page: Page, written: Mapping[str, set[str]]) -> None:
        for path, data in page.files.items():
            # Not forced to the disk: thousands of them would keep it from the journal, and
            # one that is lost in a power cut is mended from there.
            self._disk.put(file_of(folder, path), data, lasting=False)
        for path, text in page.writes.items():
            place = file_of(folder, path)
            data = as_written(text)
            if _wants(place, data, written[path]):
                self._disk.put(place, data)
        for path, text in page.approved.items():
            # Edits are kept elsewhere, but a run never ends with another file than was approved.
            self._restore(file_of(folder, path), as_written(text))

    def _restore(self, place: Path, data: bytes) -> None:
        if read_plain(place, largest=None) != data:
            _log.warning("%s was changed or removed after it was approved; it is put back", place)
            self._disk.put(place, data)

    def _show_questions(self, folder: Path, follower: _Follower) -> tuple[int, ...]:
        """Shows what is asked at the moment and returns the numbers of the requests."""
        projector = follower.projector
        waits = projector.asks_people or projector.state.status is Status.WAITING
        if not waits and follower.shown == {}:
            return ()
        items = self._store.items(projector.run)
        files = question_files(items, projector.state.iteration, self._store.blob)
        before = questions_shown(folder) if follower.shown is None else follower.shown
        for name in before.keys() - files.keys():
            self._disk.remove(folder / HITL / name)
        for name, data in files.items():
            if before.get(name) != data:
                self._disk.put(folder / HITL / name, data)
        follower.shown = files
        return tuple(item.id for item in items)

    def _extend_logs(self, folder: Path, follower: _Follower, lines: _Lines) -> None:
        thread, log = b"".join(lines.thread), b"".join(lines.log)
        disk = self._disk
        if not disk.extend(folder / THREAD, follower.thread_bytes, thread):
            raise _Lost
        if not disk.extend(folder / LOG, follower.log_bytes, log, lasting=False):
            raise _Lost
        follower.thread_bytes += len(thread)
        follower.log_bytes += len(log)

    def _show_end(self, folder: Path, follower: _Follower) -> None:
        resolution = resolution_document(follower.projector.state, follower.projector.layout)
        if resolution is not None:
            self._disk.put(folder / RESOLUTION, as_bytes(resolution))
        else:
            self._disk.remove(folder / RESOLUTION)

    def _write_state(self, folder: Path, follower: _Follower, claim: Seen) -> None:
        document = state_document(follower.projector.state, claim, follower.projector.layout)
        self._disk.put(folder / STATE, as_bytes(document))
        follower.seen, follower.signature = claim, _signature(folder)

    def _write_definition(self, folder: Path, row: RunRow, layout: Layout) -> None:
        description = json.loads(self._store.description(row.id))
        self._disk.put(folder / DEFINITION, as_bytes(description), lasting=False)
        for path, data in layout.definition(description).items():
            place = safe_path(folder, path, reserved=ENGINES_OWN, hidden=HIDDEN)
            self._disk.put(place, data, lasting=False)

    def _point_to_newest(self) -> None:
        newest = self._store.rows(limit=1)
        if newest:
            self._disk.point(self._root / LATEST, newest[0].name)


class _Lost(Exception):  # noqa: N818  # a signal between two methods, never seen outside
    """A log does not hold what `state.json` says it does."""


Signature = tuple[int, int, int]
"""Tells one `state.json` from the next without reading it."""


@dataclass
class _Lines:
    """Log lines not yet written."""

    thread: list[bytes] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)

    def take(self, page: Page) -> None:
        self.thread += page.thread
        self.log += page.log


@dataclass
class _Follower:
    """A run being followed, and what its directory is known to hold."""

    projector: Projector
    definition: str
    thread_bytes: int = 0
    log_bytes: int = 0
    shown: dict[str, bytes] | None = None
    """The questions in `hitl/`; None when nobody has looked."""
    seen: Seen | None = None
    signature: Signature | None = None

    def fits(self, row: RunRow, seen: Seen) -> bool:
        """Whether it can go on from where the directory is."""
        return self.definition == row.definition and self.projector.head <= seen.head

    def count(self, page: Page) -> None:
        """Takes lines that are in the logs already."""
        self.thread_bytes += sum(map(len, page.thread))
        self.log_bytes += sum(map(len, page.log))

    def claim(self, row: RunRow, inbox: tuple[int, ...]) -> Seen:
        """Returns what the directory shows now that everything else is written."""
        return Seen(
            version=VERSION,
            run=row.name,
            created_at=row.created_at,
            definition=self.definition,
            head=self.projector.head,
            thread_bytes=self.thread_bytes,
            log_bytes=self.log_bytes,
            inbox=inbox,
        )


def _look(folder: Path, follower: _Follower | None) -> Seen | None:
    signature = _signature(folder)
    if follower is not None and signature is not None and follower.signature == signature:
        return follower.seen
    return read_seen(read_plain(folder / STATE, largest=None))


def _signature(folder: Path) -> Signature | None:
    try:
        found = (folder / STATE).lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return -1


def _merge(page: Page, more: Page) -> None:
    page.files |= more.files
    page.writes |= more.writes
    page.approved |= more.approved
    page.thread += more.thread
    page.log += more.log


def _wants(place: Path, data: bytes, ours: set[str]) -> bool:
    """Whether a file is missing or as the workflow left it earlier; a person's edits are kept."""
    found = read_plain(place, largest=None)
    if found is None:
        return not place.exists()
    return found != data and hashlib.sha256(found).hexdigest() in ours
