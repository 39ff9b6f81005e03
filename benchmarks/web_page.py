"""W16: the web server with 10,000 runs, a long review and 200 open pages.

Requests are sent in process. Seconds are CPU time of this process, in which both ends of each
request run, except for the time from a commit to its event, which is what a clock shows.
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
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
from starlette.types import Message

from benchmarks.reviews import cpu_of, long_loop
from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale
from signoff.app.project import Project, open_project
from signoff.core.outcome import Status
from signoff.testing.store_suite.journal_writer import JournalWriter, start_run
from signoff.web.access import Access, AccessScope
from signoff.web.server import PageApp, create_app

BASE = "http://127.0.0.1:8717"
PAGES = 200
QUIET_SECONDS = 3.0
COMMITS = 40
PAUSE_SECONDS = 0.5
"""Between commits whose way to an open page is timed."""


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
        figures |= await _streams(app, headers, project, PAGES if full else 5)
        app.feed.close()
        access.close()
    return {**figures, "start_s": _start(program, folder)}


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
    """A page that listens."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[float] = asyncio.Queue()
        self._left = asyncio.Event()

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message.get("body"):
            self.arrived.put_nowait(time.monotonic())

    def leave(self) -> None:
        self._left.set()


async def _streams(app: PageApp, headers: dict[str, str], project: Project, count: int) -> Figures:
    other = project.store.reopen()
    run = start_run(other, "live")
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    path = "/runs/live/events"
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "scheme": "http",
        "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [(b"host", b"127.0.0.1:8717"), *pairs],
        "server": ("127.0.0.1", 8717),
    }  # fmt: skip
    async with AsyncExitStack() as stack:
        pages = [_OpenPage() for _ in range(count)]
        tasks = [asyncio.create_task(app(dict(scope), p.receive, p.send)) for p in pages]
        stack.push_async_callback(asyncio.wait, tasks)
        for page in pages:
            stack.callback(page.leave)
            await page.arrived.get()
        quiet = await _load(asyncio.sleep(QUIET_SECONDS))
        late = [await _late(run, pages[0]) for _ in range(COMMITS)]
        busy = await _load(_commits(run))
    other.close()
    late.sort()
    return {"quiet_pct": quiet, "busy_pct": busy, "event_ms": late[int(0.95 * len(late))] * 1000}


async def _late(run: JournalWriter, page: _OpenPage) -> float:
    """Returns the seconds from a commit to its event, after a pause."""
    await asyncio.sleep(PAUSE_SECONDS)
    while not page.arrived.empty():
        page.arrived.get_nowait()
    begun = time.monotonic()
    await asyncio.to_thread(run.append)
    return await page.arrived.get() - begun


async def _commits(run: JournalWriter) -> None:
    """Commits ten times a second, as an active review does at most."""
    for _ in range(COMMITS):
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
