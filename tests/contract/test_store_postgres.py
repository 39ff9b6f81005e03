"""The PostgreSQL store, directly and behind a pooler, and what it does when the server is lost."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg
import pytest

from signoff.core.errors import ConfigError, StoreBusy, StoreError, StoreTooNew, WriteFailed
from signoff.core.outcome import Status
from signoff.core.remedies import SetUpStore
from signoff.store.postgres import store as postgres_store
from signoff.store.postgres.connection import LATEST, read_address, setup_sql, shipped_migrations
from signoff.store.postgres.store import PostgresStore
from tests.store_suite import StoreSuite
from tests.store_suite.journal_writer import ANN, JournalWriter, NewStore, new_request, start_run
from tests.stubs.cut_connection import CutConnection, cut_connection
from tests.stubs.pgbouncer import program as pgbouncer_program
from tests.stubs.pgbouncer import running_pgbouncer
from tests.stubs.pooler import running_pooler
from tests.stubs.postgres import PostgresServer

ROLE = f"runs_worker_{os.getpid()}"


class TestPostgresStore(StoreSuite):
    @pytest.fixture
    def new_store(self, postgres: PostgresServer) -> NewStore:
        return lambda: PostgresStore(postgres.new_schema())


@pytest.mark.slow
class TestPostgresStoreBehindPooler(StoreSuite):
    """Each transaction gets another session, so nothing may rely on one."""

    @pytest.fixture
    def new_store(self, postgres: PostgresServer) -> Iterator[NewStore]:
        # The path of a socket must be short.
        with TemporaryDirectory() as folder, running_pooler(postgres.folder, Path(folder)):
            yield lambda: PostgresStore(_through(postgres.new_schema(), postgres, Path(folder)))


@pytest.fixture(scope="module")
def pgbouncer(postgres: PostgresServer) -> Iterator[Path]:
    """The folder with the socket of a real PgBouncer."""
    if pgbouncer_program() is None:
        pytest.skip("pgbouncer is not installed")
    with TemporaryDirectory() as folder, running_pgbouncer(postgres.folder, Path(folder)):
        yield Path(folder)


@pytest.mark.slow
class TestPostgresStoreBehindPgBouncer(StoreSuite):
    """The pooler that most teams have; the stand-in above is stricter, but it is ours."""

    @pytest.fixture
    def new_store(self, postgres: PostgresServer, pgbouncer: Path) -> NewStore:
        return lambda: PostgresStore(_through(postgres.new_schema(), postgres, pgbouncer))


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture
def network(postgres: PostgresServer) -> Iterator[CutConnection]:
    with TemporaryDirectory() as folder, cut_connection(postgres.folder, Path(folder)) as cut:
        yield cut


@pytest.fixture
def store(postgres: PostgresServer, network: CutConnection, url: str) -> Iterator[PostgresStore]:
    """A store whose connection can be cut."""
    with closing(PostgresStore(_through(url, postgres, network.folder))) as store:
        yield store


def _through(url: str, server: PostgresServer, folder: Path) -> str:
    return url.replace(str(server.folder), str(folder))


def _admin(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    address = read_address(url)
    return psycopg.connect(address.url, autocommit=True)


# A lost connection


def test_a_commit_whose_answer_was_lost_counts_once(
    store: PostgresStore, network: CutConnection
) -> None:
    """The server did it, but the client does not know: to do it again would double it."""
    run = start_run(store)

    network.cut_after("COMMIT")
    result = run.append(opened=[new_request()])

    assert network.cuts == 1
    assert result.accepted
    assert run.events() == ['[{"e":"run-1"}]', '[{"e":"run-2"}]']
    assert len(store.items()) == 1
    assert run.append().accepted


def test_a_run_whose_creation_was_not_confirmed_exists_once(
    store: PostgresStore, network: CutConnection
) -> None:
    """Its name is taken by itself, which is not a reason to refuse it."""
    run = JournalWriter(store)

    network.cut_after("COMMIT")
    result = run.begin()

    assert network.cuts == 1
    assert (result.accepted, result.run) == (True, store.row("run").id)
    assert run.append().accepted


def test_a_commit_that_another_runner_overtook_is_still_refused(
    store: PostgresStore, network: CutConnection, url: str
) -> None:
    """Reading back must not mistake the new owner's commit for one's own."""
    run = start_run(store)
    with closing(PostgresStore(url)) as other:
        other.take(run.run, ANN, lambda _owner: False)

    network.cut_after("COMMIT")
    result = run.append()

    assert (network.cuts, result.accepted) == (1, False)
    assert run.events() == ['[{"e":"run-1"}]']


def test_an_answer_that_was_not_confirmed_counts_once(
    store: PostgresStore, network: CutConnection
) -> None:
    """The user must not read that someone else has answered."""
    start_run(store).append(opened=[new_request()])
    (item,) = store.items()

    network.cut_after("COMMIT")
    answered = store.answer(item.id, '{"value":"yes"}', "ann", 5.0, "shown")

    assert network.cuts == 1
    assert (answered.state, answered.answered_by) == ("answered", "ann")


def test_a_commit_without_waiting_reports_a_lost_server_at_once(
    store: PostgresStore, network: CutConnection
) -> None:
    """The event loop must not stand still while a server restarts; a thread waits for it."""
    run = start_run(store)
    commit = run.next()

    network.refuse()
    network.cut_after("COMMIT")
    with pytest.raises(StoreBusy):
        store.commit([commit], wait=False)
    network.refuse(False)
    (result,) = store.commit([commit])

    assert result.accepted
    assert len(run.events()) == 2


def test_a_server_that_stays_away_is_reported_without_the_password(
    store: PostgresStore, network: CutConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user has to know which server to look at."""
    monkeypatch.setattr(postgres_store, "COMMIT_PATIENCE_SECONDS", 0.2)
    run = start_run(store)

    network.refuse()
    network.cut_after("COMMIT")
    with pytest.raises(WriteFailed, match=r"database postgres on .* cannot be reached"):
        run.append()


def test_sessions_that_an_administrator_ends_are_opened_again(url: str) -> None:
    """A restart of the server ends all sessions."""
    with closing(PostgresStore(url)) as store:
        run = start_run(store)
        with _admin(url) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'signoff'"
            )

        assert run.append().accepted
        assert store.row("run").head == 2


# Administrators


def test_wrong_credentials_are_reported_at_once(postgres: PostgresServer) -> None:
    """Waiting would not help, and the password must not be in a log."""
    url = f"postgresql://nobody_here:{quote('p@ss')}@/postgres?host={postgres.folder}"

    with pytest.raises(StoreError, match="refuses the connection") as caught:
        PostgresStore(url)

    assert "p@ss" not in str(caught.value)
    assert "p%40ss" not in str(caught.value)


def test_a_role_for_rows_only_can_do_everything(url: str) -> None:
    """No administrator lets workers change the schema."""
    with _admin(url) as admin:
        _create_role(admin)
        admin.execute(setup_sql(read_address(url), ROLE))

    with closing(PostgresStore(url.replace("postgres@", f"{ROLE}@"))) as store:
        run = start_run(store)
        run.append(opened=[new_request()], status=Status.WAITING, release=True)
        store.answer(1, "{}", "ann", 5.0, "shown")
        store.delete(run.run, lambda _owner: False)

        assert store.rows() == []


def test_a_role_without_a_right_is_told_how_the_store_is_set_up(url: str) -> None:
    """An administrator can run the statements that it prints."""
    PostgresStore(url).close()
    schema = read_address(url).schema
    with _admin(url) as admin:
        _create_role(admin)
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {ROLE}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {ROLE}")

    store = PostgresStore(url.replace("postgres@", f"{ROLE}@"))
    with closing(store), pytest.raises(StoreError, match="permission denied") as caught:
        start_run(store)

    assert caught.value.remedies == (SetUpStore(),)


def test_tables_of_a_newer_version_are_left_alone(url: str) -> None:
    """Two versions of workers may run at once; the older one must not write."""
    PostgresStore(url).close()
    _set_version(url, LATEST + 1)

    with pytest.raises(StoreTooNew, match="upgrade signoff"):
        PostgresStore(url)


def test_a_schema_with_a_dangerous_name_is_rejected() -> None:
    """It becomes part of every statement."""
    with pytest.raises(ConfigError, match="lowercase"):
        PostgresStore('postgresql:///x?schema=a"; DROP TABLE b; --')


def test_the_newest_migration_is_the_one_the_program_opens_without_looking() -> None:
    """Otherwise a current schema would be migrated at every start, or an old one never."""
    assert shipped_migrations()[-1].version == LATEST


def _create_role(admin: "psycopg.Connection[tuple[object, ...]]") -> None:
    # All databases of a server share its roles, so it stays for the next test.
    if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchall():
        admin.execute(f"CREATE ROLE {ROLE} LOGIN")


def _set_version(url: str, version: int) -> None:
    with _admin(url) as admin:
        schema = read_address(url).schema
        admin.execute(f"DELETE FROM {schema}.schema_migrations")
        admin.execute(f"INSERT INTO {schema}.schema_migrations VALUES ({version}, 'other')")
