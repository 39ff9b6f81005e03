import json
from pathlib import Path

import pytest

from signoff.core import events as ev
from signoff.runtime.observers import JsonlObserver
from signoff.runtime.ports import Progress, Recorded, Retrying

STARTED = ev.RunStarted("review", "d", "draft", {"topic": "secret plans"}, at=1)


def test_everything_that_happens_is_a_line_of_json(tmp_path: Path) -> None:
    """Other programs follow a run by reading this file."""
    path = tmp_path / "events.jsonl"
    observer = JsonlObserver(path)

    observer.notice(Recorded("one", [STARTED, ev.RunResumed(at=2)]))
    observer.notice(Progress("one", "draft", "ask#1", "thinking\nhard"))
    observer.notice(Retrying("one", "ask#1", "overloaded", 2.5))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["e"] for line in lines] == ["run_started", "run_resumed", "progress", "retrying"]
    assert {line["run"] for line in lines} == {"one"}
    assert lines[2]["text"] == "thinking\nhard"
    observer.close()


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    """Resuming with the same file must not erase how the run began."""
    path = tmp_path / "events.jsonl"
    path.write_text('{"e": "earlier"}\n')
    observer = JsonlObserver(path)

    observer.notice(Recorded("one", [ev.RunResumed(at=2)]))
    observer.close()

    assert len(path.read_text().splitlines()) == 2


def test_a_file_that_cannot_be_written_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """A full disk must not end a run, nor say so at each of its steps."""
    observer = JsonlObserver(Path("/dev/full"))

    observer.notice(Recorded("one", [STARTED]))
    observer.notice(Recorded("one", [ev.RunResumed(at=2)]))
    observer.close()

    assert caplog.messages == [
        "/dev/full cannot be written, so events are missing in it: No space left on device"
    ]


def test_a_file_of_events_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Prompts and replies are in it, as they are in the run's own files."""
    path = tmp_path / "events.jsonl"

    JsonlObserver(path).close()

    assert path.stat().st_mode & 0o777 == 0o600
