"""A dump of the schema, restored: runs continue from it, and what came later is gone."""

import asyncio
import json
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from signoff import Outcome, Question, Status, StepContext, StepDef, Workflow
from signoff.core.step import Result
from signoff.runtime.engine import Engine
from signoff.store.postgres.store import PostgresStore
from tests.stubs.postgres import PostgresServer

pytestmark = pytest.mark.slow

ANSWER = json.dumps({"value": "Ann"})


def asks() -> Workflow:
    async def ask(ctx: StepContext) -> Result:
        return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}

    return Workflow("asks", StepDef("ask", handler=ask, next={Outcome.OK: None}))


async def start(url: str, name: str) -> None:
    with closing(PostgresStore(url)) as store:
        async with Engine(store) as engine:
            assert (await engine.start(asks(), name=name)).status is Status.WAITING


async def answer(url: str, name: str) -> Status:
    with closing(PostgresStore(url)) as store:
        async with Engine(store) as engine:
            (item,) = store.items(name)
            store.answer(item.id, ANSWER, "ann", 1.0, item.digest)
            return (await engine.resume(name, asks())).status


def test_runs_continue_from_a_restored_dump(postgres: PostgresServer, tmp_path: Path) -> None:
    """What the documentation tells an operator to do works, and says what is lost."""
    url = postgres.new_schema()
    server, schema = url.split("&schema=")
    dump = tmp_path / "runs.sql"
    asyncio.run(start(url, "before"))

    with dump.open("wb") as file:
        command = [str(postgres.programs / "pg_dump"), f"--schema={schema}", server]
        subprocess.run(command, stdout=file, check=True)
    # Both are gone after the restore: the answer, and the run that was started after the dump.
    assert asyncio.run(answer(url, "before")) is Status.COMPLETED
    asyncio.run(start(url, "after"))
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"DROP SCHEMA {schema} CASCADE")
    restore = [
        str(postgres.programs / "psql"),
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        f"--file={dump}",
        server,
    ]
    subprocess.run(restore, stdout=subprocess.DEVNULL, check=True)

    with closing(PostgresStore(url)) as store:
        assert [(row.name, row.status) for row in store.rows()] == [("before", Status.WAITING)]
    assert asyncio.run(answer(url, "before")) is Status.COMPLETED
