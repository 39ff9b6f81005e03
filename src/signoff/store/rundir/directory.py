"""The run directory: readable files that show what is in the journal.

The journal is the truth. A process that looks at a run for the first time goes through
all of its journal and writes what is missing or different, which repairs a directory
that lags, is damaged or is lost. While the run is active, only news is written.
Nothing in the directory is ever read back into a run, except answers. `state.json` is
written last and records how much of the journal the other files show.
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
from signoff.store.rundir.answer_files import archive_file, rename_early_files
from signoff.store.rundir.answers import FileAnswer, FileAnswers, read_answers
from signoff.store.rundir.disk import Disk, read_regular_file
from signoff.store.rundir.documents import (
    ProjectionState,
    json_bytes,
    read_projection_state,
    resolution_document,
    state_document,
)
from signoff.store.rundir.files import (
    DEFINITION,
    HIDDEN,
    HITL,
    LATEST,
    LOG,
    RESERVED_NAMES,
    RESOLUTION,
    STATE,
    THREAD,
    encode_text,
    file_path,
    run_folder,
)
from signoff.store.rundir.layout import Layout
from signoff.store.rundir.projector import DirectoryUpdate, Projector
from signoff.store.rundir.questions import question_files, read_question_files

ROWS_PER_BATCH = 200
"""How many commits' files are held in memory while a long run is rebuilt."""

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
        """`layouts` maps a notation to the file names its users know."""
        self._root = root
        self._store = store
        self._layouts = layouts if layouts is not None else {}
        self._disk = disk or Disk(root)
        self._followers: dict[str, _Follower] = {}

    def path(self, run: str) -> Path:
        """Returns a run's folder, whether it exists or not."""
        return run_folder(self._root, run)

    def catch_up(self, run: str) -> None:
        """Makes a run's directory show all of its journal; raises `WriteFailed`."""
        # Removed here and put back only if everything succeeds: after a failed write the
        # follower is ahead of the files, and the next call has to start from the journal.
        follower = self._followers.pop(run, None)
        folder = self.path(run)
        # Read the directory before the store: another process may write in between, and a
        # directory that seems to be ahead of its journal would be rebuilt for nothing.
        previous = read_projection_state(read_regular_file(folder / STATE, largest=None))
        row = self._store.row(run)
        if follower is None or previous is None or follower.definition != row.definition:
            follower = self._follow(folder, row, previous)
        if not self._write_news(folder, follower, row):
            follower = self._follow(folder, row, previous)
            self._write_news(folder, follower, row)
        if follower.projector.state.status is Status.RUNNING:
            self._followers[run] = follower

    def read_answers(self, run: str) -> FileAnswers:
        """Returns the answers that humans gave by file; the caller records them.

        A file whose answers were recorded by a process that died before archiving it is
        archived now.
        """
        items = self._store.items(run, state=_EVERY_STATE)
        early = rename_early_files(self._disk, self.path(run) / HITL, items)
        answers = read_answers(self.path(run) / HITL, items, self._store.blob)
        for file in answers.recorded_files:
            archive_file(self._disk, file)
        return replace(answers, warnings=(*early, *answers.warnings))

    def archive(self, answer: FileAnswer) -> Path | None:
        """Renames a used answer file so it is never read again; None if it changed since."""
        return archive_file(self._disk, answer.file)

    def _rename_old_folder(self, folder: Path, created_at: float) -> None:
        """Keeps the directory of an earlier run of the same name, under a new name."""
        stem = f"{folder.name}.old-{text_digest(str(created_at))[:8]}"
        names = (f"{stem}-{n}" if n else stem for n in count())
        free_name = next(name for name in names if not folder.with_name(name).exists())
        self._disk.move(folder, folder.with_name(free_name))

    def _follow(self, folder: Path, row: RunRow, previous: ProjectionState | None) -> _Follower:
        """Returns a follower at the beginning of the journal."""
        shown_head = 0
        if previous is not None and previous.run == row.name:
            if previous.created_at != row.created_at:
                self._rename_old_folder(folder, previous.created_at)
            elif previous.definition == row.definition and previous.head <= row.head:
                shown_head = previous.head
        description = json.loads(self._store.description(row.id))
        layout = self._layouts.get(description.get("notation", ""), Layout())
        phases = {step["id"]: step.get("phase", "") for step in description.get("steps", ())}
        return _Follower(Projector(row.name, phases, layout), row.definition, shown_head)

    def _write_news(self, folder: Path, follower: _Follower, row: RunRow) -> bool:
        """Writes what the journal has added; False if a log has lost lines and needs a rebuild."""
        projector = follower.projector
        first = projector.head == 0
        rows = self._store.journal(row.id, projector.head)
        thread, log = self._write_files(folder, follower, rows)
        inbox = self._write_questions(folder, follower)
        if not follower.shown_head:
            self._write_definition(folder, row, projector.layout)
            self._update_latest_link()
        if first:
            self._put_if_changed(folder / THREAD, thread)
            self._put_if_changed(folder / LOG, log, durable=False)
        elif not (
            self._disk.extend(folder / THREAD, follower.thread_bytes, thread)
            and self._disk.extend(folder / LOG, follower.log_bytes, log, durable=False)
        ):
            return False
        follower.thread_bytes += len(thread)
        follower.log_bytes += len(log)
        self._write_resolution(folder, projector)
        follower.shown_head = projector.head
        previous = ProjectionState(row.name, row.created_at, follower.definition, projector.head)
        document = state_document(projector.state, previous, inbox, projector.layout)
        self._put_if_changed(folder / STATE, json_bytes(document))
        return True

    def _write_files(
        self, folder: Path, follower: _Follower, rows: Sequence[JournalRow]
    ) -> tuple[bytes, bytes]:
        """Writes the files of commits and returns the bytes they add to both logs."""
        thread, log = list[bytes](), list[bytes]()
        for start in range(0, len(rows), ROWS_PER_BATCH):
            old, new = DirectoryUpdate(), DirectoryUpdate()
            for row in rows[start : start + ROWS_PER_BATCH]:
                events = [ev.from_json(e) for e in decode(row.events, self._store.blob)]
                update = follower.projector.apply_commit(row.seq, events)
                _merge(old if row.seq <= follower.shown_head else new, update)
                thread += update.thread
                log += update.log
            self._repair(folder, old)
            self._write_update(folder, new, follower.projector.written)
        return b"".join(thread), b"".join(log)

    def _repair(self, folder: Path, update: DirectoryUpdate) -> None:
        """Restores files that a power cut emptied or a user deleted, judging by size alone."""
        for path, data in update.files.items():
            file = file_path(folder, path)
            if _size(file) != len(data):
                self._disk.put(file, data, durable=False)
        for path, text in update.writes.items():
            file = file_path(folder, path)
            if not file.exists():
                self._disk.put(file, encode_text(text))

    def _put_if_changed(self, file: Path, data: bytes, *, durable: bool = True) -> None:
        """Writes a file unless it already has this content, so its modification time stays."""
        if read_regular_file(file, largest=None) != data:
            self._disk.put(file, data, durable=durable)

    def _write_update(
        self, folder: Path, update: DirectoryUpdate, written: Mapping[str, set[str]]
    ) -> None:
        for path, data in update.files.items():
            # Not synced: thousands of syncs would slow down the journal, and a file that is
            # lost in a power cut is written again from the journal.
            self._disk.put(file_path(folder, path), data, durable=False)
        for path, text in update.writes.items():
            file = file_path(folder, path)
            data = encode_text(text)
            if _may_overwrite(file, data, written[path]):
                self._disk.put(file, data)
        for path, text in update.approved.items():
            # Elsewhere a user's edits win, but a completed run must show what was approved.
            self._restore(file_path(folder, path), encode_text(text))

    def _restore(self, path: Path, data: bytes) -> None:
        if read_regular_file(path, largest=None) != data:
            _log.warning("%s was changed or removed after it was approved; restoring it", path)
            self._disk.put(path, data)

    def _write_questions(self, folder: Path, follower: _Follower) -> tuple[int, ...]:
        """Writes the open requests and returns their numbers."""
        projector = follower.projector
        waiting = projector.awaits_human or projector.state.status is Status.WAITING
        if not waiting and follower.questions == {}:
            return ()
        items = self._store.items(projector.run)
        for line in rename_early_files(self._disk, folder / HITL, items):
            _log.warning("run %s: %s", projector.run, line)
        files = question_files(items, projector.state.iteration, self._store.blob)
        existing = read_question_files(folder) if follower.questions is None else follower.questions
        for name in existing.keys() - files.keys():
            self._disk.remove(folder / HITL / name)
        for name, data in files.items():
            if existing.get(name) != data:
                self._disk.put(folder / HITL / name, data)
        follower.questions = files
        return tuple(item.id for item in items)

    def _write_resolution(self, folder: Path, projector: Projector) -> None:
        resolution = resolution_document(projector.state, projector.layout)
        if resolution is not None:
            self._put_if_changed(folder / RESOLUTION, json_bytes(resolution))
        else:
            self._disk.remove(folder / RESOLUTION)

    def _write_definition(self, folder: Path, row: RunRow, layout: Layout) -> None:
        description = json.loads(self._store.description(row.id))
        self._disk.put(folder / DEFINITION, json_bytes(description), durable=False)
        for path, data in layout.definition(description).items():
            file = safe_path(folder, path, reserved=RESERVED_NAMES, hidden=HIDDEN)
            self._disk.put(file, data, durable=False)

    def _update_latest_link(self) -> None:
        newest = self._store.rows(limit=1)
        if newest:
            self._disk.point_link(self._root / LATEST, newest[0].name)


@dataclass
class _Follower:
    """A run that this process follows, and what its directory contains."""

    projector: Projector
    definition: str
    shown_head: int
    """The last commit that the directory shows, whichever process wrote it."""
    thread_bytes: int = 0
    log_bytes: int = 0
    questions: dict[str, bytes] | None = None
    """The questions in `hitl/`; None before this process has read them."""


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return -1


def _merge(update: DirectoryUpdate, more: DirectoryUpdate) -> None:
    update.files |= more.files
    update.writes |= more.writes
    update.approved |= more.approved


def _may_overwrite(path: Path, data: bytes, own_digests: set[str]) -> bool:
    """Whether a file is missing or an earlier text of the workflow; a user's edits are kept."""
    current = read_regular_file(path, largest=None)
    if current is None:
        return not path.exists()
    return current != data and hashlib.sha256(current).hexdigest() in own_digests
