from pathlib import Path

import pytest

from signoff.observers.notifications import delivery_log as module
from signoff.observers.notifications.delivery_log import DeliveryLog


def test_deliveries_are_known_to_the_next_process(tmp_path: Path) -> None:
    """It makes up for those that are missing, and only for those."""
    first = DeliveryLog(tmp_path / "notified.log")
    first.since("hook", 5.0)
    first.add("one", "hook")

    second = DeliveryLog(tmp_path / "notified.log")

    assert second.has("one", "hook")
    assert not second.has("one", "other")
    assert second.since("hook", 9.0) == 5.0
    assert second.since("other", 9.0) == 9.0
    assert (tmp_path / "notified.log").stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_costs_repeats_and_nothing_else(tmp_path: Path) -> None:
    """A crash may have cut a line; a user may have opened the file."""
    path = tmp_path / "notified.log"
    path.write_bytes(b"since hook soon\n\xff\xfe\none\none hook extra\ntwo hook\n")

    log = DeliveryLog(path)

    assert log.has("two", "hook")
    assert not log.has("one", "hook")
    assert log.since("hook", 9.0) == 9.0


def test_a_full_disk_stops_nothing() -> None:
    """The delivery was made; only the note about it is lost."""
    log = DeliveryLog(Path("/dev/full"))

    log.add("one", "hook")

    assert log.has("one", "hook")


def test_the_file_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project lives for years."""
    monkeypatch.setattr(module, "MOST_LINES", 10)
    path = tmp_path / "notified.log"
    log = DeliveryLog(path)
    log.since("hook", 5.0)
    for number in range(20):
        log.add(str(number), "hook")

    again = DeliveryLog(path)

    assert len(path.read_text().splitlines()) == 6
    assert again.since("hook", 9.0) == 5.0
    assert again.has("19", "hook")
    assert not again.has("0", "hook")
