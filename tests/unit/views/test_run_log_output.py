import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.runtime.ports import Recorded
from signoff.store.sqlite import MemoryStore
from signoff.views.queued import ObserverSetup, QueuedObserver, close_observers
from signoff.views.run_log import LogOutput

STARTED = Recorded("one", [ev.RunStarted("review", "d", "draft", {"topic": "plans"}, at=1)], 1)
STOPPED = Recorded("one", [ev.RunStopped(Status.COMPLETED, at=3)], 2)


def output(folder: Path, file: str = "signoff.log", **options: Any) -> LogOutput:
    setup = ObserverSetup(open_store=MemoryStore, folder=folder)
    return LogOutput(setup, **{"file": file, "level": "info", **options})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_log_file_is_continued_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Each command of a project is a process of its own."""
    for _ in range(2):
        log = output(tmp_path)
        log.notice(STARTED)
        log.notice(STOPPED)
        log.close()

    path = tmp_path / "signoff.log"
    assert [each["message"] for each in lines(path)] == [
        "Starting workflow",
        "Workflow completed",
    ] * 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_rotated_file_is_started_again(tmp_path: Path) -> None:
    """A run that takes days must not write into a file that logrotate has taken away."""
    log = output(tmp_path)
    log.notice(STARTED)
    (tmp_path / "signoff.log").rename(tmp_path / "signoff.log.1")

    log.notice(STOPPED)
    log.close()

    assert len(lines(tmp_path / "signoff.log.1")) == len(lines(tmp_path / "signoff.log")) == 1


def test_warnings_of_signoff_are_in_the_file_and_other_logging_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The program that calls signoff has its own logging, which is not ours to change."""
    before = vars(logging.getLogger("signoff.run")).copy()
    log = output(tmp_path)

    logging.getLogger("signoff").warning("observer %r failed", "otel")
    logging.getLogger("signoff").info("a detail")
    log.notice(STARTED)
    log.close()
    logging.getLogger("signoff").warning("later")

    assert [each["message"] for each in lines(tmp_path / "signoff.log")] == [
        "observer 'otel' failed",
        "Starting workflow",
    ]
    assert "Starting workflow" not in caplog.messages
    assert vars(logging.getLogger("signoff.run")) == before


def test_a_full_disk_is_reported_once_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failed observer never breaks a run."""
    queued = QueuedObserver("log", output(Path("/"), "dev/full"))

    for _ in range(3):
        queued.notice(STARTED)
    close_observers([queued])

    (warning,) = caplog.records
    assert warning.getMessage() == "observer 'log' failed and may miss events"
    assert warning.exc_info is not None
    assert "No space left" in str(warning.exc_info[1])


def test_without_a_file_records_go_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Containers collect what a program prints."""
    log = output(tmp_path, "")
    log.notice(STARTED)
    log.close()

    assert json.loads(capsys.readouterr().err)["message"] == "Starting workflow"
    assert list(tmp_path.iterdir()) == []


def test_processes_that_share_a_file_do_not_cut_each_others_lines(tmp_path: Path) -> None:
    """Each record is one write to the end of the file, however long it is."""
    long = Recorded("one", [ev.RunStarted("w", "d", "draft", {"text": "x" * 50_000}, at=1)], 1)

    def write() -> None:
        setup = ObserverSetup(open_store=MemoryStore, folder=tmp_path, log_content=True)
        log = LogOutput(setup, file="shared.log", level="info")
        for _ in range(40):
            log.notice(long)
            log.notice(STOPPED)
        log.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(lines(tmp_path / "shared.log")) == 4 * 80
