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
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.run_state import RunState
from signoff.runtime.paths import safe_path
from signoff.runtime.store_port import JournalRow, RunRow, Store
from signoff.store.rundir import files
from signoff.store.rundir.answers import (
    FileAnswer,
    FileAnswers,
    archive_file,
    read_answers,
    rename_early_files,
)
from signoff.store.rundir.disk import Disk, read_regular_file
from signoff.store.rundir.documents import (
    ProjectionState,
    json_bytes,
    read_projection_state,
    resolution_document,
    state_document,
)
from signoff.store.rundir.layout import Layout, ShownRun
from signoff.store.rundir.projector import DirectoryUpdate, Projector
from signoff.store.rundir.questions import decode_form, find_question_files, question_files

ROWS_PER_BATCH = 200
"""How many commits' files are held in memory while a long run is rebuilt."""

_log = logging.getLogger(__name__)


NextSteps = Callable[[RunRow, RunState], Sequence[str]]
"""Returns what a user can do about a run that has stopped, in the words of a surface."""


class RunDirectory:
    """Shows runs as files below one root; safe to use by several processes at once."""

    def __init__(
        self,
        root: Path,
        store: Store,
        *,
        layout_of: Callable[[str], Layout] = lambda _notation: Layout(),
        next_steps: NextSteps = lambda _row, _state: (),
        disk: Disk | None = None,
    ) -> None:
        """`layout_of` returns the file names that the users of a notation know."""
        self._root = root
        self._store = store
        self._layout_of = layout_of
        self._next_steps = next_steps
        self._disk = disk or Disk(root)
        self._followers: dict[str, _Follower] = {}

    def catch_up(self, run: str) -> None:
        """Makes a run's directory show all of its journal; raises `WriteFailed`."""
        # Removed here and put back only if everything succeeds: after a failed write the
        # follower is ahead of the files, and the next call has to start from the journal.
        follower = self._followers.pop(run, None)
        folder = files.run_folder(self._root, run)
        # Read the directory before the store: another process may write in between, and a
        # directory that seems to be ahead of its journal would be rebuilt for nothing.
        previous = read_projection_state(read_regular_file(folder / files.STATE, largest=None))
        row = self._store.row(run)
        if follower is None or previous is None or follower.definition != row.definition:
            follower = self._follow(folder, row, previous)
        if not self._write_news(folder, follower, row):
            follower = self._follow(folder, row, previous)
            self._write_news(folder, follower, row)
        if follower.projector.state.status is Status.RUNNING:
            self._followers[run] = follower

    def is_current(self, row: RunRow) -> bool:
        """Tells whether the directory of a run shows all of its journal, as far as it says so."""
        folder = files.run_folder(self._root, row.name)
        shown = read_projection_state(read_regular_file(folder / files.STATE, largest=None))
        if shown is None or not (folder / files.LOG).is_file():
            return False
        return shown == (row.name, row.created_at, row.definition, row.head)

    def read_answers(self, run: str) -> FileAnswers:
        """Returns the answers that humans gave by file; the caller records them.

        A file whose answers were recorded by a process that died before archiving it is
        archived now.
        """
        hitl = files.run_folder(self._root, run) / files.HITL
        items = self._store.items(run, state=tuple(ItemState))
        early = rename_early_files(self._disk, hitl, items)
        answers = read_answers(hitl, items, self._store.blob)
        for file in answers.recorded_files:
            archive_file(self._disk, file)
        return replace(answers, warnings=(*early, *answers.warnings))

    def archive(self, answer: FileAnswer) -> Path | None:
        """Renames a used answer file so it is never read again; None if it changed since."""
        return archive_file(self._disk, answer.file)

    def _follow(self, folder: Path, row: RunRow, previous: ProjectionState | None) -> _Follower:
        """Returns a follower at the beginning of the journal."""
        shown_head = 0
        if previous is not None and previous.run == row.name:
            if previous.created_at != row.created_at:
                # An earlier run had the same name; its files are kept under another one.
                aside = f"{folder.name}.old-{secrets.token_hex(4)}"
                self._disk.move(folder, folder.with_name(aside))
            elif previous.definition == row.definition and previous.head <= row.head:
                shown_head = previous.head
        description = json.loads(self._store.description(row.id))
        layout = self._layout_of(description.get("notation", ""))
        projector = Projector(row.name, description, layout, partial(self._next_steps, row))
        return _Follower(projector, row.definition, description, shown_head)

    def _write_news(self, folder: Path, follower: _Follower, row: RunRow) -> bool:
        """Writes what the journal has added; False if a log has lost lines and needs a rebuild."""
        projector = follower.projector
        update = DirectoryUpdate()
        self._apply(folder, projector, self._store.journal(row.id, projector.head), update)
        self._write_workflow_files(folder, follower, update.writes)
        inbox = self._write_questions(folder, projector)
        if not follower.shown_head:
            self._write_definition(folder, follower)
            self._update_latest_link()
        for name, lines in ((files.THREAD, update.thread), (files.LOG, update.log)):
            if not self._extend_log(folder, name, b"".join(lines), follower):
                return False
        self._write_resolution(folder, projector)
        follower.shown_head = projector.head
        projection = ProjectionState(row.name, row.created_at, follower.definition, projector.head)
        shown = ShownRun(projector.state, projector.description, tuple(inbox.values()))
        document = state_document(shown, projection, tuple(inbox), projector.layout)
        self._put_if_changed(folder / files.STATE, json_bytes(document))
        return True

    def _apply(
        self,
        folder: Path,
        projector: Projector,
        rows: Sequence[JournalRow],
        update: DirectoryUpdate,
    ) -> None:
        """Applies commits, writes their views and collects everything else in `update`."""
        for number, row in enumerate(rows, start=1):
            events = [ev.from_json(each) for each in decode(row.events, self._store.blob)]
            projector.apply_commit(row.seq, events, update)
            if number % ROWS_PER_BATCH == 0 or number == len(rows):
                for path, data in update.files.items():
                    # Not synced: thousands of syncs would slow down the journal, and a file that
                    # is lost in a power cut is written again from the journal.
                    self._put_if_changed(files.file_path(folder, path), data, durable=False)
                update.files.clear()

    def _write_workflow_files(
        self, folder: Path, follower: _Follower, writes: Mapping[str, str | None]
    ) -> None:
        projector = follower.projector
        for path, text in writes.items():
            file = files.file_path(folder, path)
            data = None if text is None else files.encode_text(text)
            own_digests = None if path in projector.reports else projector.written[path]
            if not _may_replace(file, data, own_digests):
                continue
            if data is None:
                self._disk.remove(file)
            else:
                self._disk.put(file, data)
        completed = projector.state.status is Status.COMPLETED
        if completed and projector.head > follower.shown_head:
            # Elsewhere a user's edits win, but a completed run must show what was approved.
            for path, text in projector.approved.items():
                file = files.file_path(folder, path)
                if self._put_if_changed(file, files.encode_text(text)):
                    _log.warning("%s was changed or removed after its approval; restored", file)

    def _extend_log(self, folder: Path, name: str, data: bytes, follower: _Follower) -> bool:
        """Adds lines to a log; the first time, all of it is compared with the journal.

        So a log need not be synced: what a power cut takes is written again.
        """
        size = follower.log_sizes.get(name)
        follower.log_sizes[name] = (size or 0) + len(data)
        if size is None:
            self._put_if_changed(folder / name, data, durable=False)
            return True
        return self._disk.extend(folder / name, size, data)

    def _put_if_changed(self, file: Path, data: bytes, *, durable: bool = True) -> bool:
        """Writes a file unless it already has this content, so its modification time stays."""
        changed = read_regular_file(file, largest=None) != data
        if changed:
            self._disk.put(file, data, durable=durable)
        return changed

    def _write_questions(self, folder: Path, projector: Projector) -> dict[int, dict[str, Any]]:
        """Writes the open requests and returns their forms, by number."""
        hitl = safe_path(folder, files.HITL)
        items = self._store.items(projector.run)
        for warning in rename_early_files(self._disk, hitl, items):
            _log.warning("run %s: %s", projector.run, warning)
        forms = {item.id: decode_form(item, self._store.blob) for item in items}
        questions = question_files(items, forms, projector.state.iteration)
        for name in find_question_files(hitl) - questions.keys():
            self._disk.remove(hitl / name)
        for name, data in questions.items():
            self._put_if_changed(hitl / name, data)
        return forms

    def _write_resolution(self, folder: Path, projector: Projector) -> None:
        resolution = resolution_document(projector.state, projector.layout)
        if resolution is not None:
            self._put_if_changed(folder / files.RESOLUTION, json_bytes(resolution))
        else:
            self._disk.remove(folder / files.RESOLUTION)

    def _write_definition(self, folder: Path, follower: _Follower) -> None:
        description = follower.description
        own = follower.projector.layout.definition(description)
        for path, data in own.items():
            file = safe_path(folder, path, reserved=files.RESERVED_NAMES, hidden=files.HIDDEN)
            self._disk.put(file, data, durable=False)
        self._disk.put(folder / files.DEFINITION, json_bytes(description), durable=False)

    def _update_latest_link(self) -> None:
        newest = self._store.rows(limit=1)
        if newest:
            self._disk.point_link(self._root / files.LATEST, newest[0].name)


@dataclass
class _Follower:
    """A run that this process follows, and what its directory contains."""

    projector: Projector
    definition: str
    description: dict[str, Any]
    shown_head: int
    """The last commit that the directory shows, whichever process wrote it."""
    log_sizes: dict[str, int] = field(default_factory=dict)
    """The bytes of each log; empty before this process has written them."""


def _may_replace(path: Path, data: bytes | None, own_digests: set[str] | None) -> bool:
    """Whether a file is missing or an earlier text of the workflow; a user's edits are kept.

    Without digests, any other text is replaced.
    """
    current = read_regular_file(path, largest=None)
    if current is None:
        return not path.exists()
    own = own_digests is None or hashlib.sha256(current).hexdigest() in own_digests
    return own and current != data
