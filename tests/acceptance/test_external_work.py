"""External workers drive a run with `next` and `submit`, and their work is checked."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.documents.python_files import import_file
from tests.acceptance import book_editing_worker
from tests.acceptance.book_workflow import WORKER, WORKFLOW
from tests.acceptance.cli_project import CliProject, CommandResult
from tests.acceptance.examples import copy_example
from tests.acceptance.forked_program import ForkedProgram
from tests.patience import PATIENCE_SECONDS

USAGE, NOT_ACCEPTED, WAITING = 2, 16, 10
EXAMPLE = Path(__file__).parents[2] / "examples/book_editing"


class BookProject(CliProject):
    """A project with a workflow whose work is done by external workers."""

    def next(self) -> Any:
        """Returns the run's status as a worker gets it."""
        return self.call("next", "one", "--json").json

    def submit(self, *words: str) -> CommandResult:
        return self.call("submit", "one", *words, "--json")

    def planned(self, *chapters: int) -> list[int]:
        """Submits a plan and returns the numbers of the resulting work items."""
        done = self.submit("--result", json.dumps({"chapters": chapters}))
        assert done.code == 0, done.err
        return [item["number"] for item in done.json["work"]]

    def write_chapter(self, number: int, chapter: int) -> CommandResult:
        change = ["UPDATE chapters SET words = 900 WHERE id = ?", [chapter]]
        return self.submit(
            "--item", str(number), "--result", "{}", "--statements", json.dumps([change])
        )

    @property
    def words(self) -> list[int]:
        """The word counts of the chapters."""
        with closing(sqlite3.connect(self.folder / "book.db")) as db:
            return [words for (words,) in db.execute("SELECT words FROM chapters ORDER BY id")]

    @property
    def step(self) -> str:
        return str(self.next()["step"])


@pytest.fixture
def book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[BookProject]:
    """An empty project."""
    with closing(BookProject(tmp_path, command_server)) as project:
        project.enter(monkeypatch)
        yield project


@pytest.fixture
def book_run(book: BookProject) -> BookProject:
    """A project with a run that waits for its first work item."""
    book.write("book.py", WORKFLOW)
    result = book.call("run", "book.py:BOOK", "--pull", "--name", "one", "-i", "title=Emma")
    assert result.code == WAITING, result.err
    return book


@pytest.mark.both_stores
def test_a_program_drives_a_run_with_next_and_submit_up_to_the_gate(
    book_run: BookProject, forked_program: ForkedProgram
) -> None:
    """A coding agent can do the work of a run without knowing its workflow."""
    worker = book_run.write("worker.py", WORKER)
    command = [sys.executable, str(worker), forked_program.signoff, "one"]

    done = subprocess.run(command, cwd=book_run.folder, capture_output=True, text=True)
    at_gate = book_run.next()
    (gate,) = at_gate["for_people"]
    book_run.call("answer", str(gate["number"]), "Approve", "--by", "ann", "--resume")

    assert done.returncode == WAITING, done.stderr
    assert (at_gate["step"], at_gate["work"]) == ("gate", [])
    assert book_run.next()["status"] == "completed"
    assert book_run.call("next", "one").code == 0
    assert book_run.words == [900, 900, 900]


def test_a_result_that_violates_the_schema_is_refused_and_can_be_fixed(
    book_run: BookProject,
) -> None:
    """A format error does not use up an attempt."""
    refused = book_run.submit("--result", '{"chapter": 1}')

    assert refused.code == USAGE
    assert "'chapters' is a required property" in refused.err
    assert [item["attempt"] for item in book_run.next()["work"]] == [1]
    assert book_run.step == "plan"


def test_work_that_fails_its_conditions_is_returned_once_then_a_human_decides(
    book_run: BookProject,
) -> None:
    """A worker may claim to be done; the engine checks."""
    (first, _) = book_run.planned(1, 2)

    claimed = book_run.submit("--item", str(first), "--result", '{"success": true, "result": "ok"}')
    again = next(item for item in claimed.json["work"] if item["item"] == 1)
    shown, asked = book_run.call("show", "one").out, book_run.call("next", "one").out
    idle = book_run.submit("--item", str(again["number"]), "--result", '{"written": true}')
    (other,) = idle.json["work"]
    last = book_run.write_chapter(other["number"], 2)

    assert (claimed.code, idle.code) == (NOT_ACCEPTED, NOT_ACCEPTED)
    assert "the chapter is too short" in again["prompt"]
    assert again["attempt"] == 2
    for text in (shown, asked):
        assert "items: 0 of 2 completed" in text
        assert "(pending, failed attempts: 1): the chapter is too short" in text
    assert last.code == WAITING, last.out
    assert "1 of 2 items" in last.json["for_people"][0]["prompt"]
    assert book_run.words == [0, 900, 0]


@pytest.mark.parametrize(
    "statement",
    [
        ["DROP TABLE chapters"],
        # Allowed, but it does not meet the conditions, and half of the work must not stay.
        ["UPDATE chapters SET words = 50 WHERE id = 1"],
        ["SELECT 1"],
        ["UPDATE chapters SET words = 900 WHERE id = 1; DROP TABLE chapters"],
        ["UPDATE chapters SET words = ? WHERE id = 1", [[1]]],
        ["UPDATE nowhere SET words = 1 WHERE id = 1"],
        {"sql": "UPDATE chapters SET words = 900 WHERE id = 1"},
    ],
)
def test_forbidden_statements_are_refused(book_run: BookProject, statement: Any) -> None:
    """The worker gets the reason; the run and the database are unchanged."""
    (number,) = book_run.planned(1)

    refused = book_run.submit(
        "--item", str(number), "--result", "{}", "--statements", json.dumps([statement])
    )

    assert refused.code == NOT_ACCEPTED, refused.out
    assert refused.json["status"] == "waiting", refused.json["reason"]
    assert refused.json["work"][0]["feedback"] == refused.json["problem"]
    assert book_run.words == [0, 0, 0]


def test_a_delete_waits_for_a_human(book_run: BookProject) -> None:
    """The worker has no more to do, and the database is unchanged until a human approves."""
    (number,) = book_run.planned(1)
    delete = json.dumps([["DELETE FROM chapters"]])

    waiting = book_run.submit("--item", str(number), "--result", "{}", "--statements", delete)

    assert waiting.code == 10, waiting.out
    assert "approval" in waiting.out
    assert book_run.words == [0, 0, 0]


def test_a_reported_failure_goes_to_the_next_attempt_and_then_to_a_human(
    book_run: BookProject,
) -> None:
    """A worker that cannot do the work can report that."""
    first = book_run.submit("--failure", "Emma is not here")
    second = book_run.submit("--failure", "still not here")

    assert first.code == NOT_ACCEPTED
    assert "Previous attempt failed: Emma is not here" in first.json["work"][0]["prompt"]
    assert second.code == NOT_ACCEPTED
    assert second.json["work"] == []
    assert "still not here" in second.json["for_people"][0]["prompt"]


def test_a_worker_cannot_answer_requests_to_humans(book_run: BookProject) -> None:
    """A human gate must not be opened by the worker."""
    (number,) = book_run.planned(1)
    book_run.write_chapter(number, 1)
    at_gate = book_run.submit("--result", '{"decision": "approved"}')
    (gate,) = at_gate.json["for_people"]

    by_number = book_run.submit("--item", str(gate["number"]), "--result", "Approve")
    unnamed = book_run.submit("--result", "Approve")
    shown = book_run.call("next").out

    assert at_gate.code == WAITING
    assert f"signoff inbox {gate['number']}\n" in shown
    assert "signoff answer" not in shown
    assert (by_number.code, unnamed.code) == (USAGE, USAGE)
    assert "only a human can answer" in by_number.err
    assert "waiting for a human" in unnamed.err
    assert book_run.step == "gate"


def test_work_for_an_outdated_prompt_is_refused(book_run: BookProject) -> None:
    """The worker read another prompt than the current one."""
    (before,) = book_run.next()["work"]
    book_run.submit("--failure", "not today")

    old = book_run.submit("--item", str(before["number"]), "--result", '{"chapters": [1]}')
    stale = book_run.submit("--digest", before["digest"][:12], "--result", '{"chapters": [1]}')

    assert (old.code, stale.code) == (USAGE, USAGE)
    assert "no longer open" in old.err
    assert "now shows" in stale.err
    assert book_run.step == "plan"


def test_two_workers_can_submit_at_the_same_time(
    book_run: BookProject, forked_program: ForkedProgram
) -> None:
    """No submission is refused because another one is being checked."""
    numbers = book_run.planned(1, 2)
    words = ["--result", "{}", "--json", "--statements"]
    workers = [
        book_run.start(
            "submit", "one", "--item", str(number), *words,
            json.dumps([[f"UPDATE chapters SET words = 900 WHERE id = {chapter}"]]),
            program=forked_program.signoff,
        )
        for chapter, number in enumerate(numbers, start=1)
    ]  # fmt: skip

    results = [json.loads(worker.communicate(timeout=PATIENCE_SECONDS)[0]) for worker in workers]

    assert [each["accepted"] for each in results] == [True, True]
    assert book_run.words == [900, 900, 0]
    assert book_run.step == "review"


def test_of_workers_that_submit_for_the_same_item_one_is_accepted(
    book_run: BookProject, forked_program: ForkedProgram
) -> None:
    """Two agents took the same item; the work of both must not be mixed, and none counts twice."""
    first, second = book_run.planned(1, 2)
    workers = [
        book_run.start(
            "submit", "one", "--item", str(first), "--result", json.dumps({"by": words}), "--json",
            "--statements", json.dumps([[f"UPDATE chapters SET words = {words} WHERE id = 1"]]),
            program=forked_program.signoff,
        )
        for words in (900, 901, 902)
    ]  # fmt: skip

    ended = [worker.communicate(timeout=PATIENCE_SECONDS) for worker in workers]

    results = [json.loads(out) for out, _err in ended]
    accepted = [
        words for words, each in zip((900, 901, 902), results, strict=True) if "error" not in each
    ]
    refused = [each["error"]["message"] for each in results if "error" in each]
    assert len(accepted) == 1, results
    assert all("no longer open" in problem for problem in refused), refused
    assert book_run.words == [*accepted, 0, 0]
    assert [item["number"] for item in book_run.next()["work"]] == [second]
    assert book_run.write_chapter(second, 2).json["step"] == "review"


def test_next_does_not_start_agents_of_a_run_without_external_workers(
    book_run: BookProject,
) -> None:
    """`next` must not call agents and spend money."""
    # A run whose agents are missing would not start; this one fails at its first call.
    book_run.write("silent.yaml", "version: 1\nrules: []\n")
    book_run.write(
        ".signoff/config.yaml",
        "version: 1\nagents: {claude: {kind: scripted, file: silent.yaml}}\n",
    )
    book_run.call("run", "book.py:BOOK", "--name", "two", "-i", "title=Emma", "--no-input")

    asked = book_run.call("next", "two")
    handed_over = book_run.call("resume", "two", "--pull")

    assert asked.code == 2, asked.out
    assert "signoff resume two --pull" in asked.err
    assert handed_over.code == WAITING
    assert [item["step"] for item in book_run.call("next", "two", "--json").json["work"]] == [
        "plan"
    ]


def test_book_editing_by_an_external_worker_requires_real_work(book: BookProject) -> None:
    """The worker first submits fake work at every step; each is refused."""
    copy_example(EXAMPLE, book.folder)
    import_file(book.folder / "sample.py").make_sample(book.folder / "book.db")
    waiting = book.call("run", "workflow.py", "--pull", "--name", "one")
    program = [sys.executable, str(Path(book_editing_worker.__file__)), "one"]

    done = subprocess.run(
        program,
        cwd=book.folder,
        env=book.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == WAITING, done.stderr
    status = book.call("next", "one", "--json").json
    (gate,) = status["for_people"]
    forged = book.call("submit", "one", "--item", str(gate["number"]), "--result", "Approve")
    published = book.call("answer", "one", "Approve and finalize", "--by", "ann", "--resume")

    assert waiting.code == WAITING, waiting.err
    assert done.returncode == WAITING, done.stderr
    assert status["step"] == "human-gate"
    assert forged.code == USAGE
    assert published.code == 0, published.err
    with closing(sqlite3.connect(book.folder / "book.db")) as db:
        texts = db.execute(
            "SELECT text FROM chapters JOIN book_versions ON id = version_id "
            "WHERE status = 'published' ORDER BY chapters.number LIMIT 2"
        ).fetchall()
    assert [text for (text,) in texts] == [
        book_editing_worker.TEXTS["keeper"],
        book_editing_worker.TEXTS["storm"],
    ]


def test_work_that_cannot_be_checked_now_is_stored_and_checked_later(book_run: BookProject) -> None:
    """Otherwise the worker would do the same work again for nothing."""
    (number,) = book_run.planned(1)
    book = book_run.folder / "book.db"
    away = book.rename(book_run.folder / "away.db")
    book.mkdir()

    broken = book_run.write_chapter(number, 1)
    book.rmdir()
    away.rename(book)

    assert broken.code == NOT_ACCEPTED, broken.err
    assert "your submission is kept" in broken.json["problem"]
    assert book_run.step == "review"
    assert book_run.words == [900, 0, 0]


SKILL = """
from typing import Annotated

from signoff import Arg, Outcome, StepDef, Workflow


def decide(ctx, confidence: Annotated[str, Arg(choices=("low", "high"))] = "low"):
    return (Outcome.OK if confidence == "high" else Outcome.ITERATE), {}


WORKFLOW = Workflow(
    "look",
    StepDef("collect", "Collect facts", ["List what is known."], next={Outcome.OK: "weigh"}),
    StepDef("weigh", "Weigh them", ["Find what is missing."], decide,
            {Outcome.OK: None, Outcome.ITERATE: "weigh"}),
)
"""


def test_instructions_are_handed_out_one_step_at_a_time(book: BookProject) -> None:
    """A coding agent follows the procedure, and can neither skip a step nor read ahead."""
    book.write("look.py", SKILL)

    first = book.call("run", "look.py", "--pull", "--name", "one").out
    second = book.call("submit", "one", "--result", "Two cats.").out
    refused = book.submit("--result", json.dumps({"result": "?", "confidence": "none"}))
    unfilled = book.submit("--result", json.dumps({"result": "<result>", "confidence": "low"}))
    third = book.submit("--result", json.dumps({"result": "A dog.", "confidence": "low"}))
    done = book.submit("--result", json.dumps({"result": "Enough.", "confidence": "high"}))

    assert "# Collect facts\n\nList what is known." in first
    assert "--result '<result>'" in first
    assert "Weigh them" not in first
    assert "# Weigh them\n\nFind what is missing." in second
    form = '{"result": "<result>", "confidence": "<low|high>"}'
    assert second.count(form) == 2
    assert f"--result '{form}'" in second
    assert refused.code == USAGE
    assert "'none' is not one of" in refused.err
    assert unfilled.code == USAGE
    assert "<result>" in unfilled.err
    assert (third.code, third.json["step"]) == (0, "weigh")
    assert (done.code, done.json["status"]) == (0, "completed")
    state = json.loads((book.folder / ".signoff/runs/one/state.json").read_text())
    assert "Two cats." in json.dumps(state)


def test_a_worker_with_a_token_cannot_decide_or_adopt(
    book: BookProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does the work of its run, and nothing else."""
    book.write("book.py", WORKFLOW)
    started = book.call(
        "run", "book.py:BOOK", "--pull", "--name", "one", "-i", "title=Emma", "--json"
    )
    token = started.json["worker_token"]
    monkeypatch.setenv("SIGNOFF_WORKER_TOKEN", token)

    refused = [
        book.call(*words)
        for words in (
            ["answer", "1", "x"], ["approve", "1"], ["reject", "1"], ["resume", "one", "--adopt"],
        )
    ]  # fmt: skip
    taken = book.call("next", "one", "--json")

    assert [each.code for each in refused] == [2, 2, 2, 2]
    assert all("a worker cannot" in each.err for each in refused)
    assert len(taken.json["work"]) == 1


ITEMS = """
type: items
steps:
  - {name: plan, command: [echo, '{"areas": ["intro", {"id": 7}, 1]}'], next: write}
  - {name: write, parallel: true, parallel_key: areas, prompt: Write., next: read}
  - name: read
    human_gate:
      prompt: Good?
      context: [modifiedChapters, plan.areas]
      options: [{label: Again, next_step: tell, requires_input: true}]
  - {name: tell, command: [sh, -c, 'cat > told.json']}
"""


def test_what_is_malformed_or_late_changes_nothing(book: BookProject) -> None:
    """A slip of the command must not cost the one retry that the work has."""
    book.write("items.yaml", ITEMS)
    book.call("run", "items.yaml", "--pull", "--name", "one")
    before = book.next()

    for words in (
        ["--item", "intro", "--result", "{modifiedChapters: 1}"],
        ["--item", "intro", "--result", '["a", '],
        ["--item", "intro", "--result", ""],
        ["--item", "intro", "--result", " \n"],
        ["--item", "intro", "--result", "{}", "--digest", "0123456789ab"],
        ["--item", "outro", "--result", "{}"],
        ["--item", "99", "--result", "{}"],
        ["--result", "{}"],
    ):
        assert book.submit(*words).code == USAGE, words

    assert book.next() == before
    assert book.submit("--item", "intro", "--result", "[1] See below.").code == 0
    assert book.submit("--item", "intro", "--result", "{}").code == USAGE


def test_an_item_is_named_as_it_is_shown_and_its_values_reach_the_gate(book: BookProject) -> None:
    """What a worker reads as `item` names its work, and what a human is shown is what was done."""
    book.write("items.yaml", ITEMS)
    book.call("run", "items.yaml", "--pull", "--name", "one")
    work = {json.dumps(each["item"]): each["number"] for each in book.next()["work"]}

    for number, item in enumerate(("intro", '{"id": 7}')):
        assert (
            f"work #{work.get(item) or work[json.dumps(item)]} "
            in book.call("next", "one", "--item", item).out
        )
        result = json.dumps({"modifiedChapters": [number]})
        done = book.submit("--item", item, "--result", result)
        assert done.code == 0, done.err
    # A number is first of all the number of a request.
    assert "no longer open" in book.submit("--item", "1", "--result", "{}").err
    last = book.submit("--item", str(work["1"]), "--result", "{}")
    shown = book.json("inbox", str(last.json["for_people"][0]["number"]))
    ended = book.call("answer", "one", "Again", "--text", "shorter", "--resume")

    assert last.code == WAITING
    assert shown["shown"]["modifiedChapters"] == {"0:intro": [0], "1:7": [1]}
    assert ended.code == 0, ended.err
    told = json.loads((book.folder / "told.json").read_text())
    assert told["checkpoint"]["gate"] == {"gate": "read", "option": "Again", "input": "shorter"}
    assert "retry_context" not in told


def test_a_missing_database_is_found_before_anything_is_started(book: BookProject) -> None:
    """A run that can never begin would stay behind, and its name would be taken."""
    book.write("lost.yaml", "type: lost\ndatabase: lost.db\nsteps: [{name: a, prompt: Do it.}]\n")

    refused = book.call("run", "lost.yaml", "--pull", "--name", "lost")

    assert refused.code == USAGE
    assert "there is no database at" in refused.err
    assert not (book.folder / ".signoff/runs/lost").exists()
