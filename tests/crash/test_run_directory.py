"""The writer of a run directory is killed at any write, also in the middle of an append."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.requests import Question, Response
from signoff.core.run_state import RunState
from signoff.store.run_files import Disk
from signoff.store.run_layout import EndView, Layout
from signoff.store.sqlite import MemoryStore
from signoff.views.run_directory.directory import RunDirectory
from tests.unit.views.run_directory.story import BEGAN, DyingDisk, Killed, Story, tree

Stage = Callable[[Story], object]


def answer_the_response(story: Story) -> None:
    (item,) = story.store.items(story.name)
    story.answered(item, "by hand")


STAGES: list[Stage] = [
    lambda story: story.begin().ask("ask#1", "first", "one"),
    lambda story: story.write("final/a.md", "draft").ask("polish#1", "again", "two"),
    lambda story: story.step("review", artifact="two").write("final/a.md", "better"),
    lambda story: story.wait(Response("do this by hand")),
    answer_the_response,
    lambda story: story.step("draft", iteration=2).ask("ask#1", "second", "three"),
    lambda story: story.end(Status.BUDGET, "spent"),
    lambda story: story.commit(ev.RunResumed()).write("final/a.md", "best"),
    lambda story: story.end(),
]


class BestSoFar(Layout):
    """Shows the best version at an end without passing, as flows do."""

    def end(self, state: RunState, description: Mapping[str, Any]) -> EndView | None:
        files: dict[Status, dict[str, str | None]] = {
            Status.BUDGET: {"final/a.md": "good", "final/b.md": "new", "final/status.md": "spent"},
            Status.COMPLETED: {"final/b.md": None, "final/status.md": None},
        }
        chosen = files.get(state.status)
        return EndView("final/a.md", passed=False, label="", files=chosen) if chosen else None


def open_directory(root: Path, story: Story, disk: Disk | None = None) -> RunDirectory:
    return RunDirectory(root, story.store, layout_of=lambda _notation: BestSoFar(), disk=disk)


def count_writes(root: Path) -> int:
    disk = DyingDisk(root, dies_at=-1)
    story = Story()
    directory = open_directory(root, story, disk)
    for stage in STAGES:
        stage(story)
        directory.follow(story.name)
        directory.catch_up(story.name)
    return disk.done


def test_a_run_directory_matches_the_journal_after_a_kill_at_any_write(tmp_path: Path) -> None:
    """A log with a missing or repeated line is useless."""
    last = count_writes(tmp_path / "undisturbed")
    assert last > 40

    for dies_at in range(1, last + 1):
        check_kill_at(tmp_path / str(dies_at), dies_at)


def check_kill_at(folder: Path, dies_at: int) -> None:
    """Runs all stages; the first writer is killed once, and a second one takes over."""
    story = Story()
    directory = open_directory(folder / "runs", story, DyingDisk(folder / "runs", dies_at))
    deaths = 0
    for number, stage in enumerate(STAGES):
        stage(story)
        try:
            # First as while the run is driven, then as when it rests.
            directory.follow(story.name)
            directory.catch_up(story.name)
        except Killed:
            deaths += 1
            directory = open_directory(folder / "runs", story)
            directory.catch_up(story.name)
        fresh = folder / f"fresh-{number}"
        open_directory(fresh, story).catch_up(story.name)
        assert tree(folder / "runs" / "demo") == tree(fresh / "demo"), (dies_at, number)
    assert {path.name for path in (folder / "runs/demo/final").iterdir()} == {"a.md"}
    assert deaths == 1


@pytest.mark.parametrize("dies_at", range(1, 12))
def test_a_kill_while_an_old_directory_is_moved_away_loses_no_file(
    tmp_path: Path, dies_at: int
) -> None:
    """The files of the old run belong to the user, and must not be mixed with the new ones."""
    old = Story(created_at=BEGAN).begin().ask("ask#1", "old", "old").step("review")
    RunDirectory(tmp_path / "runs", old.store).catch_up("demo")
    before = tree(tmp_path / "runs" / "demo")
    new = Story(created_at=BEGAN + 1000).begin().ask("ask#1", "new", "new")
    try:
        disk = DyingDisk(tmp_path / "runs", dies_at)
        RunDirectory(tmp_path / "runs", new.store, disk=disk).catch_up("demo")
    except Killed:
        RunDirectory(tmp_path / "runs", new.store).catch_up("demo")

    (moved,) = (tmp_path / "runs").glob("demo.old-*")
    assert tree(moved) == before
    RunDirectory(tmp_path / "fresh", new.store).catch_up("demo")
    assert tree(tmp_path / "runs" / "demo") == tree(tmp_path / "fresh" / "demo")


def test_concurrent_writers_leave_a_correct_directory(tmp_path: Path) -> None:
    """The runner and `show` in another terminal may update the directory at the same time."""
    store = MemoryStore()
    story = Story(store).begin()
    done = threading.Event()
    failures: list[BaseException] = []

    def keep_catching_up() -> None:
        directory = RunDirectory(tmp_path / "runs", store)
        try:
            while not done.is_set():
                directory.catch_up("demo")
        except BaseException as error:
            failures.append(error)
            raise

    writers = [threading.Thread(target=keep_catching_up) for _ in range(3)]
    for writer in writers:
        writer.start()
    for n in range(60):
        story.ask(f"ask{n}#1", f"prompt {n}", f"reply {n}").write("final/a.md", f"draft {n}")
        if n % 20 == 10:
            story.answered(story.wait(Question("ok?"), f"wait{n}#1"), "yes")
    done.set()
    for writer in writers:
        writer.join()

    assert failures == []
    RunDirectory(tmp_path / "runs", store).catch_up("demo")
    RunDirectory(tmp_path / "fresh", store).catch_up("demo")
    assert tree(tmp_path / "runs" / "demo") == tree(tmp_path / "fresh" / "demo")
