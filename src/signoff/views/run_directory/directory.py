"""The run directory: readable files that show what is in the journal.

The journal is the truth, and nothing in the directory is ever read back into a run, except
answers. Whenever a run rests, all of its files are compared with its journal, and what is missing
or different is written. That also repairs a directory that lags, is damaged or is lost. While a
run is driven, only its logs and its state are shown. `state.json` is written last and records how
much of the journal the other files show.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff.core.errors import SignoffError
from signoff.core.events import RunStopped
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.run_state import RunState
from signoff.runtime.paths import safe_path
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import RunRow, Store, events_in
from signoff.store import run_files as files
from signoff.store.run_files import Disk, json_bytes, read_regular_file
from signoff.store.run_layout import Layout, ShownRun
from signoff.views.run_directory.answers import (
    FileAnswer,
    FileAnswers,
    archive_file,
    decode_form,
    find_question_files,
    question_files,
    read_answers,
    rename_early_files,
)
from signoff.views.run_directory.projector import (
    DirectoryUpdate,
    ProjectionState,
    Projector,
    read_projection_state,
    resolution_document,
    state_document,
)

ROWS_PER_BATCH = 200
"""How many commits' files are held in memory while the files of a long run are compared."""

_log = logging.getLogger(__name__)


NextSteps = Callable[[RunRow, RunState], Sequence[str]]
"""Returns what a user can do about a run that has stopped, in the words of a surface."""


@dataclass
class _LiveRun:
    """A run that is being driven."""

    projector: Projector
    thread: list[bytes] = field(default_factory=list)
    """Lines of `thread.jsonl` since it was last written."""


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
        self._live: dict[str, _LiveRun] = {}

    def reopened(self) -> RunDirectory:
        """Returns the same directory with a connection of its own, for use in another thread."""
        other = copy(self)
        other._store, other._live = self._store.reopen(), {}
        return other

    def close(self) -> None:
        """Closes the connection to the store."""
        self._store.close()

    def catch_up(self, run: str) -> None:
        """Makes a run's directory show all of its journal; raises `WriteFailed`."""
        folder = files.run_folder(self._root, run)
        # Read the directory before the store: another process may write in between, and a
        # directory that seems to be ahead of its journal would be written for nothing.
        previous = self._shown(folder)
        row = self._store.row(run)
        shown_head = self._shown_head(folder, row, previous)
        projector, update = self._projector(row), DirectoryUpdate()
        self._apply(row, projector, update, folder)
        self._write_workflow_files(folder, projector, update.writes, shown_head)
        if not shown_head:
            self._write_definition(folder, projector)
            self._update_latest_link()
        # Neither log is synced: what a power cut takes is found missing here and written again.
        for name, lines in ((files.THREAD, update.thread), (files.LOG, update.log)):
            self._put_if_changed(folder / name, b"".join(lines), durable=False)
        self._write_resolution(folder, projector)
        self._write_state(folder, row, projector, shown_head=projector.head)

    def follow(self, run: str) -> None:
        """Shows what a run that is being driven has done since the last call.

        That is its log and, when a step has ended or a human is asked, its thread and its state.
        All other files are written when it rests.
        """
        # Removed here and put back only if everything succeeds: after a failed write the logs may
        # lack lines, so the next call writes them as a whole.
        live = self._live.pop(run, None)
        folder, row = files.run_folder(self._root, run), self._store.row(run)
        if row.status is not Status.RUNNING:
            self.catch_up(run)
            return
        write: Callable[[Path, bytes], None] = self._disk.append
        if live is None:
            write = partial(self._disk.put, durable=False)
            self._shown_head(folder, row, self._shown(folder))
            live = _LiveRun(self._projector(row))
        update = DirectoryUpdate(state_changed=not live.projector.head)
        self._apply(row, live.projector, update)
        live.thread += update.thread
        write(folder / files.LOG, b"".join(update.log))
        if update.state_changed:
            write(folder / files.THREAD, b"".join(live.thread))
            live.thread.clear()
            # The other files show nothing yet, which makes the next `catch_up` write all of them.
            self._write_state(folder, row, live.projector, shown_head=0)
            self._update_latest_link()
        self._live[run] = live

    def is_current(self, row: RunRow) -> bool:
        """Tells whether the directory of a run shows all of its journal, as far as it says so."""
        folder = files.run_folder(self._root, row.name)
        shown = (row.name, row.created_at, row.definition, row.head)
        return (folder / files.LOG).is_file() and self._shown(folder) == shown

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

    def _shown(self, folder: Path) -> ProjectionState | None:
        return read_projection_state(read_regular_file(folder / files.STATE, largest=None))

    def _shown_head(self, folder: Path, row: RunRow, previous: ProjectionState | None) -> int:
        """Returns up to which commit a directory shows this run; 0 if it shows another."""
        if previous is None or previous.run != row.name:
            return 0
        if previous.created_at != row.created_at:
            # An earlier run had the same name; its files are kept under another one.
            aside = f"{folder.name}.old-{secrets.token_hex(4)}"
            self._disk.move(folder, folder.with_name(aside))
            return 0
        is_same = previous.definition == row.definition and previous.head <= row.head
        return previous.head if is_same else 0

    def _projector(self, row: RunRow) -> Projector:
        """Returns a projector at the beginning of a run's journal."""
        description = json.loads(self._store.description(row.id))
        layout = self._layout_of(description.get("notation", ""))
        return Projector(row.name, description, layout, partial(self._next_steps, row))

    def _apply(
        self, row: RunRow, projector: Projector, update: DirectoryUpdate, folder: Path | None = None
    ) -> None:
        """Applies the commits of a journal that a projector has not seen.

        Views of them are written below `folder`; without one they are left out.
        """
        rows = self._store.journal(row.id, projector.head)
        for number, commit in enumerate(rows, start=1):
            projector.apply_commit(commit.seq, [*events_in([commit], self._store.blob)], update)
            if folder is None:
                update.files.clear()
            elif number % ROWS_PER_BATCH == 0 or number == len(rows):
                for path, data in update.files.items():
                    # Not synced: thousands of syncs would slow down the journal, and a file that
                    # is lost in a power cut is written again from the journal.
                    self._put_if_changed(files.file_path(folder, path), data, durable=False)
                update.files.clear()

    def _write_workflow_files(
        self,
        folder: Path,
        projector: Projector,
        writes: Mapping[str, str | None],
        shown_head: int,
    ) -> None:
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
        if projector.state.status is Status.COMPLETED and projector.head > shown_head:
            # Elsewhere a user's edits win, but a completed run must show what was approved.
            for path, text in projector.approved.items():
                file = files.file_path(folder, path)
                if self._put_if_changed(file, files.encode_text(text)):
                    _log.warning("%s was changed or removed after its approval; restored", file)

    def _put_if_changed(self, file: Path, data: bytes, *, durable: bool = True) -> bool:
        """Writes a file unless it already has this content, so its modification time stays."""
        changed = read_regular_file(file, largest=None) != data
        if changed:
            self._disk.put(file, data, durable=durable)
        return changed

    def _write_state(
        self, folder: Path, row: RunRow, projector: Projector, *, shown_head: int
    ) -> None:
        inbox = self._write_questions(folder, projector)
        projection = ProjectionState(row.name, row.created_at, row.definition, shown_head)
        shown = ShownRun(projector.state, projector.description, tuple(inbox.values()))
        document = state_document(shown, projection, tuple(inbox), projector.layout, projector.head)
        self._put_if_changed(folder / files.STATE, json_bytes(document))

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

    def _write_definition(self, folder: Path, projector: Projector) -> None:
        description = projector.description
        for path, data in projector.layout.definition(description).items():
            file = safe_path(folder, path, reserved=files.RESERVED_NAMES, hidden=files.HIDDEN)
            self._disk.put(file, data, durable=False)
        self._disk.put(folder / files.DEFINITION, json_bytes(description), durable=False)

    def _update_latest_link(self) -> None:
        newest = self._store.rows(limit=1)
        if newest:
            self._disk.point_link(self._root / files.LATEST, newest[0].name)


def _may_replace(path: Path, data: bytes | None, own_digests: set[str] | None) -> bool:
    """Whether a file is missing or an earlier text of the workflow; a user's edits are kept.

    Without digests, any other text is replaced.
    """
    current = read_regular_file(path, largest=None)
    if current is None:
        return not path.exists()
    own = own_digests is None or hashlib.sha256(current).hexdigest() in own_digests
    return own and current != data


# Keeps run directories up to date while runs are driven, off their critical path.
#
# The observer only notes which runs have changed. A separate thread, with its own store
# connection, does the writing. Changes in quick succession are written together; a run
# that stops is written at once.


INTERVAL_SECONDS = 0.5
"""How far a directory may lag behind an active run."""


class Projection:
    """An observer that writes the directories of the runs it observes."""

    def __init__(self, directory: RunDirectory, interval: float = INTERVAL_SECONDS) -> None:
        """Uses a copy of the directory, with a connection that the writing thread opens."""
        self._directory = directory
        self._interval = interval
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._due: dict[str, float] = {}
        """When each changed run is to be written, on the monotonic clock."""
        self._failures: dict[str, str] = {}
        """Why the last write of a run failed."""

    def notice(self, notice: Notice) -> None:
        """Notes that a run has changed."""
        if not isinstance(notice, Recorded):
            return
        at_rest = any(isinstance(event, RunStopped) for event in notice.events)
        due = time.monotonic() + (0.0 if at_rest else self._interval)
        with self._changed:
            if self._closing:
                return
            self._due[notice.run] = min(due, self._due.get(notice.run, due))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_thread, name="signoff-run-directory", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Writes all remaining changes, tries failed runs once more and ends the thread."""
        with self._changed:
            if not self._closing:
                self._due |= dict.fromkeys(self._failures, 0.0)
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run_thread(self) -> None:
        with ExitStack() as stack:
            # A store that cannot be closed has been written to before.
            stack.enter_context(suppress(SignoffError))
            directory: RunDirectory | None = None
            while (run := self._next_run()) is not None:
                problem = ""
                try:
                    directory = directory or stack.enter_context(
                        closing(self._directory.reopened())
                    )
                    directory.follow(run)
                except SignoffError as error:
                    problem = str(error)
                except Exception as error:  # noqa: BLE001  # `close` must still write other runs
                    problem = repr(error)
                self._finish(run, problem)

    def _next_run(self) -> str | None:
        """Waits for a run that is due and returns it; None when everything is written."""
        with self._changed:
            while self._due or not self._closing:
                run = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if run is None else self._due[run] - time.monotonic()
                if run is not None and wait is not None and (wait <= 0 or self._closing):
                    del self._due[run]
                    return run
                self._changed.wait(wait)
            return None

    def _finish(self, run: str, problem: str) -> None:
        with self._changed:
            previous = self._failures.pop(run, "")
            if problem:
                self._failures[run] = problem
        # The same failure may repeat twice a second, so only a new one is logged.
        if problem and problem != previous:
            _log.warning("the directory of run %s is not up to date: %s", run, problem)
