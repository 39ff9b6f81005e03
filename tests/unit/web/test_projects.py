import asyncio
import threading

import pytest

from signoff.app.project import Project
from signoff.web.projects import ProjectPool


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
