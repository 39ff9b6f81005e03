"""The run directory: readable files that show what the journal says.

The journal is the truth. A process that looks at a run for the first time goes through
all of its journal and writes what is missing or differs, so a directory that lags, is
damaged or is lost is made right; while the run is at work, only what is new is written.
Nothing in it is ever read back into a run, except answers. `state.json` is written last
and says how much of the journal the rest shows.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.runtime.paths import safe_path
from signoff.runtime.store_port import JournalRow, RunRow, Store
from signoff.store.rundir.answer_files import archive_file, set_early_aside
from signoff.store.rundir.answers import FileAnswer, FileAnswers, read_answers
from signoff.store.rundir.disk import Disk, read_plain
from signoff.store.rundir.documents import (
    Claim,
    as_bytes,
    read_claim,
    resolution_document,
    state_document,
)
from signoff.store.rundir.files import (
    DEFINITION,
    ENGINES_OWN,
    HIDDEN,
    HITL,
    LATEST,
    LOG,
    RESOLUTION,
    STATE,
    THREAD,
    as_written,
    file_of,
    folder_of,
)
from signoff.store.rundir.layout import Layout
from signoff.store.rundir.projector import Page, Projector
from signoff.store.rundir.questions import question_files, questions_shown

ROWS_AT_ONCE = 200
"""Commits whose files are held in memory at once while a long run is rebuilt."""

_log = logging.getLogger(__name__)
_EVERY_STATE = tuple(ItemState)


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
        # Taken out, and put back only when everything went well: after a failure the
        # follower is ahead of the files.
        follower = self._followers.pop(run, None)
        folder = self.path(run)
        # The directory is looked at before the store, so it can only be behind, not ahead.
        claim = read_claim(read_plain(folder / STATE, largest=None))
        row = self._store.row(run)
        if follower is None or claim is None or follower.definition != row.definition:
            follower = self._follow(folder, row, claim)
        if not self._show(folder, follower, row):
            follower = self._follow(folder, row, claim)
            self._show(folder, follower, row)
        if follower.projector.state.status is Status.RUNNING:
            self._followers[run] = follower

    def take_answers(self, run: str) -> FileAnswers:
        """Returns what people have answered by file; recording it is the caller's work.

        A file whose answers were recorded by a process that died before it could archive
        it is archived now.
        """
        items = self._store.items(run, state=_EVERY_STATE)
        early = set_early_aside(self._disk, self.path(run) / HITL, items)
        found = read_answers(self.path(run) / HITL, items, self._store.blob)
        for spent in found.spent:
            archive_file(self._disk, spent)
        return replace(found, warnings=(*early, *found.warnings))

    def archive(self, answer: FileAnswer) -> Path | None:
        """Puts a used answer file aside for good; None when somebody has changed it since."""
        return archive_file(self._disk, answer.file)

    def _put_aside(self, folder: Path, created_at: float) -> None:
        """Keeps the directory of an earlier run that had the same name, under another one."""
        stem = f"{folder.name}.old-{text_digest(str(created_at))[:8]}"
        names = (f"{stem}-{n}" if n else stem for n in count())
        free = next(name for name in names if not folder.with_name(name).exists())
        self._disk.move(folder, folder.with_name(free))

    def _follow(self, folder: Path, row: RunRow, claim: Claim | None) -> _Follower:
        """Starts at the beginning of the journal."""
        shown = 0
        if claim is not None and claim.run == row.name:
            if claim.created_at != row.created_at:
                self._put_aside(folder, claim.created_at)
            elif claim.definition == row.definition and claim.head <= row.head:
                shown = claim.head
        description = json.loads(self._store.description(row.id))
        layout = self._layouts.get(description.get("notation", ""), Layout())
        phases = {step["id"]: step.get("phase", "") for step in description.get("steps", ())}
        return _Follower(Projector(row.name, phases, layout), row.definition, shown)

    def _show(self, folder: Path, follower: _Follower, row: RunRow) -> bool:
        """Writes what the follower has not seen yet; False when a log has lost lines."""
        projector = follower.projector
        first = projector.head == 0
        rows = self._store.journal(row.id, projector.head)
        thread, log = self._show_files(folder, follower, rows)
        inbox = self._show_questions(folder, follower)
        if not follower.shown:
            self._write_definition(folder, row, projector.layout)
            self._point_to_newest()
        if first:
            self._put(folder / THREAD, thread)
            self._put(folder / LOG, log, lasting=False)
        elif not (
            self._disk.extend(folder / THREAD, follower.thread_bytes, thread)
            and self._disk.extend(folder / LOG, follower.log_bytes, log, lasting=False)
        ):
            return False
        follower.thread_bytes += len(thread)
        follower.log_bytes += len(log)
        self._show_end(folder, projector)
        follower.shown = projector.head
        claim = Claim(row.name, row.created_at, follower.definition, projector.head)
        document = state_document(projector.state, claim, inbox, projector.layout)
        self._put(folder / STATE, as_bytes(document))
        return True

    def _show_files(
        self, folder: Path, follower: _Follower, rows: Sequence[JournalRow]
    ) -> tuple[bytes, bytes]:
        """Writes the files of commits and returns the lines they add to both logs."""
        thread, log = list[bytes](), list[bytes]()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            known, new = Page(), Page()
            for row in rows[start : start + ROWS_AT_ONCE]:
                events = [ev.from_json(e) for e in decode(row.events, self._store.blob)]
                page = follower.projector.feed(row.seq, events)
                _merge(known if row.seq <= follower.shown else new, page)
                thread += page.thread
                log += page.log
            self._repair(folder, known)
            self._write(folder, new, follower.projector.written)
        return b"".join(thread), b"".join(log)

    def _repair(self, folder: Path, page: Page) -> None:
        """Restores what a power cut emptied or someone deleted; a look at the size is enough."""
        for path, data in page.files.items():
            file = file_of(folder, path)
            if _size(file) != len(data):
                self._disk.put(file, data, lasting=False)
        for path, text in page.writes.items():
            file = file_of(folder, path)
            if not file.exists():
                self._disk.put(file, as_written(text))

    def _put(self, file: Path, data: bytes, *, lasting: bool = True) -> None:
        """Writes a file unless it holds just that, so files at rest stay as they are."""
        if read_plain(file, largest=None) != data:
            self._disk.put(file, data, lasting=lasting)

    def _write(self, folder: Path, page: Page, written: Mapping[str, set[str]]) -> None:
        for path, data in page.files.items():
            # Not forced to the disk: thousands of them would keep it from the journal, and
            # one that is lost in a power cut is written again from there.
            self._disk.put(file_of(folder, path), data, lasting=False)
        for path, text in page.writes.items():
            file = file_of(folder, path)
            data = as_written(text)
            if _wants(file, data, written[path]):
                self._disk.put(file, data)
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
        if not waits and follower.questions == {}:
            return ()
        items = self._store.items(projector.run)
        for line in set_early_aside(self._disk, folder / HITL, items):
            _log.warning("run %s: %s", projector.run, line)
        files = question_files(items, projector.state.iteration, self._store.blob)
        before = questions_shown(folder) if follower.questions is None else follower.questions
        for name in before.keys() - files.keys():
            self._disk.remove(folder / HITL / name)
        for name, data in files.items():
            if before.get(name) != data:
                self._disk.put(folder / HITL / name, data)
        follower.questions = files
        return tuple(item.id for item in items)

    def _show_end(self, folder: Path, projector: Projector) -> None:
        resolution = resolution_document(projector.state, projector.layout)
        if resolution is not None:
            self._put(folder / RESOLUTION, as_bytes(resolution))
        else:
            self._disk.remove(folder / RESOLUTION)

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


@dataclass
class _Follower:
    """A run being followed by this process, and what its directory holds."""

    projector: Projector
    definition: str
    shown: int
    """How many commits the directory has shown, whichever process wrote it."""
    thread_bytes: int = 0
    log_bytes: int = 0
    questions: dict[str, bytes] | None = None
    """The questions in `hitl/`; None before this process has looked."""


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return -1


def _merge(page: Page, more: Page) -> None:
    page.files |= more.files
    page.writes |= more.writes
    page.approved |= more.approved


def _wants(place: Path, data: bytes, ours: set[str]) -> bool:
    """Whether a file is missing or as the workflow left it earlier; a person's edits are kept."""
    found = read_plain(place, largest=None)
    if found is None:
        return not place.exists()
    return found != data and hashlib.sha256(found).hexdigest() in ours
