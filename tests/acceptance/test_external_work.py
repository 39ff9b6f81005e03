"""An agent outside drives a run by `next` and `submit`, and gets nowhere without doing the work."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from signoff.app.loading import import_file
from signoff.cli import main
from tests.acceptance import editor
from tests.acceptance.book import WORKER, WORKFLOW
from tests.acceptance.conftest import PROGRAM, Site
from tests.acceptance.desk import Done
from tests.acceptance.examples import take_example
from tests.patience import PATIENCE_SECONDS

NOT_ACCEPTED, WAITING = 16, 10
EXAMPLE = Path(__file__).parents[2] / "examples/book_editing"


class Outside(Site):
    """A book whose agents are played from outside; commands run in this very process."""

    def here(self, *arguments: str) -> Done:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
        return Done(code, out.getvalue(), err.getvalue())

    def next(self) -> Any:
        """Returns where the run stands, as a worker is told."""
        return self.here("next", "one", "--json").json

    def submit(self, *words: str) -> Done:
        return self.here("submit", "one", *words, "--json")

    def planned(self, *chapters: int) -> list[int]:
        """Hands in a plan and returns the numbers of the work it leads to."""
        done = self.submit("--result", json.dumps({"chapters": chapters}))
        assert done.code == 0, done.err
        return [piece["number"] for piece in done.json["work"]]

    def write_chapter(self, number: int, chapter: int) -> Done:
        change = ["UPDATE chapters SET words = 900 WHERE id = ?", [chapter]]
        return self.submit(
            "--item", str(number), "--result", "{}", "--statements", json.dumps([change])
        )

    @property
    def words(self) -> list[int]:
        """How long the chapters are."""
        with closing(sqlite3.connect(self.folder / "book.db")) as db:
            return [words for (words,) in db.execute("SELECT words FROM chapters ORDER BY id")]

    @property
    def step(self) -> str:
        return str(self.next()["step"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    """An empty folder."""
    here = Outside(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in here.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("SIGNOFF_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield here
    here.end_everything()


@pytest.fixture
def outside(place: Outside) -> Outside:
    """A run that waits for its first piece of work."""
    place.write("book.py", WORKFLOW)
    started = place.here("run", "book.py:BOOK", "--pull", "--name", "one", "-i", "title=Emma")
    assert started.code == WAITING, started.err
    return place


def test_a_program_drives_a_run_by_next_and_submit_up_to_the_gate(outside: Outside) -> None:
    """Claude Code can work a run that it neither started nor understands."""
    worker = outside.write("worker.py", WORKER)
    command = [sys.executable, str(worker), PROGRAM, "one"]

    done = subprocess.run(command, cwd=outside.folder, capture_output=True, text=True)
    at_gate = outside.next()
    (gate,) = at_gate["for_people"]
    outside.here("answer", str(gate["number"]), "Approve", "--by", "ann", "--resume")

    assert done.returncode == WAITING, done.stderr
    assert (at_gate["step"], at_gate["work"]) == ("gate", [])
    assert outside.next()["status"] == "completed"
    assert outside.here("next", "one").code == 0
    assert outside.words == [900, 900, 900]


def test_a_worker_is_told_what_must_be_true_afterwards(outside: Outside) -> None:
    """It cannot meet what it does not know."""
    (piece,) = outside.next()["work"]
    told = outside.here("next", "one").out

    assert piece["prompt"].startswith("Say which chapters of Emma to write.")
    assert "plan is empty" in piece["must_hold"][0]
    assert piece["schema"]["required"] == ["chapters"]
    assert "plan is empty" in told
    assert f"signoff submit one --item {piece['number']} --digest" in told


def test_what_happens_can_be_followed_from_a_file(place: Outside) -> None:
    """Whoever hands work out may want to watch it like any other run."""
    place.write("book.py", WORKFLOW)

    place.here("run", "book.py:BOOK", "--pull", "-i", "title=Emma", "--events", "events.jsonl")

    assert '"run_started"' in (place.folder / "events.jsonl").read_text()


def test_a_result_that_does_not_fit_is_refused_and_can_be_mended(outside: Outside) -> None:
    """A slip of form costs no attempt; the run stays where it is."""
    refused = outside.submit("--result", '{"chapter": 1}')

    assert refused.code == NOT_ACCEPTED
    assert refused.json["accepted"] is False
    assert "'chapters' is a required property" in refused.json["problem"]
    assert [piece["attempt"] for piece in refused.json["work"]] == [1]
    assert outside.step == "plan"


def test_a_claim_that_cannot_be_proved_comes_back_with_the_reason_then_goes_to_a_person(
    outside: Outside,
) -> None:
    """Agents say that they are done; the engine looks."""
    (first, _) = outside.planned(1, 2)

    claimed = outside.submit("--item", str(first), "--result", '{"success": true, "result": "ok"}')
    again = next(piece for piece in claimed.json["work"] if piece["item"] == 1)
    idle = outside.submit("--item", str(again["number"]), "--result", '{"written": true}')
    (other,) = idle.json["work"]
    last = outside.write_chapter(other["number"], 2)

    assert (claimed.code, idle.code) == (NOT_ACCEPTED, NOT_ACCEPTED)
    assert "the chapter is too short" in again["prompt"]
    assert again["attempt"] == 2
    assert last.code == WAITING, last.out
    assert "1 of 2 items" in last.json["for_people"][0]["prompt"]
    assert outside.words == [0, 900, 0]


def test_work_on_the_database_counts_only_when_it_is_proved(outside: Outside) -> None:
    """What a worker changed half-way would stay in the way of the next attempt."""
    (number,) = outside.planned(1)
    half = [["UPDATE chapters SET words = 50 WHERE id = 1"]]

    short = outside.submit(
        "--item", str(number), "--result", "{}", "--statements", json.dumps(half)
    )

    assert short.code == NOT_ACCEPTED
    assert "too short" in short.json["problem"]
    assert outside.words == [0, 0, 0]


@pytest.mark.parametrize(
    "statement",
    [
        ["DROP TABLE chapters"],
        ["DELETE FROM chapters"],
        ["SELECT 1"],
        ["UPDATE chapters SET words = 900 WHERE id = 1; DROP TABLE chapters"],
        ["UPDATE chapters SET words = ? WHERE id = 1", [[1]]],
        ["UPDATE nowhere SET words = 1 WHERE id = 1"],
        {"sql": "UPDATE chapters SET words = 900 WHERE id = 1"},
    ],
)
def test_statements_that_may_not_be_are_the_workers_fault(outside: Outside, statement: Any) -> None:
    """A worker that tries is told why not; the run and the database are as they were."""
    (number,) = outside.planned(1)

    refused = outside.submit(
        "--item", str(number), "--result", "{}", "--statements", json.dumps([statement])
    )

    assert refused.code == NOT_ACCEPTED, refused.out
    assert refused.json["status"] == "waiting", refused.json["reason"]
    assert refused.json["work"][0]["feedback"] == refused.json["problem"]
    assert outside.words == [0, 0, 0]


def test_a_failure_is_told_to_the_next_attempt_then_to_a_person(outside: Outside) -> None:
    """A worker that cannot do it says so, and is not made to lie."""
    first = outside.submit("--failure", "Emma is not here")
    second = outside.submit("--failure", "still not here")

    assert first.code == NOT_ACCEPTED
    assert "Previous attempt failed: Emma is not here" in first.json["work"][0]["prompt"]
    assert second.code == NOT_ACCEPTED
    assert second.json["work"] == []
    assert "still not here" in second.json["for_people"][0]["prompt"]


def test_a_worker_cannot_answer_what_a_person_is_asked(outside: Outside) -> None:
    """A gate that the worker opens itself is none."""
    (number,) = outside.planned(1)
    outside.write_chapter(number, 1)
    at_gate = outside.submit("--result", '{"decision": "approved"}')
    (gate,) = at_gate.json["for_people"]

    by_number = outside.submit("--item", str(gate["number"]), "--result", "Approve")
    unnamed = outside.submit("--result", "Approve")

    assert at_gate.code == WAITING
    assert (by_number.code, unnamed.code) == (NOT_ACCEPTED, NOT_ACCEPTED)
    assert "only a human can answer it" in by_number.json["problem"]
    assert "waiting for a human" in unnamed.json["problem"]
    assert outside.step == "gate"


def test_work_is_handed_in_once(outside: Outside) -> None:
    """A worker that repeats itself must not answer the next prompt with its last result."""
    outside.planned(1)

    twice = outside.submit("--item", "1", "--result", '{"chapters": [2]}')

    assert twice.code == NOT_ACCEPTED
    assert "no longer open" in twice.json["problem"]
    assert [piece["item"] for piece in twice.json["work"]] == [1]


def test_work_for_another_prompt_is_refused(outside: Outside) -> None:
    """Something else is asked by now than what the worker read."""
    (before,) = outside.next()["work"]
    outside.submit("--failure", "not today")

    old = outside.submit("--item", str(before["number"]), "--result", '{"chapters": [1]}')
    stale = outside.submit("--digest", before["digest"][:12], "--result", '{"chapters": [1]}')

    assert (old.code, stale.code) == (NOT_ACCEPTED, NOT_ACCEPTED)
    assert "no longer open" in old.json["problem"]
    assert "now shows" in stale.json["problem"]
    assert outside.step == "plan"


@pytest.mark.parametrize("order", list(permutations(range(3)))[1::2])
def test_items_are_worked_in_any_order(outside: Outside, order: tuple[int, ...]) -> None:
    """Three workers take three items, and finish when they finish."""
    numbers = outside.planned(1, 2, 3)

    codes = [outside.write_chapter(numbers[index], index + 1).code for index in order]

    assert codes == [0, 0, 0]
    assert outside.step == "review"


def test_several_pieces_of_work_have_to_be_told_apart(outside: Outside) -> None:
    """A result for one item must not be taken for another's."""
    first, second = outside.planned(1, 2)

    unclear = outside.here("submit", "one", "--result", "{}")

    assert unclear.code == 2
    assert f"#{first}, #{second}; name one; add --item NUMBER" in unclear.err
    assert outside.here("next", "one", "--item", str(second)).out.count("--- work #") == 1


def test_two_workers_hand_in_at_the_same_moment(outside: Outside) -> None:
    """Neither is turned away because the other's work is just being checked."""
    numbers = outside.planned(1, 2)
    words = ["--result", "{}", "--json", "--statements"]
    workers = [
        outside.start(
            "submit", "one", "--item", str(number), *words,
            json.dumps([[f"UPDATE chapters SET words = 900 WHERE id = {chapter}"]]),
        )
        for chapter, number in enumerate(numbers, start=1)
    ]  # fmt: skip

    said = [json.loads(worker.communicate(timeout=PATIENCE_SECONDS)[0]) for worker in workers]

    assert [each["accepted"] for each in said] == [True, True]
    assert outside.words == [900, 900, 0]
    assert outside.step == "review"


def test_a_submit_that_is_killed_loses_nothing(outside: Outside) -> None:
    """The work was recorded before it was checked; whoever asks next lets the run go on."""
    (number,) = outside.planned(1)
    outside.write_chapter(number, 1)
    approved = outside.submit("--result", '{"decision": "approved"}')
    outside.write("slow", "")
    gate = approved.json["for_people"][0]["number"]
    outside.here("answer", str(gate), "Approve")

    going_on = outside.start("next", "one")
    outside.wait_for_file("begun")
    going_on.kill()
    going_on.communicate()
    after = outside.here("next", "one", "--json")

    assert after.code == 0, after.err
    assert after.json["status"] == "completed"


def test_work_that_was_recorded_and_not_read_is_read_by_next(outside: Outside) -> None:
    """The worker's process died between handing in and the check."""
    outside.write("plan.json", '{"chapters": [1]}')
    outside.here("answer", "1", "--file", "plan.json")

    after = outside.next()

    assert (after["step"], [piece["item"] for piece in after["work"]]) == ("write", [1])


def test_a_run_that_is_not_played_from_outside_is_not_set_going_by_next(outside: Outside) -> None:
    """Asking what is next must not spend money on agents nobody wanted to ask."""
    outside.here("run", "book.py:BOOK", "--name", "two", "-i", "title=Emma", "--no-input")

    asked = outside.here("next", "two")
    handed_over = outside.here("resume", "two", "--pull")

    assert asked.code == 2, asked.out
    assert "signoff resume two --pull" in asked.err
    assert handed_over.code == WAITING
    assert [piece["step"] for piece in outside.here("next", "two", "--json").json["work"]] == [
        "plan"
    ]


def test_a_hint_reaches_the_conditions(outside: Outside) -> None:
    """Which way to go may be the worker's to propose, and the author's to heed."""
    (number,) = outside.planned(1)
    outside.write_chapter(number, 1)

    done = outside.submit("--result", '{"decision": "rejected"}', "--hint", "gate")

    assert done.code == WAITING
    assert outside.step == "gate"


def test_the_editing_of_a_book_is_driven_from_outside_and_not_without_the_work(
    place: Outside,
) -> None:
    """The worker pretends at every step first, and gets no further than the gate by working."""
    take_example(EXAMPLE, place.folder)
    import_file(place.folder / "sample.py").make_sample(place.folder / "book.db")
    started = place.here("run", "workflow.py", "--pull", "--name", "one")
    program = [sys.executable, str(Path(editor.__file__)), "one"]

    done = subprocess.run(
        program, cwd=place.folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    standing = place.here("next", "one", "--json").json
    (gate,) = standing["for_people"]
    forged = place.here("submit", "one", "--item", str(gate["number"]), "--result", "Approve")
    published = place.here("answer", "one", "Approve and finalize", "--by", "ann", "--resume")

    assert started.code == WAITING, started.err
    assert done.returncode == WAITING, done.stderr
    assert standing["step"] == "human-gate"
    assert forged.code == NOT_ACCEPTED
    assert published.code == 0, published.err
    with closing(sqlite3.connect(place.folder / "book.db")) as db:
        texts = db.execute(
            "SELECT text FROM chapters JOIN book_versions ON id = version_id "
            "WHERE status = 'published' ORDER BY chapters.number LIMIT 2"
        ).fetchall()
    assert [text for (text,) in texts] == [editor.TEXTS["keeper"], editor.TEXTS["storm"]]


def test_work_that_could_not_be_checked_is_kept_and_checked_later(outside: Outside) -> None:
    """A worker who is told only that it failed would do everything again, for nothing."""
    (number,) = outside.planned(1)
    book = outside.folder / "book.db"
    away = book.rename(outside.folder / "away.db")
    book.mkdir()

    broken = outside.write_chapter(number, 1)
    book.rmdir()
    away.rename(book)

    assert broken.code == NOT_ACCEPTED, broken.err
    assert "your submission is kept" in broken.json["problem"]
    assert outside.step == "review"
    assert outside.words == [900, 0, 0]
