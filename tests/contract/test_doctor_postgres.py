"""What `doctor` reports about a real PostgreSQL server."""

import os
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from signoff.agents.base import Health
from signoff.app.settings.checks import Check, check_setup
from signoff.app.settings.home import init_home
from signoff.runtime.owner import this_process
from signoff.runtime.store_port import StoreHealth
from signoff.store.postgres.connection import LATEST, read_address, setup_sql
from signoff.store.postgres.store import PostgresStore
from tests.stubs.postgres import PostgresServer


@pytest.fixture
def url(tmp_path: Path, postgres: PostgresServer) -> str:
    address = postgres.new_schema()
    init_home(tmp_path, {}).home.config.write_text(f"database: {address}\n")
    return address


def looked_at(folder: Path) -> dict[str, Check]:
    environment = {"XDG_CONFIG_HOME": str(folder / "none")}
    report = check_setup(folder, environment, lambda _settings: {"manual": Health(True, "a human")})
    return {check.name: check for check in report.checks}


def test_the_database_its_schema_its_clock_and_its_workers_are_checked(
    tmp_path: Path, url: str
) -> None:
    """An operator sees that each of them was looked at, also when all is well."""
    alone = looked_at(tmp_path)
    with closing(PostgresStore(url)) as store:
        store.register(this_process(), 4, [])
        served = looked_at(tmp_path)

    assert alone["database"].ready
    assert f", tables version {LATEST}, " in alone["database"].detail
    assert alone["clock"].ready
    assert (alone["workers"].ready, served["workers"].ready) == (False, True)
    assert served["workers"].detail == "1 worker, 0 of 4 slots in use, 0 queued"
    assert "signoff worker" in alone["workers"].remedy


@pytest.mark.parametrize(("ahead", "where"), [(600.0, "behind"), (-600.0, "ahead of")])
def test_a_clock_that_is_off_is_reported(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, ahead: float, where: str
) -> None:
    """Deadlines would come due ten minutes late or early."""
    health = StoreHealth("here", LATEST, 0, ahead)
    monkeypatch.setattr(PostgresStore, "health", lambda _store: health)

    clock = looked_at(tmp_path)["clock"]

    assert url
    assert (clock.ready, clock.detail) == (False, f"600.0 s {where} the database's")


@pytest.mark.parametrize("right", ["SELECT", "INSERT", "UPDATE", "DELETE"])
def test_a_right_that_the_role_lacks_is_noticed(tmp_path: Path, url: str, right: str) -> None:
    """Otherwise the first run finds out, and stops."""
    role = f"limited_{os.getpid()}"
    PostgresStore(url).close()
    server, schema = url.split("&schema=")
    with psycopg.connect(server, autocommit=True) as db:
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchall():
            db.execute(f"CREATE ROLE {role} LOGIN")
        db.execute(setup_sql(read_address(url), role))
        init_home(tmp_path, {}).home.config.write_text(
            f"database: {url.replace('postgres@', f'{role}@')}\n"
        )
        assert looked_at(tmp_path)["database"].ready
        db.execute(f"REVOKE {right} ON ALL TABLES IN SCHEMA {schema} FROM {role}")

    database = looked_at(tmp_path)["database"]

    assert not database.ready
    assert "lacks rights" in database.detail or "permission denied" in database.detail
    assert "signoff store setup --print" in database.remedy
