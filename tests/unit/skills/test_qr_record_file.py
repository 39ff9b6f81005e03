import json
import os
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import UnreadableFile
from signoff.skills.qr import QRVerdict, begin_round, judge_file, qr_file, read_record, record
from signoff.skills.types import QRStatus
from tests.tables import table

ASK = QRVerdict(QRStatus.FAIL, "ask")  # type: ignore[arg-type]  # an equal text will do
HOSTILE = 'a\nb\r\x1b[2J\u202e</finding> <x a="1"> & $(id) `id` \ud800 \x00 "quoted" \\n é'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return qr_file(tmp_path, "plan-design")


BEGUN = {"round": ""}
"""What a file has after its first round has begun."""


def write(path: Path, *items: dict[str, Any], **more: Any) -> None:
    path.write_text(json.dumps({"phase": "plan-design", "iteration": 1, "items": items} | more))


def items_of(path: Path) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in json.loads(path.read_text())["items"]}


def statuses(path: Path) -> dict[str, str]:
    return {item.id: item.status.value for item in read_record(path).items}


def test_a_result_is_recorded_and_nothing_else_changes(path: Path) -> None:
    """A reviewer must not change what another one wrote."""
    others = {"id": "b", "check": "é", "note": [1, {"x": None}], "status": "FAIL", "finding": "no"}
    write(path, {"id": "a", "check": "x", "extra": 1}, others, owner="ann")

    item = record(path, "a", "FAIL", "it is missing")

    assert (item.status, item.finding) == ("FAIL", "it is missing")
    assert json.loads(path.read_text()) == {
        "phase": "plan-design",
        "iteration": 1,
        "items": [
            {"id": "a", "check": "x", "extra": 1, "status": "FAIL", "finding": "it is missing"},
            others,
        ],
        "owner": "ann",
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failure_without_a_finding_keeps_the_earlier_one(path: Path) -> None:
    """Otherwise a reviewer in a hurry would erase why it failed."""
    write(path, {"id": "a", "finding": "it is missing"})

    record(path, "a", "FAIL")

    assert items_of(path)["a"]["finding"] == "it is missing"


def test_a_hostile_finding_is_stored_as_it_is_and_shown_escaped(path: Path) -> None:
    """A terminal that shows the file must not obey it."""
    write(path, {"id": "a"}, {"id": "b", "check": HOSTILE})

    record(path, "a", "FAIL", HOSTILE)
    record(path, "b", "PASS")

    assert items_of(path)["a"]["finding"] == HOSTILE
    assert items_of(path)["b"]["check"] == HOSTILE
    shown = path.read_text()
    assert not {"\x1b", "\x00", "\r", "\u202e"} & set(shown)
    assert [line for line in shown.splitlines() if line.startswith("b")] == []


def test_the_verdict_comes_from_the_file(path: Path) -> None:
    """Items and iteration are read from it, and the word of the reviewer is not."""
    write(path, {"id": "a", "status": "FAIL", "severity": "COULD"}, iteration=2)
    early = judge_file(path, "pass")
    write(path, {"id": "a", "status": "FAIL", "severity": "COULD"}, iteration=3)
    late = judge_file(str(path), "fail")
    write(path, {"id": "a", "status": "PASS"})
    path.write_text(json.dumps({"items": [{"id": "a", "status": "PASS"}]}))

    assert (early.status, early.action) == ("fail", "redo")
    assert (late.status, late.action) == ("pass", "proceed")
    assert judge_file(path).status == "pass"
    assert judge_file(path, "fail").action == "verify"


GOOD = json.dumps({"iteration": 1, "items": [{"id": "a", "status": "PASS"}]})
DAMAGED = {
    "empty": "",
    "truncated": GOOD[:-2],
    "text": "PASS",
    "null": "null",
    "list": "[]",
    "number": "1",
    "two objects": GOOD + GOOD,
    "no items": "{}",
    "no list": '{"items": {"a": {"status": "PASS"}}}',
    "nothing to check": '{"items": []}',
    "items that are texts": '{"items": ["PASS"]}',
    "no id": '{"items": [{"status": "PASS"}]}',
    "empty id": '{"items": [{"id": " ", "status": "PASS"}]}',
    "id of two lines": r'{"items": [{"id": "a\nb", "status": "PASS"}]}',
    "id like an option": '{"items": [{"id": "--all", "status": "PASS"}]}',
    "long id": json.dumps({"items": [{"id": "a" * 101, "status": "PASS"}]}),
    "hostile group": r'{"items": [{"id": "a", "group_id": "\u001b[2J", "status": "PASS"}]}',
    "one id twice": '{"items": [{"id": "a", "status": "PASS"}, {"id": "a", "status": "PASS"}]}',
    "iteration 0": GOOD.replace("1", "0"),
    "iteration true": GOOD.replace("1", "true"),
    "iteration as text": GOOD.replace("1", '"1"'),
    "iteration 1.5": GOOD.replace("1", "1.5"),
    "no iteration": GOOD.replace("1", "null"),
    "huge iteration": GOOD.replace("1", "1" * 5000),
    "deep": "[" * 100_000,
    "not text": b"\xff\xfe\x00",
}


@table("content", DAMAGED)
def test_a_human_decides_about_a_damaged_file(tmp_path: Path, content: str | bytes) -> None:
    """It is never a pass, and nothing is recorded into it."""
    path = qr_file(tmp_path, "plan-design")
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(data)

    assert judge_file(path) == judge_file(path, "pass") == ASK
    with pytest.raises(UnreadableFile, match="qr-plan-design"):
        record(path, "a", "PASS")
    assert path.read_bytes() == data
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_link_a_folder_and_a_pipe_are_no_records(path: Path) -> None:
    """A link could lead to another user's file, and a pipe would make the command hang."""
    real = path.with_name("real.json")
    real.write_text(GOOD)
    path.symlink_to(real)
    found = [judge_file(path)]
    path.unlink()
    path.mkdir()
    found.append(judge_file(path))
    path.rmdir()
    os.mkfifo(path)
    found.append(judge_file(path))

    assert found == [ASK] * 3
    assert real.read_text() == GOOD


def test_items_that_were_written_as_passed_are_verified(path: Path) -> None:
    """The agent that writes the items could write that they pass, or that only MUST blocks."""
    write(path, {"id": "a", "status": "PASS"}, {"id": "b", "severity": "COULD"}, iteration=5)

    found = begin_round(path)

    assert (found.iteration, [*found.due()]) == (1, ["a", "b"])
    record(path, "a", "PASS")
    assert [*begin_round(path).due()] == ["b"]


def test_what_failed_is_due_in_the_next_iteration(path: Path) -> None:
    """Only failures are verified again; their findings tell the reviewer what to look at."""
    write(
        path, {"id": "a", "status": "PASS"}, {"id": "b", "status": "FAIL", "finding": "no"}, **BEGUN
    )

    found = begin_round(path)

    assert found.iteration == 2
    assert [item.finding for item in found.due()["b"]] == ["no"]
    assert statuses(path) == {"a": "PASS", "b": "TODO"}


def test_beginning_a_round_twice_counts_once(path: Path) -> None:
    """A reviewer that was killed runs the same command again."""
    write(path, {"id": "a", "status": "FAIL"}, **BEGUN)
    begin_round(path)
    before = path.read_bytes()

    assert begin_round(path).iteration == 2
    assert begin_round(path, work_changed=True).iteration == 2
    assert path.read_bytes() == before


def test_other_failures_count_as_an_iteration(path: Path) -> None:
    """An item that passes, or one that fails now, is a change."""
    write(path, {"id": "a"}, {"id": "b"}, **BEGUN)
    iterations = []
    for a, b in (("FAIL", "FAIL"), ("FAIL", "PASS"), ("FAIL", "PASS"), ("FAIL", "FAIL")):
        record(path, "a", a, "no")
        record(path, "b", b, "no")
        iterations.append(begin_round(path).iteration)

    assert iterations == [2, 3, 3, 4]


def test_what_no_longer_blocks_stays_a_failure_and_is_not_verified_again(path: Path) -> None:
    """From the third iteration on, a harmless failure costs no further review."""
    could = {"id": "a", "status": "FAIL", "severity": "COULD"}
    write(path, could, {"id": "b", "status": "FAIL"}, iteration=2, **BEGUN)

    found = begin_round(path)

    assert found.iteration == 3
    assert [*found.due()] == ["b"]
    assert statuses(path) == {"a": "FAIL", "b": "TODO"}


def test_after_the_work_has_changed_failures_are_due_at_once(path: Path) -> None:
    """The review may have been interrupted when a failure was enough to send the work back."""
    write(path, {"id": "a", "status": "FAIL"}, {"id": "b"}, {"id": "c", "status": "PASS"}, **BEGUN)

    found = begin_round(path, work_changed=True)

    assert found.iteration == 2
    assert statuses(path) == {"a": "TODO", "b": "TODO", "c": "PASS"}


def test_after_the_work_has_changed_a_passed_review_is_due_again(path: Path) -> None:
    """A gate must not pass on the records of an earlier run."""
    write(path, {"id": "a", "status": "PASS"}, {"id": "b", "status": "PASS"}, iteration=2, **BEGUN)

    looked = begin_round(path)
    assert looked.due() == {}

    found = begin_round(path, work_changed=True)
    assert (found.iteration, [*found.due()]) == (2, ["a", "b"])
    assert judge_file(path).action == "verify"


def test_a_round_with_a_name_begins_once(path: Path) -> None:
    """Otherwise a kill at this point would have what has passed verified and paid for again."""
    minor = {"id": "b", "severity": "COULD", "status": "FAIL", "finding": "a typo"}
    write(path, {"id": "a", "severity": "MUST", "status": "PASS"}, minor, iteration=2, **BEGUN)

    first = begin_round(path, work_changed=True, name="run/1")
    again = begin_round(path, work_changed=True, name="run/1")

    assert (first.iteration, again.iteration) == (3, 3)
    assert statuses(path) == {"a": "PASS", "b": "FAIL"}
    begin_round(path, work_changed=True, name="run/2")
    assert statuses(path) == {"a": "TODO", "b": "FAIL"}
