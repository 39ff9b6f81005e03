"""W16: the web server with 10,000 runs, a long review and 200 open pages.

Requests are sent in process. Seconds are CPU time of this process, in which both ends of each
request run, except for the times from a commit to its event and to a refreshed page, which are what
a clock shows.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

import httpx
from starlette.types import Message, Scope

from benchmarks.reviews import cpu_of, long_loop
from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale
from signoff.app.settings.project import Project, open_project
from signoff.core.outcome import Status
from signoff.surfaces.web.access import Access, AccessScope
from signoff.surfaces.web.server import PageApp, create_app
from tests.store_suite.journal_writer import JournalWriter, start_run

BASE = "http://127.0.0.1:8717"
PAGES = 200
WATCHED_PAIRS = 9
"""How often an engine is measured alone and with open pages, in turn."""
LEAST_PAUSE, MOST_PAUSE = 0.4, 3.0
"""Seconds between two refreshes of a page: at least, and at most after slow ones."""


@dataclass(frozen=True)
class Watching:
    """How long open pages are watched."""

    pages: int = PAGES
    quiet_seconds: float = 3.0
    commits: int = 10
    """Commits whose way to the open pages is timed, one by one."""
    pause_seconds: float = 3.2
    """Before each of these commits; all pages are ready to refresh again after it."""
    busy_commits: int = 60


BRIEF = Watching(pages=5, quiet_seconds=0.5, commits=2, pause_seconds=0.6, busy_commits=5)
"""For a quick sample and for the warm-up; few pages refresh at once, so their pause is short."""


async def web_page(folder: Path, scale: Scale) -> Figures:
    """W16: each figure in turn."""
    full = scale == FULL
    program = str(Path(sys.executable).with_name("signoff"))
    long_loop(folder, 20 if full else 3)
    cpu_of([program, "run", "flow.yaml", "--name", "one", "--no-input"], folder)
    with open_project(folder, os.environ) as project:
        for number in range(10_000 if full else 100):
            run = start_run(project.store, f"run-{number}")
            run.append(status=Status.COMPLETED, release=True)
        access = Access.of(project.home)
        app = create_app(project, access)
        headers = {"authorization": f"Bearer {access.new_token('bench', AccessScope.READ)}"}
        figures = await _requests(app, headers, 50 if full else 3)
        figures |= await _open_pages(app, headers, project, Watching() if full else BRIEF)
        app.feed.close()
        access.close()
    return {**figures, "start_s": _start(program, folder)}


async def watched_engine(folder: Path, scale: Scale) -> Figures:
    """W16-engine: what 200 open pages cost an engine that does W4 in a process of its own."""
    pairs = WATCHED_PAIRS if scale == FULL else 1
    ratios = [await _watched_ratio(folder / str(number), scale) for number in range(pairs)]
    return {"slower_pct": 100 * (median(ratios) - 1)}


async def _watched_ratio(folder: Path, scale: Scale) -> float:
    """Returns the engine's CPU time with open pages, divided by that without, taken in turns."""
    spent = []
    for name in ("alone", "watched"):
        home = folder / name / ".signoff"
        home.mkdir(parents=True)
        with open_project(home.parent, os.environ) as project:
            if name == "alone":
                spent.append(await _engine_seconds(home, scale))
                continue
            access = Access.of(project.home)
            app = create_app(project, access)
            token = access.new_token("bench", AccessScope.READ)
            scope = _scope({"authorization": f"Bearer {token}"})
            pages = [_OpenPage(app, scope, "/api/v1/events", "/") for _ in range(PAGES)]
            async with _listening(pages):
                spent.append(await _engine_seconds(home, scale))
            app.feed.close()
            access.close()
    return spent[1] / spent[0]


async def _engine_seconds(folder: Path, scale: Scale) -> float:
    """Returns the CPU seconds of a process that does W4 on the database in a folder."""
    size = [] if scale == FULL else ["--quick"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.engine", "W4-cpu", str(folder), *size,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return float(json.loads(output.splitlines()[-1])["cpu_s"])


async def _requests(app: PageApp, headers: dict[str, str], times: int) -> Figures:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=BASE, headers=headers
    ) as client:
        page = (await client.get("/runs/one", headers={"accept-encoding": "identity"})).content
        return {
            "list_ms": await _percentile(lambda: client.get("/api/v1/runs"), times),
            "search_ms": await _percentile(lambda: client.get("/api/v1/runs?text=run-77"), times),
            "home_ms": await _percentile(lambda: client.get("/"), times),
            "run_ms": await _percentile(lambda: client.get("/runs/one"), times),
            "findings_ms": await _percentile(
                lambda: client.get("/api/v1/runs/one/findings"), times
            ),
            "page_kb": len(gzip.compress(page, 5)) / 1024,
        }


async def _percentile(send: Callable[[], Awaitable[httpx.Response]], times: int) -> float:
    """Returns the milliseconds below which 95 of 100 requests stay."""
    spent = []
    for _ in range(times + 1):
        begun = time.process_time()
        answer = await send()
        spent.append((time.process_time() - begun) * 1000)
        assert answer.status_code == 200, answer.text
    # The first one opens connections and fills caches.
    return sorted(spent[1:])[int(0.95 * times)]


class _OpenPage:
    """A page that listens, and refreshes itself after each change as the page's script does."""

    def __init__(
        self,
        app: PageApp,
        scope: Scope,
        events: str = "/api/v1/runs/live/events",
        page: str = "/runs/one",
    ) -> None:
        self.events: asyncio.Queue[float] = asyncio.Queue()
        """When each event arrived."""
        self.refreshes: asyncio.Queue[float] = asyncio.Queue()
        """When each refresh was there."""
        self._app = app
        self._scope = scope
        self._paths = events, page
        self._changed = asyncio.Event()
        self._left = asyncio.Event()

    async def listen(self) -> None:
        """Listens until it leaves."""
        path = self._paths[0]
        scope = {**self._scope, "path": path, "raw_path": path.encode()}
        refreshing = asyncio.create_task(self._refresh())
        await self._app(scope, self._receive, self._send)
        refreshing.cancel()

    def leave(self) -> None:
        """Closes the page."""
        self._left.set()

    def forget(self) -> None:
        """Forgets what has arrived so far."""
        for queue in (self.events, self.refreshes):
            while not queue.empty():
                queue.get_nowait()

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        # A comment is a heartbeat.
        if message.get("body") and not message["body"].startswith(b":"):
            self.events.put_nowait(time.monotonic())
            self._changed.set()

    async def _refresh(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            begun = time.monotonic()
            await self._app(self._page_scope(), self._receive, self._took)
            ended = time.monotonic()
            self.refreshes.put_nowait(ended)
            # What static/page.js does.
            await asyncio.sleep(max(LEAST_PAUSE, min(MOST_PAUSE, 20 * (ended - begun))))

    def _page_scope(self) -> Scope:
        path = self._paths[1]
        headers = [*self._scope["headers"], (b"hx-request", b"true"), (b"accept-encoding", b"gzip")]
        return {**self._scope, "path": path, "raw_path": path.encode(), "headers": headers}

    async def _took(self, message: Message) -> None:
        assert message.get("status", 200) == 200, message


async def _open_pages(
    app: PageApp, headers: dict[str, str], project: Project, watching: Watching
) -> Figures:
    other = project.store.reopen()
    run = start_run(other, "live")
    scope = _scope(headers)
    pages = [_OpenPage(app, scope) for _ in range(watching.pages)]
    async with _listening(pages):
        quiet = await _load(asyncio.sleep(watching.quiet_seconds))
        times = [await _delays(run, pages, watching.pause_seconds) for _ in range(watching.commits)]
        busy = await _load(_commits(run, watching.busy_commits))
    other.close()
    events, refreshes = (sorted(chain(*each)) for each in zip(*times, strict=True))
    return {
        "quiet_pct": quiet,
        "busy_pct": busy,
        "event_ms": events[int(0.95 * len(events))] * 1000,
        "refresh_ms": refreshes[int(0.95 * len(refreshes))] * 1000,
    }


def _scope(headers: dict[str, str]) -> Scope:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "scheme": "http",
        "http_version": "1.1", "method": "GET", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8717"), *pairs], "server": ("127.0.0.1", 8717),
    }  # fmt: skip


@asynccontextmanager
async def _listening(pages: Sequence[_OpenPage]) -> AsyncIterator[None]:
    """Opens pages, waits until all of them listen, and closes them at the end."""
    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(page.listen()) for page in pages]
        stack.push_async_callback(asyncio.wait, tasks)
        for page in pages:
            stack.callback(page.leave)
            await page.events.get()
            await page.refreshes.get()
        yield


async def _delays(
    run: JournalWriter, pages: Sequence[_OpenPage], pause_seconds: float
) -> tuple[list[float], list[float]]:
    """Returns the seconds from a commit to its event and to the refresh, for each page."""
    await asyncio.sleep(pause_seconds)
    for page in pages:
        page.forget()
    begun = time.monotonic()
    await asyncio.to_thread(run.append)
    refreshes = [await page.refreshes.get() - begun for page in pages]
    return [await page.events.get() - begun for page in pages], refreshes


async def _commits(run: JournalWriter, count: int) -> None:
    """Commits ten times a second, as an active review does at most."""
    for _ in range(count):
        await asyncio.to_thread(run.append)
        await asyncio.sleep(0.1)


async def _load(work: Awaitable[object]) -> float:
    """Returns the part of a core that this process needs meanwhile, in percent."""
    begun, spent = time.monotonic(), time.process_time()
    await work
    return 100 * (time.process_time() - spent) / (time.monotonic() - begun)


def _start(program: str, folder: Path) -> float:
    """Returns the CPU seconds of the server until it has answered once."""
    import psutil  # type: ignore[import-untyped]  # it brings no types

    command = [program, "web", "--port", "0", "--json"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdout is not None
        link = json.loads(server.stdout.readline())["link"]
        assert httpx.get(link, follow_redirects=True, trust_env=False).status_code == 200
        times = psutil.Process(server.pid).cpu_times()
        server.send_signal(signal.SIGINT)
    return float(times.user + times.system)
