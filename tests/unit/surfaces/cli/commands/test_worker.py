import subprocess
import sys

from tests.patience import PATIENCE_SECONDS

HANGS = """
import asyncio, os, signal, threading
from signoff.surfaces.cli.commands import worker
from signoff.surfaces.cli.output import Output
from signoff.surfaces.cli.views import run_interruptibly

worker.STOP_SECONDS = 1

async def work():
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    try:
        await asyncio.sleep(600)
    finally:
        # What waits for a lost server may block the event loop.
        threading.Event().wait(600)

run_interruptibly(work(), worker.WorkerView(Output(), may_hang=True))
"""


def test_a_worker_that_cannot_give_its_runs_back_ends_with_a_warning() -> None:
    """A lost server would hold up the service manager that stops the worker."""
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )

    assert done.returncode == 0
    assert "could not give its runs back" in done.stderr
