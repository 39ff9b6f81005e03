import asyncio
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.runtime.owner import birth_of
from tests.crash.orphaned_program import AGENT, workflow
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.run_stores import new_address, open_address

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs /proc to inspect processes"
)


@pytest.mark.parametrize("kind", ["command", "agent"])
def test_a_program_of_a_killed_runner_is_ended_before_it_is_started_again(
    kind: str, tmp_path: Path
) -> None:
    """Two agents at the same work cost twice and overwrite each other's files."""
    address = new_address(tmp_path)
    argv = [sys.executable, "-m", "tests.crash.orphaned_program", kind, str(tmp_path), address]
    killed = subprocess.run(argv, check=False, timeout=PATIENCE_SECONDS)
    wait_until((tmp_path / "pid").exists, "the start of the program")
    orphan = int((tmp_path / "pid").read_text())
    assert killed.returncode == -signal.SIGKILL
    assert birth_of(orphan) is not None

    async def resume() -> tuple[Status, list[str]]:
        with closing(open_address(address)) as store:
            async with Engine(store, agents={"program": AGENT}) as engine:
                result = await engine.resume("run", workflow(kind, tmp_path))
        return result.status, result.state["alive"]

    status, alive = asyncio.run(resume())

    assert (status, alive) == (Status.COMPLETED, [])
    assert birth_of(orphan) is None
