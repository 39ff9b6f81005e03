"""What workers and stores do when a PostgreSQL server, or the way to it, fails.

The server is one of its own: these tests kill it, fill it and use up its connections.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from signoff.app.runs.run_records import living_workers
from signoff.app.runs.start import plan
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import hand_over
from signoff.app.workers.queue_worker import QueueWorker
from signoff.core import events as ev
from signoff.core.errors import StoreBusy, StoreError, WriteFailed
from signoff.core.outcome import Status
from signoff.runtime import engine
from signoff.runtime.store_port import Owner, events_in
from signoff.store.postgres import store as postgres_store
from signoff.store.postgres.connection import read_address
from signoff.store.postgres.store import PostgresStore
from tests.patience import PATIENCE_SECONDS, wait_until, whole_lines
from tests.store_suite.journal_writer import ANN, BOB, start_run
from tests.stubs.cut_connection import CutConnection, cut_connection
from tests.stubs.postgres import NotHereError, PostgresServer, running_server
from tests.stubs.worker_process import start_worker

pytestmark = pytest.mark.slow

CONNECTIONS = 20
TEN_MINUTES = 600.0

FLOW = """
import asyncio, os
from pathlib import Path
from signoff import Outcome, StepDef, Workflow
from signoff.core.effects import Reply

FOLDER = Path(__file__).parent

class Agent:
    async def ask(self, request, call):
        '''Answers once the test lets this process, or all of them.'''
        with (FOLDER / "calls").open("a") as log:
            log.write(f"{call.run} {call.effect} {os.getpid()}\\n")
        while not ((FOLDER / "go").exists() or (FOLDER / f"go-{os.getpid()}").exists()):
            await asyncio.sleep(0.01)
        return Reply(f"answer of {os.getpid()}")

async def draft(ctx):
    return Outcome.OK, {"draft": (await ctx.ask("agent", "Write.", key="draft")).text}

async def part(ctx, number):
    return (await ctx.ask("agent", f"Write part {number}.", key="part")).text

async def parts(ctx):
    return Outcome.OK, {"parts": await ctx.map([1, 2, 3], part, key="parts")}

FLOW = Workflow(
    "flow", StepDef("draft", handler=draft, next={Outcome.OK: None}), agents={"agent": Agent()}
)
FAN = Workflow(
    "fan", StepDef("parts", handler=parts, next={Outcome.OK: None}), agents={"agent": Agent()}
)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    # What was committed has to survive the death of the server, though not that of the machine.
    settings = {
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": str(CONNECTIONS),
    }
    with ExitStack() as stack:
        try:
            started = stack.enter_context(running_server(settings))
        except NotHereError as error:
            pytest.skip(f"no PostgreSQL server: {error}")
        yield started


@pytest.fixture
def network(server: PostgresServer) -> Iterator[CutConnection]:
    with TemporaryDirectory() as folder, cut_connection(server.folder, Path(folder)) as cut:
        yield cut


@pytest.fixture
def project(tmp_path: Path, server: PostgresServer) -> Iterator[Project]:
    with _project(tmp_path, server.new_schema()) as opened:
        yield opened


@pytest.fixture
def other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process cannot see whether the process of a worker is alive, as on another host."""
    monkeypatch.setattr(engine, "is_alive", lambda _owner: None)
    monkeypatch.setattr(postgres_store, "SETTLED_SECONDS", 0.0)


def _project(root: Path, url: str) -> Project:
    (root / "flow.py").write_text(FLOW)
    with open_project(root, _environment(root), create=True) as opened:
        opened.home.config.write_text(f"database: {url}\n")
    return open_project(root, _environment(root))


def _environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "none")}


@contextmanager
def _running(code: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a Python program in a project's folder for as long as it is needed."""
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **_environment(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def queue(project: Project, *names: str, flow: str = "FLOW") -> None:
    root = project.home.root
    planned = plan(root, _environment(root), f"flow.py:{flow}", {})
    for name in names:
        hand_over(project, planned, name=name)


def calls(project: Project) -> list[list[str]]:
    return [line.split() for line in whole_lines(project.home.root / "calls")]


def finished_calls(project: Project) -> list[ev.EffectFinished]:
    store = project.store
    events = events_in(store.journal(store.row("one").id), store.blob)
    return [each for each in events if isinstance(each, ev.EffectFinished)]


def let_go(project: Project, who: str = "") -> None:
    (project.home.root / f"go{who}").touch()


def is_done(project: Project, name: str = "one") -> Callable[[], bool]:
    return lambda: project.store.row(name).status is Status.COMPLETED


@contextmanager
def working(root: Path, warnings: list[str] | None = None) -> Iterator[None]:
    """Runs a worker in a thread, until the end of the block."""
    loop, seen = asyncio.new_event_loop(), [] if warnings is None else warnings
    with open_project(root, _environment(root)) as project:
        task = loop.create_task(QueueWorker(project, slots=2, warn=seen.append).work())

        def work() -> None:
            with suppress(asyncio.CancelledError, StoreError):
                loop.run_until_complete(task)

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        try:
            yield
            assert not task.done(), f"the worker has ended by itself: {task}"
        finally:
            if not task.done():
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
            loop.close()


# The server


def test_who_has_taken_a_run_survives_the_death_of_the_server(server: PostgresServer) -> None:
    """Otherwise a worker would have a run that it must not write, and no one else could take it."""
    url = server.new_schema()
    with closing(PostgresStore(url)) as store:
        run = start_run(store)
        fence = store.take(run.run, BOB, lambda _owner: False)
        server.stop(signal.SIGQUIT)
    server.start()

    with closing(PostgresStore(url)) as store:
        row = store.row(run.name)
    assert (row.fence, row.owner) == (fence, BOB.id)


def test_replies_that_arrive_while_the_server_stays_away_are_not_paid_for_again(
    project: Project, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker lives, so it has them: it stores them before it continues the run."""
    monkeypatch.setattr(postgres_store, "COMMIT_PATIENCE_SECONDS", 0.1)
    warnings: list[str] = []
    with working(project.home.root, warnings):
        queue(project, "one", flow="FAN")
        wait_until(lambda: len(calls(project)) == 3, "the calls")

        server.stop(signal.SIGKILL)
        let_go(project)
        wait_until(lambda: warnings, "the warning")
        server.start()

        wait_until(is_done(project), "the end of the run")

    assert "cannot be reached" in warnings[0]
    assert len(calls(project)) == 3
    assert len(finished_calls(project)) == 3


def test_a_reply_whose_commit_was_applied_before_the_network_was_cut_counts_once(
    tmp_path: Path, server: PostgresServer, network: CutConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker cannot know that, so it stores the reply a second time; no one uses that."""
    monkeypatch.setattr(postgres_store, "COMMIT_PATIENCE_SECONDS", 0.1)
    url = server.new_schema()
    warnings: list[str] = []
    with _project(tmp_path, url) as project:
        project.home.config.write_text(f"database: {_through(url, server, network)}\n")
        with working(tmp_path, warnings):
            queue(project, "one")
            wait_until(lambda: calls(project), "the call")

            network.cut_after("effect_finished", then="COMMIT")
            network.before_cut = network.cut
            let_go(project)
            wait_until(lambda: warnings, "the warning")
            assert len(finished_calls(project)) == 1
            network.refuse(False)

            wait_until(is_done(project), "the end of the run")

        assert len(calls(project)) == 1
        assert len(finished_calls(project)) == 1


def test_a_run_in_the_foreground_says_how_to_resume_it_when_the_server_stays_away(
    tmp_path: Path, server: PostgresServer, network: CutConnection
) -> None:
    """It ends, unlike a worker, and its owner cannot be removed from the server either."""
    url = server.new_schema()
    with _project(tmp_path, url) as project:
        project.home.config.write_text(f"database: {_through(url, server, network)}\n")
        with _running(IMPATIENT_RUN, tmp_path) as command:
            wait_until(lambda: calls(project), "the call")

            network.cut()
            let_go(project)
            _, errors = command.communicate(timeout=PATIENCE_SECONDS)

    assert command.returncode == 1
    last = errors.decode().splitlines()[-1]
    assert "cannot be reached" in last
    assert "signoff resume one" in last


IMPATIENT_RUN = """
import sys
from signoff.surfaces.cli import main
from signoff.store.postgres import store
store.COMMIT_PATIENCE_SECONDS = 0.1
sys.argv[1:] = ["run", "flow.py:FLOW", "--name", "one"]
sys.exit(main())
"""


def test_a_claim_whose_answer_was_lost_is_found_by_the_next_one(
    tmp_path: Path, server: PostgresServer, network: CutConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs would belong to a worker that does not know of them, for as long as it lives."""
    monkeypatch.setattr(postgres_store, "CLAIM_PATIENCE_SECONDS", TEN_MINUTES)
    url = server.new_schema()
    with _project(tmp_path, url) as project:
        queue(project, "one")
        needs = project.store.row("one").needs or ()
    with closing(PostgresStore(_through(url, server, network))) as store:
        network.cut_after("SKIP LOCKED")
        claimed = store.claim(ANN, needs, lambda _owner: True, 5)
        fence = store.take(claimed[0].id, ANN, lambda _owner: True)

        assert network.cuts == 1
        assert [row.name for row in claimed] == ["one"]
        assert fence == 2
        assert store.claim(ANN, needs, lambda _owner: True, 5) == []


def test_no_expired_lease_is_taken_until_a_connection_has_lasted_for_a_while(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the server was away, no living worker could renew its lease."""
    queue(project, "one")
    store = project.store
    needs = store.row("one").needs or ()

    def claimed(owner: Owner) -> list[str]:
        return [row.name for row in store.claim(owner, needs, lambda _owner: None, 5)]

    assert claimed(BOB) == ["one"]
    _end_leases(project)

    monkeypatch.setattr(postgres_store, "SETTLED_SECONDS", TEN_MINUTES)
    assert claimed(ANN) == []

    monkeypatch.setattr(postgres_store, "SETTLED_SECONDS", 0.0)
    assert claimed(ANN) == ["one"]


def test_without_a_free_connection_the_error_says_what_to_do_and_a_commit_waits_for_one(
    server: PostgresServer,
) -> None:
    """Nothing is lost, and the administrator reads what to change."""
    url = server.new_schema()
    with closing(PostgresStore(url)) as store, ExitStack() as others:
        run = start_run(store)
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'signoff'"
            )
        _use_up_connections(server, others)

        with pytest.raises(StoreBusy, match=r"no free connection.*raise max_connections"):
            PostgresStore(url)
        with pytest.raises(StoreBusy):
            store.commit([run.next()], wait=False)
        others.close()

        assert run.append().accepted
        assert len(run.events()) == 2


def test_a_full_disk_of_the_server_stops_the_run_and_it_continues_when_there_is_space(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real full disk: the tables are on a file system of two megabytes."""
    monkeypatch.setattr(postgres_store, "COMMIT_PATIENCE_SECONDS", 0.1)
    url = server.new_schema()
    with _small_disk(server) as space, closing(PostgresStore(url)) as store:
        run = start_run(store)
        schema = read_address(url).schema
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute(f"ALTER TABLE {schema}.journal SET TABLESPACE {space}")
            admin.execute(f"CREATE TABLE {schema}.other (text text) TABLESPACE {space}")
            with suppress(psycopg.errors.DiskFull):
                for _ in range(100):
                    admin.execute(
                        f"INSERT INTO {schema}.other SELECT md5(n::text) "
                        "FROM generate_series(1, 1000) AS n"
                    )

        commit = replace(run.next(), events=f'[{{"e":"{os.urandom(50_000).hex()}"}}]')
        with pytest.raises(WriteFailed, match=r"out of space.*free some"):
            store.commit([commit])
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute(f"DROP TABLE {schema}.other")

        assert store.row("run").head == 1
        assert store.commit([commit])[0].accepted
        assert store.row("run").head == 2
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute(f"DROP SCHEMA {schema} CASCADE")


# Workers


def test_a_worker_that_is_paused_past_its_lease_loses_its_run_and_its_reply_is_kept(
    project: Project, other_host: None
) -> None:
    """A suspended laptop wakes up while another host drives its run."""
    root = project.home.root
    paused = start_worker(root, _environment(root))
    try:
        queue(project, "one")
        wait_until(lambda: calls(project), "the first call")
        paused.send_signal(signal.SIGSTOP)
        _end_leases(project)
        with working(root):
            wait_until(lambda: len(calls(project)) == 2, "the call of the other host")
            let_go(project, f"-{paused.pid}")
            paused.send_signal(signal.SIGCONT)
            run = project.store.row("one").id
            wait_until(lambda: project.store.late(run), "the late reply")
            assert not is_done(project)()

            let_go(project)
            wait_until(is_done(project), "the end of the run")
    finally:
        paused.kill()
        paused.wait()

    (late,) = project.store.late(run).values()
    assert f"answer of {paused.pid}" in late
    assert [int(pid) for *_, pid in calls(project)] == [paused.pid, os.getpid()]


def test_the_run_of_a_dead_host_is_continued_on_another(project: Project) -> None:
    """Each host is a pid namespace, so neither can see whether the other's process lives."""
    if os.geteuid() != 0 or not _can_unshare():
        pytest.skip("pid namespaces need root on Linux")
    root = project.home.root
    hosts = [start_worker(root, _environment(root), IN_A_HOST_OF_ITS_OWN)]
    try:
        queue(project, "one")
        wait_until(lambda: calls(project), "the call on the first host")
        hosts.append(start_worker(root, _environment(root), IN_A_HOST_OF_ITS_OWN))
        wait_until(lambda: len(living_workers(project.store)) == 2, "the second host")
        assert len({worker.owner.host for worker in living_workers(project.store)}) == 2

        hosts[0].kill()
        hosts[0].wait()
        # Instead of waiting for it; the living host renews its own.
        _end_leases(project)
        wait_until(lambda: len(living_workers(project.store)) == 1, "only the living host")
        let_go(project)
        wait_until(is_done(project), "the end of the run")
    finally:
        for host in hosts:
            host.kill()
            host.wait()

    assert len(calls(project)) == 2


IN_A_HOST_OF_ITS_OWN = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def _can_unshare() -> bool:
    command = [*IN_A_HOST_OF_ITS_OWN, "true"]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def _through(url: str, server: PostgresServer, network: CutConnection) -> str:
    return url.replace(str(server.folder), str(network.folder))


def _use_up_connections(server: PostgresServer, others: ExitStack) -> None:
    """Takes all connections; one that was closed is free when the server has noticed."""
    held = 0

    def all_are_held() -> bool:
        nonlocal held
        with suppress(psycopg.OperationalError):
            while True:
                others.enter_context(closing(psycopg.connect(server.url())))
                held += 1
        return held == CONNECTIONS

    wait_until(all_are_held, "all connections")


def _end_leases(project: Project) -> None:
    address = read_address(project.settings.database)
    with psycopg.connect(address.url) as admin:
        admin.execute(f"UPDATE {address.schema}.owners SET until = 0")


@contextmanager
def _small_disk(server: PostgresServer) -> Iterator[str]:
    """A tablespace on a file system of two megabytes."""
    folder = server.folder / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk needs the right to mount one")
    try:
        os.chown(folder, server.folder.stat().st_uid, -1)
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        yield "small"
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
