import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from signoff.app.settings.project import Project
from signoff.core.requests import Approval
from signoff.store.connection import LATEST
from signoff.store.sqlite import SqliteStore
from signoff.surfaces.web.access import Access
from signoff.surfaces.web.route_params import ProjectPool
from signoff.surfaces.web.server import create_app
from tests.unit.surfaces.web.views.test_request import waiting


async def test_requests_take_turns_without_blocking_the_loop(project: Project) -> None:
    """One slow query must not stop the server, and a thousand must not open a thousand files."""
    pool, active, most = ProjectPool(project, size=2), [0], [0]
    lock, loop_ran, busy = threading.Lock(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_project: Project) -> None:
        with lock:
            active[0] += 1
            most[0] = max(active[0], most[0])
        loop.call_soon_threadsafe(busy.set)
        assert loop_ran.wait(30)
        with lock:
            active[0] -= 1

    calls = [asyncio.ensure_future(pool.call(slow)) for _ in range(6)]
    await busy.wait()
    loop_ran.set()
    await asyncio.gather(*calls)

    assert most[0] <= 2
    pool.close()


async def test_a_project_is_used_again_unless_its_request_failed(project: Project) -> None:
    """A connection in the middle of something must not reach the next request."""
    pool = ProjectPool(project)

    def fail(_project: Project) -> None:
        raise ValueError("in the middle")

    first = await pool.call(id)
    assert await pool.call(id) == first
    with pytest.raises(ValueError, match="in the middle"):
        await pool.call(fail)
    async with pool.lend() as a, pool.lend() as b:
        assert a is not b


async def test_readers_do_not_wait_for_writers(project: Project) -> None:
    """While another process has the database locked, every page can still be read."""
    pool = ProjectPool(project, size=2)
    waiting = asyncio.Event()

    async def write() -> None:
        async with pool.lend(writes=True):
            waiting.set()
            await asyncio.Event().wait()

    writers = [asyncio.ensure_future(write()) for _ in range(5)]
    await waiting.wait()

    async with asyncio.timeout(60):
        assert await pool.call(lambda lent: lent.home) == project.home
    for writer in writers:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)


class Served:
    """A server with a database file, and a browser that is logged in."""

    def __init__(self, project: Project, access: Access, session: str) -> None:
        self.store = project.store
        base = "http://localhost"
        headers = {"cookie": session, "sec-fetch-site": "same-origin", "origin": base}
        transport = httpx.ASGITransport(create_app(project, access))
        self.browser = httpx.AsyncClient(transport=transport, base_url=base, headers=headers)

    async def works(self) -> bool:
        """Tells whether pages show the request."""
        pages = [await self.browser.get(each) for each in ("/", "/runs/run", "/requests/1")]
        return all(each.status_code == 200 and "Ship it?" in each.text for each in pages)

    async def problem(self) -> str:
        """Returns the kind of the error that programs get, and pages show in the same words."""
        page, document = await self.browser.get("/"), await self.browser.get("/api/v1/runs")
        assert page.status_code == document.status_code == 503
        assert document.json()["detail"].partition(" (")[0] in page.text
        return str(document.json()["kind"])

    async def click(self) -> httpx.Response:
        """Approves on the page."""
        return await self.browser.post(
            "/requests/1", data={**self._approval(), "action": "approve"}
        )

    async def approve(self) -> None:
        """Approves for good; no worker is started to continue the run."""
        body = {**self._approval(), "value": True, "resume": False}
        answer = await self.browser.post("/api/v1/inbox/1/answer", json=body)
        assert answer.json()["answer"]["by"] == "ann"

    def _approval(self) -> dict[str, Any]:
        return {"digest": self.store.item(1).digest}


@pytest.fixture
async def served(
    project: Project, access: Access, session: str, tmp_path: Path
) -> AsyncIterator[Served]:
    store = SqliteStore(tmp_path / "served.db", busy_timeout=0.01)
    project = replace(project, store=store)
    await waiting(project, Approval("Ship it?", "the text"))
    served = Served(project, access, session)
    async with served.browser:
        yield served
    store.close()


async def test_a_database_that_a_newer_signoff_migrated_is_refused(
    served: Served, tmp_path: Path
) -> None:
    """A server runs on while signoff is upgraded; with old queries it could damage new tables."""
    assert await served.works()
    with closing(sqlite3.connect(tmp_path / "served.db", isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 99")
        assert await served.problem() == "StoreTooNew"
        assert "upgrade signoff and start it again" in (await served.click()).text
        newer.execute(f"PRAGMA user_version = {LATEST}")

    assert await served.works()
    await served.approve()


async def test_while_another_process_writes_pages_are_shown_and_answers_refused(
    served: Served, tmp_path: Path
) -> None:
    """The answer can be sent again: nothing of it is recorded."""
    with closing(sqlite3.connect(tmp_path / "served.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = await served.click()
        assert await served.works()

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "locked by another process" in refused.text
    await served.approve()


async def test_a_file_that_was_replaced_is_opened_again(served: Served, tmp_path: Path) -> None:
    """Answers would otherwise be written to a file that has no name any more, and be lost."""
    path, copy, garbage = (tmp_path / name for name in ("served.db", "copy.db", "garbage.db"))
    served.store.backup(copy)
    garbage.write_bytes(b"not a database" * 1000)
    assert await served.works()

    replace_database(path, garbage)
    assert await served.problem() == "StoreDamaged"
    replace_database(path, copy)
    assert await served.works()
    await served.approve()

    with closing(SqliteStore(path)) as found:
        assert found.item(1).answered_by == "ann"


def replace_database(path: Path, new: Path) -> None:
    """Does what a user does who restores a backup."""
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    new.replace(path)
