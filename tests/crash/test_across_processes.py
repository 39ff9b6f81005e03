import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.errors import UnknownName
from signoff.core.outcome import Status
from signoff.runtime.store_port import Owner, Store
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.run_stores import new_address, open_address

ROOT = Path(__file__).parents[2]


class EngineCommands:
    """Performs operations of the engine on one store, in a process each."""

    def __init__(self, folder: Path) -> None:
        self.address = new_address(folder)

    def argv(self, command: str) -> list[str]:
        program = [sys.executable, "-m", "tests.crash.engine_command"]
        return [*program, command, self.address]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(command), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )

    def open(self) -> closing[Store]:
        return closing(open_address(self.address))


@pytest.fixture
def commands(tmp_path: Path) -> EngineCommands:
    return EngineCommands(tmp_path)


@pytest.fixture
def driver(commands: EngineCommands) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is driving the run."""
    program = commands.argv("hang")
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL) as started:
        with commands.open() as store:
            wait_until(lambda: _has_run(store), "the start of the run")
        yield started
        started.kill()


def test_a_run_whose_process_was_killed_is_taken_over_at_once(
    commands: EngineCommands, driver: subprocess.Popen[bytes]
) -> None:
    """Users do not wait for the lease of a process that no longer exists."""
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    with commands.open() as store:
        owner = store.owner(store.row("run").owner or "", lambda _owner: True)
        assert owner is not None
        # The lease of the killed process has an hour left.
        store.beat(owner, lease_seconds=3600)

    cancelled = commands.run("cancel")

    assert cancelled.stdout == "cancelled\n", cancelled.stderr


def test_a_process_that_was_suspended_cannot_write_to_a_run_it_has_lost(
    commands: EngineCommands, driver: subprocess.Popen[bytes]
) -> None:
    """A laptop that was asleep must not write into the journal of the new owner."""
    driver.send_signal(signal.SIGSTOP)
    with commands.open() as store:
        row = store.row("run")
        fence = store.take(row.id, _other_owner(), lambda _owner: False)
        head = store.row("run").head

        driver.send_signal(signal.SIGCONT)
        driver.send_signal(signal.SIGINT)
        driver.wait(PATIENCE_SECONDS)

        after = store.row("run")
        assert (after.head, after.fence) == (head, fence)
        assert after.status is Status.RUNNING


def _other_owner() -> Owner:
    return Owner("other", "another-host", 1, "")


def _has_run(store: Store) -> bool:
    try:
        store.row("run")
    except UnknownName:
        return False
    return True
