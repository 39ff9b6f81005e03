"""A runner that is killed the moment its program starts has had no time to record it."""

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
from signoff.store.sqlite import SqliteStore
from tests.crash.orphan_story import AGENT, story
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes cannot be looked at here"
)


@pytest.mark.parametrize("kind", ["command", "agent"])
def test_what_it_started_is_gone_before_the_same_is_started_again(
    kind: str, tmp_path: Path
) -> None:
    """Two agents at work on one thing cost twice, and write over each other."""
    argv = [sys.executable, "-m", "tests.crash.orphan_story", kind, str(tmp_path)]
    killed = subprocess.run(argv, check=False, timeout=PATIENCE_SECONDS)
    wait_until((tmp_path / "pid").exists, "the start of the program")
    orphan = int((tmp_path / "pid").read_text())
    assert killed.returncode == -signal.SIGKILL
    assert birth_of(orphan) is not None

    async def resume() -> tuple[Status, list[str]]:
        with closing(SqliteStore(tmp_path / "signoff.db")) as store:
            async with Engine(store, agents={"program": AGENT}) as engine:
                result = await engine.resume("run", story(kind, tmp_path))
        return result.status, result.state["alive"]

    status, alive = asyncio.run(resume())

    assert (status, alive) == (Status.COMPLETED, [])
    assert birth_of(orphan) is None
