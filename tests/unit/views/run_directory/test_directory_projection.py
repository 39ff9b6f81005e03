import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import WriteFailed
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Call, Progress, Recorded
from signoff.runtime.store_port import Store
from signoff.store.run_files import Disk, RunFiles
from signoff.store.run_layout import Layout
from signoff.store.sqlite import MemoryStore
from signoff.views.run_directory.directory import Projection, RunDirectory
from tests.patience import PATIENCE_SECONDS
from tests.unit.views.run_directory.story import Story, document, tree

NEVER = 3600.0
"""Seconds no test waits for."""


class WatchedDisk(Disk):
    """Counts how often a state was written, and lets a test wait for it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.states = 0
        self.full = False
        self.written = threading.Event()
        self.refused = threading.Event()

    def put(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        if self.full:
            self.refused.set()
            raise WriteFailed("the disk is full")
        super().put(path, data, durable=durable)
        if path.name == "state.json":
            self.states += 1
            self.written.set()


@pytest.fixture
def story() -> Story:
    return Story().begin()


@pytest.fixture
def disk(tmp_path: Path) -> WatchedDisk:
    return WatchedDisk(tmp_path)


@pytest.fixture
def projection(tmp_path: Path, story: Story, disk: WatchedDisk) -> Iterator[Projection]:
    with closing(Projection(RunDirectory(tmp_path, story.store, disk=disk), NEVER)) as projection:
        yield projection


def news(story: Story, *, rests: bool = False) -> Recorded:
    """Returns the notice that observers get after a commit."""
    from signoff.core.events import RunStopped, StepBegun

    return Recorded(story.name, [RunStopped(Status.COMPLETED) if rests else StepBegun()])


def test_close_waits_until_every_change_is_written(
    tmp_path: Path, story: Story, projection: Projection
) -> None:
    """A command that prints where the files are must not print it before they are there."""
    projection.notice(news(story.ask("ask#1", "a", "b")))

    projection.close()

    assert document(tmp_path / "demo" / "state.json")["journal_head"] == 3
    assert "signoff-run-directory" not in {thread.name for thread in threading.enumerate()}


def test_a_run_that_stops_is_written_at_once(
    story: Story, projection: Projection, disk: WatchedDisk
) -> None:
    """The user who has to answer looks at the files now, not after the next interval."""
    projection.notice(news(story))

    projection.notice(news(story.end(), rests=True))

    assert disk.written.wait(PATIENCE_SECONDS)


def test_changes_of_an_active_run_are_written_after_the_interval(
    tmp_path: Path, story: Story, disk: WatchedDisk
) -> None:
    """`tail -f live.log` must move while the run does."""
    with closing(Projection(RunDirectory(tmp_path, story.store, disk=disk), 0.0)) as projection:
        projection.notice(news(story))

        assert disk.written.wait(PATIENCE_SECONDS)


class UnopenedStore(MemoryStore):
    """A store whose second connection nobody needs."""

    def reopen(self) -> Store:
        raise AssertionError("opened")


def test_nothing_is_opened_before_there_is_something_to_write(tmp_path: Path) -> None:
    """A command that only lists runs should not pay for a second connection."""
    projection = Projection(RunDirectory(tmp_path, UnopenedStore()))

    projection.notice(Progress("demo", "draft", "", "thinking"))

    projection.close()


def test_a_failed_write_is_reported_once_and_tried_again_on_close(
    tmp_path: Path, story: Story, disk: WatchedDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk under runs/ costs the files for a while, never the run."""
    disk.full = True
    projection = Projection(RunDirectory(tmp_path, story.store, disk=disk), 0.0)
    with closing(projection):
        for _ in range(2):
            disk.refused.clear()
            projection.notice(news(story))
            assert disk.refused.wait(PATIENCE_SECONDS)
        disk.full = False

    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert document(tmp_path / "demo" / "state.json")["run"] == "demo"


def test_a_bug_while_writing_one_run_does_not_stop_the_others(
    tmp_path: Path, story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread writes all runs; if it ended, no other run would be written any more."""
    other = Story(story.store, "other").begin()

    def layout_of(_notation: str) -> Layout:
        if not (tmp_path / "bug").exists():
            (tmp_path / "bug").touch()
            raise ZeroDivisionError("a bug")
        return Layout()

    projection = Projection(RunDirectory(tmp_path, story.store, layout_of=layout_of), NEVER)
    with closing(projection):
        projection.notice(news(story))
        projection.notice(news(other))

    assert "the directory of run demo is not up to date: ZeroDivisionError" in caplog.text
    assert (tmp_path / "other" / "state.json").exists()


async def test_a_real_run_shows_its_wait_and_its_end(tmp_path: Path) -> None:
    """The engine and the directory have to agree about the journal."""

    class Echo:
        async def ask(self, request: AgentRequest, call: Call) -> Reply:
            return Reply(f"{request.prompt}!")

    async def draft(ctx: StepContext) -> tuple[Outcome, dict[str, str]]:
        async def critic(inner: StepContext, item: str) -> str:
            return (await inner.ask("echo", item)).text

        reviews = await ctx.map(["tea", "milk"], critic, key="critics")
        await ctx.write("final/artifact.md", "+".join(reviews))
        answer = await ctx.wait(Question("Ship?", question_id="ship"))
        return Outcome.OK, {"answer": answer.value}

    workflow = Workflow("essay", StepDef("draft", handler=draft, next={Outcome.OK: None}))
    store = MemoryStore()
    files, agents = RunFiles(tmp_path), {"echo": Echo()}
    with closing(Projection(RunDirectory(tmp_path, store))) as projection:
        async with Engine(store, agents=agents, observers=[projection], files=files) as engine:
            result = await engine.start(workflow, name="demo")
    assert result.status is Status.WAITING
    questions = document(tmp_path / "demo" / "hitl" / "questions.json")
    assert questions["questions"][0]["questions"][0]["id"] == "ship"

    (item,) = result.inbox
    store.answer(item.id, '{"value": "yes", "text": ""}', "ann", 1.0, item.digest)
    with closing(Projection(RunDirectory(tmp_path, store))) as projection:
        async with Engine(store, agents=agents, observers=[projection], files=files) as engine:
            await engine.resume("demo", workflow)

    folder = tmp_path / "demo"
    assert document(folder / "state.json")["state"] == {"answer": "yes"}
    assert document(folder / "resolution.json")["status"] == "completed"
    assert {
        path: text
        for path, text in tree(folder).items()
        if path.startswith(("iterations/", "final/", "hitl/"))
    } == {
        "final/artifact.md": b"tea!+milk!",
        "iterations/1/prompt_draft_echo_critics-0.txt": b"tea",
        "iterations/1/prompt_draft_echo_critics-1.txt": b"milk",
        "iterations/1/reply_draft_echo_critics-0.txt": b"tea!",
        "iterations/1/reply_draft_echo_critics-1.txt": b"milk!",
    }
    RunDirectory(tmp_path / "fresh", store).catch_up("demo")
    assert tree(folder) == tree(tmp_path / "fresh" / "demo")
