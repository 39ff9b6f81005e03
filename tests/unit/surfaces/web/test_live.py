import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.app.json_documents import run_info
from signoff.app.settings.project import Project
from signoff.core.outcome import Status
from signoff.store.connection import LATEST
from signoff.store.sqlite import SqliteStore
from signoff.surfaces.web import live
from signoff.surfaces.web.access import Access, AccessScope, Caller
from signoff.surfaces.web.guard import CALLER
from signoff.surfaces.web.live import PageCache
from signoff.surfaces.web.server import PageApp, create_app
from tests.store_suite.journal_writer import start_run
from tests.unit.surfaces.web.event_reader import EventReader, reading


@pytest.fixture
def project(project: Project, tmp_path: Path) -> Project:
    """A project whose database other connections use as well."""
    project.store = SqliteStore(tmp_path / "signoff.db")
    return project


@pytest.fixture
async def app(project: Project, access: Access) -> AsyncIterator[PageApp]:
    app = create_app(project, access)
    yield app
    app.feed.close()


@pytest.fixture
def other(project: Project) -> SqliteStore:
    """The database, as another process has it open."""
    return SqliteStore(project.store.path)  # type: ignore[attr-defined]  # an SqliteStore


async def opened(reader: EventReader) -> EventReader:
    """Waits until a stream is connected."""
    assert await reader.next() == ("", None)
    return reader


async def test_a_commit_of_another_process_reaches_an_open_page(
    app: ASGIApp, other: SqliteStore, session: str
) -> None:
    """The page lives on what workers and commands do."""
    run = start_run(other, "first")
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)
        await asyncio.to_thread(run.append, step="review", iteration=2)

        event, data = await reader.next()

    assert event == "change"
    expected = {"run": "first", "seq": 2, "status": "running", "step": "review", "round": 2}
    assert data["runs"] == [{**run_info(other.row("first")), **expected}]
    assert reader.id == f"{run.run}.2"


async def test_a_page_of_one_run_hears_nothing_of_others(
    app: ASGIApp, other: SqliteStore, session: str
) -> None:
    """A hundred open pages must not all be written to for each commit."""
    runs = {name: start_run(other, name) for name in ("first", "second")}
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)
        await asyncio.to_thread(runs["second"].append)
        await asyncio.to_thread(runs["first"].append)

        _, data = await reader.next()

    assert [each["run"] for each in data["runs"]] == ["first"]


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/runs/first/events"])
async def test_a_reader_that_was_away_gets_what_it_missed(
    app: ASGIApp, other: SqliteStore, session: str, path: str
) -> None:
    """A laptop that slept must not show an old status."""
    run = start_run(other, "first")
    async with reading(app, path, {"cookie": session}) as reader:
        await opened(reader)
        await asyncio.to_thread(run.append)
        await reader.next()
    await asyncio.to_thread(run.append)
    headers = {"cookie": session, "last-event-id": reader.id}

    async with reading(app, path, headers) as again:
        await opened(again)
        event, data = await again.next()

    assert event == "change"
    assert [(each["run"], each["seq"]) for each in data["runs"]] == [("first", 3)]


async def test_a_page_names_the_position_it_was_written_at(
    app: ASGIApp, other: SqliteStore, session: str
) -> None:
    """What is committed between writing the page and connecting must not be lost."""
    run = start_run(other, "first")
    run.append()

    async with reading(
        app, f"/api/v1/runs/first/events?after={run.run}.1", {"cookie": session}
    ) as reader:
        await opened(reader)

        assert (await reader.next())[0] == "change"


async def test_a_page_of_a_deleted_run_learns_that_it_is_gone(
    app: ASGIApp, other: SqliteStore, session: str
) -> None:
    """It would wait for ever otherwise, and connect again for ever after that."""
    run = start_run(other, "first")
    run.append(release=True, status=Status.COMPLETED)
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)
        await asyncio.to_thread(partial(other.delete, run.run, lambda _owner: False))

        assert await reader.next() == ("gone", {})
        assert await reader.next() == ("end", None)

    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as again:
        await again.next()
    assert again.status == 204


async def test_logging_out_ends_the_streams(
    app: ASGIApp, other: SqliteStore, access: Access, session: str
) -> None:
    """A revoked session must not keep on listening."""
    run = start_run(other, "first")
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)
        access.close_session(session.partition("=")[2])
        await asyncio.to_thread(run.append)

        assert await reader.next() == ("end", None)


async def test_a_stream_of_a_migrated_database_ends_and_another_works_once_it_can(
    app: PageApp,
    project: Project,
    other: SqliteStore,
    session: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its status is sent before the database is read, so an error can no longer be an answer."""
    monkeypatch.setattr(live, "FIRST_LOOK_SECONDS", 0.01)
    start_run(other, "first")
    await app.feed._projects.call(lambda it: it.store.rows())
    with closing(sqlite3.connect(other.path, isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 99")
        async with reading(app, "/api/v1/events", {"cookie": session}) as reader:
            assert await reader.next() == ("end", None)
        newer.execute(f"PRAGMA user_version = {LATEST}")

    async with reading(app, "/api/v1/events", {"cookie": session}) as again:
        await opened(again)


async def test_a_database_that_cannot_be_read_is_tried_again(
    app: PageApp, other: SqliteStore, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be locked for a while, or on a disk that comes back."""
    from signoff.app.runs import store_watch as changes
    from signoff.core.errors import StoreBusy

    run = start_run(other, "first")
    failures = iter([StoreBusy("locked")])
    real = SqliteStore.changes

    def flaky(store: SqliteStore) -> int:
        for failure in failures:
            raise failure
        return real(store)

    monkeypatch.setattr(SqliteStore, "changes", flaky)
    monkeypatch.setattr(changes, "TROUBLE_SECONDS", 0.0)
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)
        await asyncio.to_thread(run.append)

        assert (await reader.next())[0] == "change"


async def test_a_silent_stream_has_a_heartbeat(
    app: ASGIApp, other: SqliteStore, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies close connections on which nothing happens."""
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.01)
    start_run(other, "first")
    async with reading(app, "/api/v1/runs/first/events", {"cookie": session}) as reader:
        await opened(reader)

        assert await reader.next() == ("", None)


async def test_streams_are_guarded_like_everything_else(app: ASGIApp, session: str) -> None:
    """A page of another site must not learn what runs here."""
    for headers in ({}, {"cookie": session, "host": "evil.example"}):
        async with reading(app, "/api/v1/events", headers) as reader:
            await reader.next()
        assert reader.status in (401, 421)


PAGE = [(b"content-type", b"text/html; charset=utf-8")]
ANN, BOB = (Caller(name, AccessScope.DECIDE) for name in ("ann", "bob"))


class Routes:
    """Answers each request with its number, once it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.status = 200
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.asked += 1
        self.was_asked.set()
        body = str(self.asked).encode()
        await self.may_answer.wait()
        if self.status == 0:
            raise RuntimeError
        await send({"type": "http.response.start", "status": self.status, "headers": PAGE})
        await send({"type": "http.response.body", "body": body})


class Pages:
    """Open pages in front of the routes."""

    def __init__(self) -> None:
        self.routes = Routes()
        self.version = 1
        self.time = 0.0
        self._app = PageCache(self.routes, lambda: self.version, lambda: self.time)

    async def refresh(
        self, path: str = "/", caller: Caller = ANN, headers: Any = None, **more: Any
    ) -> str:
        """Returns what a page gets."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            raise AssertionError

        scope = {
            "type": "http", "method": "GET", "path": path, "query_string": b"", CALLER: caller,
            "headers": [(b"hx-request", b"true")] if headers is None else headers, **more,
        }  # fmt: skip
        await self._app(scope, receive, send)
        return b"".join(each.get("body", b"") for each in sent).decode()


async def test_pages_that_show_the_same_are_rendered_once() -> None:
    """Two hundred pages of a run would take two hundred times as long otherwise."""
    pages = Pages()
    pages.routes.may_answer.clear()
    waiting = [asyncio.ensure_future(pages.refresh()) for _ in range(20)]
    await pages.routes.was_asked.wait()
    pages.routes.may_answer.set()

    assert await asyncio.gather(*waiting) == ["1"] * 20
    assert pages.routes.asked == 1


@pytest.mark.parametrize(
    "other",
    [
        {"path": "/runs/other"},
        {"query_string": b"from=1"},
        {"caller": BOB},
        {"caller": ANN._replace(scope=AccessScope.READ)},
        {"headers": [(b"hx-request", b"true"), (b"accept-encoding", b"gzip")]},
        {"headers": []},
        {"method": "POST"},
        {"path": "/api/v1/events"},
    ],
    ids=str,
)
async def test_a_request_that_differs_has_an_answer_of_its_own(other: dict[str, Any]) -> None:
    """One user's page must not be shown to another, and a page that is opened is never a copy."""
    pages = Pages()
    await pages.refresh()

    assert await pages.refresh(**other) == "2"
    assert await pages.refresh() == "1"


async def test_the_server_shares_refreshes_of_a_user(browser: httpx.AsyncClient) -> None:
    """The parts work together: a copy is complete, compressed, and has all headers."""
    headers = {"hx-request": "true"}
    first, second = [await browser.get("/", headers=headers) for _ in range(2)]

    assert second.text == first.text
    assert "Nothing waits for you" in second.text
    assert second.headers["content-security-policy"]
    assert second.headers["content-encoding"] == "gzip"
