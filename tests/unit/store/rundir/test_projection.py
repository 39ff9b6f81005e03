import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.errors import WriteFailed
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Call, Progress, Recorded
from signoff.runtime.store_port import RunRow, Store
from signoff.store.memory import MemoryStore
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.disk import Disk
from signoff.store.rundir.files import RunFiles
from signoff.store.rundir.projection import Projection
from tests.patience import PATIENCE_SECONDS
from tests.unit.store.rundir.story import Story, document, tree

NEVER = 3600.0
"""Seconds no test waits for."""

"""Seconds after which a thread that should have acted has failed."""


class WatchedDisk(Disk):
    """Counts how often a state was written, and lets a test wait for it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.states = 0
        self.written = threading.Event()

    def put(self, path: Path, data: bytes, *, durable: bool = True) -> None:
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
    made = Projection(tmp_path, story.store.reopen, disk=disk, interval=NEVER)
    with closing(made):
        yield made


def news(story: Story, *, rests: bool = False) -> Recorded:
    """What the engine tells its observers after a commit."""
    from signoff.core.events import RunStopped, StepBegun

    return Recorded(story.name, [RunStopped(Status.COMPLETED) if rests else StepBegun()])


def test_flush_waits_until_everything_heard_of_is_written(
    tmp_path: Path, story: Story, projection: Projection
) -> None:
    """A command that prints where the files are must not print it before they are there."""
    projection.notice(news(story.ask("ask#1", "a", "b")))

    failures = projection.flush()

    assert failures == {}
    assert document(tmp_path / "demo" / "state.json")["journal_head"] == 3


def test_what_comes_in_short_succession_is_written_once(
    story: Story, projection: Projection, disk: WatchedDisk
) -> None:
    """A directory written after every step would slow the run down it watches."""
    for n in range(20):
        projection.notice(news(story.ask(f"ask{n}#1", "a", "b")))

    projection.flush()

    assert disk.states == 1


def test_a_run_that_comes_to_rest_is_written_at_once(
    story: Story, projection: Projection, disk: WatchedDisk
) -> None:
    """Whoever waits for an answer looks at the files now, not after the next interval."""
    projection.notice(news(story))

    projection.notice(news(story.end(), rests=True))

    assert disk.written.wait(PATIENCE_SECONDS)


def test_news_of_a_running_run_is_written_after_a_while_without_being_asked(
    tmp_path: Path, story: Story, disk: WatchedDisk
) -> None:
    """`tail -f live.log` must move while the run does."""
    with closing(Projection(tmp_path, story.store.reopen, disk=disk, interval=0.0)) as projection:
        projection.notice(news(story))

        assert disk.written.wait(PATIENCE_SECONDS)


def test_flushing_one_run_does_not_write_the_others(
    tmp_path: Path, story: Story, projection: Projection
) -> None:
    """The end of one run of five hundred must not wait for all of them."""
    other = Story(story.store, "other").begin()
    projection.notice(news(story))
    projection.notice(news(other))

    projection.flush("other")

    assert (tmp_path / "other" / "state.json").exists()
    assert not (tmp_path / "demo").exists()


def test_closing_writes_what_is_left_and_ends_the_thread(
    tmp_path: Path, story: Story, projection: Projection
) -> None:
    """The last lines of a run come just before the process ends."""
    projection.notice(news(story))

    projection.close()

    assert (tmp_path / "demo" / "state.json").exists()
    assert "signoff-run-directory" not in {thread.name for thread in threading.enumerate()}


def test_closing_twice_and_news_after_closing_do_no_harm(
    tmp_path: Path, story: Story, projection: Projection
) -> None:
    """An observer must never break what it observes, the end of a process included."""
    projection.close()
    projection.notice(news(story))

    projection.close()

    assert projection.flush() == {}
    assert not (tmp_path / "demo").exists()


def test_nothing_is_opened_before_there_is_something_to_write(tmp_path: Path) -> None:
    """A command that only lists runs should not pay for a second connection."""

    def open_store() -> Store:
        raise AssertionError("opened")

    projection = Projection(tmp_path, open_store)

    projection.notice(Progress("demo", "draft", "", "thinking"))

    assert projection.flush() == {}
    projection.close()


def test_the_thread_has_a_connection_of_its_own_and_closes_it(tmp_path: Path, story: Story) -> None:
    """The run's own connection must never wait for the files."""
    seen: list[str] = []

    class Reopened(MemoryStore):
        def row(self, name: str) -> RunRow:
            return story.store.row(name)

        def close(self) -> None:
            seen.append(f"closed in {threading.current_thread().name}")

    def reopen() -> Store:
        seen.append(f"opened in {threading.current_thread().name}")
        return Reopened()

    projection = Projection(tmp_path, reopen)
    projection.notice(news(story))

    projection.close()

    assert seen == ["opened in signoff-run-directory", "closed in signoff-run-directory"]


def test_a_directory_that_cannot_be_written_is_reported_and_made_good_later(
    tmp_path: Path, story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk under runs/ costs the files for a while, never the run."""
    root = tmp_path / "runs"
    root.write_text("in the way")
    with closing(Projection(root, story.store.reopen, interval=NEVER)) as projection:
        projection.notice(news(story))
        assert isinstance(projection.flush()["demo"], WriteFailed)
        projection.flush()
        assert [r.levelno for r in caplog.records] == [logging.WARNING]
        root.unlink()

        assert projection.flush() == {}

    assert document(root / "demo" / "state.json")["run"] == "demo"


def test_a_directory_that_stays_unwritable_does_not_keep_the_process_from_ending(
    tmp_path: Path, story: Story
) -> None:
    """Ctrl-C on a machine with a full disk has to end the command."""
    (tmp_path / "runs").write_text("in the way")
    projection = Projection(tmp_path / "runs", story.store.reopen, interval=NEVER)
    projection.notice(news(story))
    projection.close()

    projection.close()

    assert list(projection.flush()) == ["demo"]


def test_a_bug_in_the_thread_does_not_block_flush(tmp_path: Path, story: Story) -> None:
    """Whoever flushes waits for the thread; were it dead, they would wait for ever."""

    class Broken(MemoryStore):
        def row(self, name: str) -> RunRow:
            raise ZeroDivisionError("a bug")

    with closing(Projection(tmp_path, Broken, interval=NEVER)) as projection:
        projection.notice(news(story))

        failures = projection.flush()

    assert str(failures["demo"]) == "ZeroDivisionError: a bug"


async def test_a_real_run_shows_its_wait_and_its_end(tmp_path: Path) -> None:
    """What the engine records and what the directory reads are written by different hands."""

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
    with closing(Projection(tmp_path, store.reopen)) as projection:
        files = RunFiles(tmp_path)
        async with Engine(
            store, agents={"echo": Echo()}, observers=[projection], files=files
        ) as engine:
            result = await engine.start(workflow, name="demo")
            assert result.status is Status.WAITING
            projection.flush("demo")
            questions = document(tmp_path / "demo" / "hitl" / "questions.json")
            assert questions["questions"][0]["questions"][0]["id"] == "ship"
            (item,) = result.inbox
            store.answer(item.id, '{"value": "yes", "text": ""}', "ann", 1.0, item.digest)
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
