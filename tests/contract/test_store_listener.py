"""What processes hear of a PostgreSQL store at once, and what they do where nothing arrives.

No test waits for a look: the time between two looks is an hour, or looking fails.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from signoff import Outcome, StepContext, StepDef, Workflow
from signoff.app.workers.queue_worker import work_signal
from signoff.core.outcome import Status
from signoff.core.step import Result
from signoff.runtime import owner
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Topic
from signoff.store.postgres import store as server_listener
from signoff.store.postgres.queries import channel_of
from signoff.store.postgres.store import PostgresStore
from tests.patience import PATIENCE_SECONDS, until, wait_until
from tests.store_suite.journal_writer import JournalWriter, new_request, start_run
from tests.stubs.pooler import running_pooler
from tests.stubs.postgres import PostgresServer

AN_HOUR = 3600.0


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


@pytest.fixture
def other(store: PostgresStore, url: str) -> Iterator[PostgresStore]:
    """The same store, as another process has it."""
    _ = store
    with closing(PostgresStore(url)) as other:
        yield other


@contextmanager
def hearing(store: PostgresStore, *topics: Topic) -> Iterator[threading.Event]:
    """Gives an event that each message sets, from when messages arrive."""
    heard = threading.Event()
    listener = store.listener()
    unsubscribe = listener.subscribe(topics, heard.set)
    wait_until(heard.is_set, "listening")
    heard.clear()
    yield heard
    unsubscribe()


def test_what_others_do_is_heard_by_its_topic(store: PostgresStore, other: PostgresStore) -> None:
    """A worker must hear of work, and not of everything that happens to any run."""
    run = JournalWriter(other)
    requests = {"opened": [new_request()]}
    told: list[tuple[Topic, Callable[[], object]]] = [
        (Topic.RUNS, run.begin),
        (Topic.RUNS, lambda: run.append(**requests)),
        (Topic.RUNS, run.wait),
        (Topic.WORK, lambda: other.answer(other.items()[0].id, "{}", "ann", 5.0, "shown")),
        (Topic.WORK, lambda: other.enqueue(run.run, [], lambda _owner: False)),
        (Topic.CANCEL, lambda: other.ask_cancel(run.run, "enough")),
    ]
    with (
        hearing(store, Topic.WORK) as work,
        hearing(store, Topic.CANCEL) as cancel,
        hearing(store, Topic.RUNS) as runs,
    ):
        heard = {Topic.WORK: work, Topic.CANCEL: cancel, Topic.RUNS: runs}
        for topic, act in told:
            act()
            wait_until(heard[topic].is_set, str(topic))
            # Messages arrive in the order of their commits, so another one would be here by now.
            assert [each for each, event in heard.items() if event.is_set()] == [topic]
            heard[topic].clear()


def test_a_listener_that_lost_its_connection_listens_again(
    store: PostgresStore, other: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes every subscriber, because messages may have been lost meanwhile."""
    monkeypatch.setattr(server_listener, "_RETRY_SECONDS", 0.01)
    run = start_run(other)
    with hearing(store, Topic.CANCEL) as heard:
        _end_listener(url)

        wait_until(heard.is_set, "the loss")
        wait_until(lambda: store.listener().is_live, "listening again")
    with hearing(store, Topic.CANCEL) as heard:
        other.ask_cancel(run.run, "enough")
        wait_until(heard.is_set, "the cancel")


def _end_listener(url: str) -> None:
    schema = url.partition("schema=")[2]
    with psycopg.connect(url.partition("&schema")[0], autocommit=True) as db:
        ended = db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = %s",
            [f'LISTEN "{channel_of(schema)}"'],
        ).fetchall()
    assert ended == [(True,)]


def test_behind_a_pooler_no_one_expects_messages(postgres: PostgresServer, url: str) -> None:
    """Waiting processes have to poll there."""
    with TemporaryDirectory() as folder, running_pooler(postgres.folder, Path(folder)):
        through = url.replace(str(postgres.folder), folder)
        with closing(PostgresStore(through)) as store:
            listener = store.listener()

            listener.subscribe(tuple(Topic), lambda: None)
            assert not any(each.name == "signoff-listener" for each in threading.enumerate())
            assert not listener.is_live


async def test_a_worker_is_woken_by_what_the_store_says(
    store: PostgresStore, other: PostgresStore
) -> None:
    """A hundred idle workers must not ask the server all the time."""
    run = await asyncio.to_thread(start_run, other)
    with work_signal(store) as signal:
        await until(signal.is_live, "listening")
        # What arrived when listening began.
        await signal.wait([], AN_HOUR)

        waiting = asyncio.create_task(signal.wait([], AN_HOUR))
        await asyncio.to_thread(other.enqueue, run.run, [], lambda _owner: False)
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)


async def test_a_cancel_arrives_without_a_look(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who cancels a run on another host does not wait for a poll."""
    monkeypatch.setattr(owner, "BEAT_SECONDS", AN_HOUR)
    async with Engine(store) as engine:
        running = asyncio.create_task(engine.start(_holding(), name="run"))
        await until(lambda: store.listener().is_live, "listening")

        row = await asyncio.to_thread(other.row, "run")
        await asyncio.to_thread(other.ask_cancel, row.id, "enough")

        assert (await running).status is Status.CANCELLED


def _holding() -> Workflow:
    async def hold(_ctx: StepContext) -> Result:
        await asyncio.sleep(AN_HOUR)
        return Outcome.OK, {}

    return Workflow("hold", StepDef("hold", handler=hold, next={Outcome.OK: None}))
