import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from signoff.core.questions import Option, UserQuestion
from signoff.core.requests import Approval, Choice, Question, Questions, Request, Response
from signoff.runtime.store_port import InboxItem
from signoff.views.run_directory.answers import PLACEHOLDER, FileAnswers
from signoff.views.run_directory.directory import RunDirectory
from tests.unit.views.run_directory.story import Story, document


class Desk:
    """A run with requests, and a user who answers by file."""

    def __init__(self, root: Path, *requests: Request) -> None:
        self.story = Story(created_at=time.time() - 1000).begin()
        self.items = [self.ask(request, n) for n, request in enumerate(requests)]
        self.directory = RunDirectory(root, self.story.store)
        self.directory.catch_up("demo")
        self.hitl = root / "demo" / "hitl"

    def ask(self, request: Request, n: int) -> InboxItem:
        return self.story.wait(request, f"wait{n}#1")

    def put(self, name: str, content: Any) -> Path:
        text = content if isinstance(content, str) else json.dumps(content)
        path = self.hitl / name
        path.write_text(text, encoding="utf-8")
        return path

    def take(self) -> FileAnswers:
        return self.directory.read_answers("demo")

    def values(self) -> dict[int, Any]:
        return {answer.number: answer.value for answer in self.take().answers}


def answers(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"answers": [{"question_id": name, "answer": answer} for name, answer in pairs]}


def test_answers_are_matched_by_the_authors_name_and_by_number(tmp_path: Path) -> None:
    """Both are in questions.json, and a user may use either."""
    desk = Desk(tmp_path, Question("Title?", question_id="title"), Question("Tone?"))
    desk.put("answers.json", answers(("title", "Tea"), ("2", "calm")))

    assert desk.values() == {1: "Tea", 2: "calm"}


@pytest.mark.parametrize(
    "content", [{"title": "Tea"}, {"answers": {"title": "Tea"}}, {"#1": "Tea"}]
)
def test_a_plain_mapping_is_accepted_too(tmp_path: Path, content: Any) -> None:
    """Most users would write this without reading the docs."""
    desk = Desk(tmp_path, Question("Title?", question_id="title"))
    desk.put("answers.json", content)

    assert desk.values() == {1: "Tea"}


def test_the_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Editors on Windows write one, and it is invisible."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.put("answers.json", "\ufeff" + json.dumps({"1": "Tea"}))

    assert desk.values() == {1: "Tea"}


@pytest.mark.parametrize("content", ["", "   \n", "{", '{"answers": [', "null", "[]", "7", '"Tea"'])
def test_a_file_that_is_not_finished_is_no_answer_and_no_error(
    tmp_path: Path, content: str
) -> None:
    """An editor may save half a file; the run keeps waiting and reports it."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.put("answers.json", content)

    taken = desk.take()

    assert taken.answers == ()
    assert len(taken.warnings) == 1
    assert taken.warnings[0].startswith("hitl/answers.json: ")


def test_the_unchanged_example_is_not_an_answer(tmp_path: Path) -> None:
    """An empty form must not approve anything."""
    desk = Desk(tmp_path, Question("Title?"))
    example = document(desk.hitl / "questions.json")["answer_format"]
    desk.put("answers.json", example)
    assert PLACEHOLDER in json.dumps(example)

    taken = desk.take()

    assert taken.answers == ()
    assert taken.warnings == ("hitl/answers.json: '1' has no answer yet",)


def test_an_unknown_name_is_reported_with_the_open_requests(tmp_path: Path) -> None:
    """Otherwise a typo would have no effect and no message."""
    desk = Desk(tmp_path, Question("Title?", question_id="title"), Question("Tone?"))
    desk.put("answers.json", answers(("titel", "Tea"), ("2", "calm")))

    taken = desk.take()

    assert [answer.number for answer in taken.answers] == [2]
    assert taken.warnings == (
        "hitl/answers.json: no open request is called 'titel'; open requests: title, 2",
    )


def test_an_ambiguous_name_is_rejected(tmp_path: Path) -> None:
    """In a fan-out, many items ask under one name; the wrong one could be answered."""
    desk = Desk(tmp_path, *[Question("Ok?", question_id="ok")] * 2)
    desk.put("answers.json", {"ok": "yes"})

    taken = desk.take()

    assert taken.answers == ()
    assert "use a number: 1, 2" in taken.warnings[0]


def test_a_choice_may_have_a_reason(tmp_path: Path) -> None:
    """Some options need an explanation, which reaches the next prompt."""
    desk = Desk(tmp_path, Choice("How?", [Option("revise", requires_input=True), "stop"]))
    entry = {"question_id": "1", "answer": "revise", "text": "too long"}
    desk.put("answers.json", {"answers": [entry]})

    (answer,) = desk.take().answers

    assert (answer.value, answer.text) == ("revise", "too long")


@pytest.mark.parametrize(
    ("content", "value"),
    [(True, True), ("approve", True), (" Yes ", True), (False, False), ("reject", False)],
)
def test_an_approval_is_a_plain_yes_or_no(tmp_path: Path, content: Any, value: bool) -> None:
    """The inbox takes nothing else as an approval."""
    desk = Desk(tmp_path, Approval("Ok?", "text"))
    entry = {"question_id": "1", "answer": content, "digest": "what I saw"}
    desk.put("answers.json", {"answers": [entry]})

    assert desk.values() == {1: value}


@pytest.mark.parametrize("content", ["maybe", "yes, but", 1, ["yes"]])
def test_anything_else_is_not_an_approval(tmp_path: Path, content: Any) -> None:
    """Fail closed: the inbox refuses a text where a yes or no is wanted."""
    desk = Desk(tmp_path, Approval("Ok?", "text"))
    desk.put("answers.json", answers(("1", content)))

    assert isinstance(desk.values()[1], str)


@pytest.mark.parametrize("name", ["plan", "1"])
def test_an_approval_by_file_needs_the_digest(tmp_path: Path, name: str) -> None:
    """Without it, a file could approve a text that its writer has never seen."""
    desk = Desk(tmp_path, Approval("Ok?", "text", question_id="plan"))
    desk.put("answers.json", answers((name, True)))
    refused = desk.take()
    assert refused.answers == ()
    assert 'copy its "digest"' in refused.warnings[0]

    entry = {"question_id": name, "answer": True, "digest": "what I saw"}
    desk.put("answers.json", {"answers": [entry]})

    (answer,) = desk.take().answers
    assert answer.digest == "what I saw"


def test_an_approval_in_a_response_file_needs_the_digest_too(
    tmp_path: Path,
) -> None:
    """The short form follows the same rule as the long one."""
    desk = Desk(tmp_path, Approval("Ok?", "text"))
    desk.put("1-response.md", "approve\n")
    refused = desk.take()

    desk.put("1-response.md", "approve 1a2b3c\nwell done\n")
    (answer,) = desk.take().answers

    assert refused.answers == ()
    assert (answer.value, answer.digest, answer.text) == (True, "1a2b3c", "well done")


def test_the_request_file_shows_an_approval_with_its_digest_to_copy(tmp_path: Path) -> None:
    """A user fills in the form that is shown, so it has to be complete."""
    desk = Desk(tmp_path, Approval("Ok?", "text"))
    form = document(desk.hitl / "questions.json")["answer_format"]

    form["answers"][0]["answer"] = "approve"
    desk.put("answers.json", form)

    (answer,) = desk.take().answers
    assert (answer.value, answer.digest) == (True, desk.items[0].digest)


def test_answers_of_other_types_become_text(tmp_path: Path) -> None:
    """`"answer": 2` picks the second option; an object answers a request for JSON."""
    desk = Desk(tmp_path, Question("Which?", ["a", "b"]), Response("Work", {"type": "object"}))
    desk.put("answers.json", answers(("1", 2), ("2", {"ok": True})))

    assert desk.values() == {1: "2", 2: '{"ok": true}'}


def test_a_response_file_is_used_unchanged(tmp_path: Path) -> None:
    """Trimming the result of manual work could break it."""
    desk = Desk(tmp_path, Response("Write it."))
    desk.put("1-response.md", "  # Title\n\ntext\n")

    assert desk.values() == {1: "  # Title\n\ntext\n"}


def test_a_decision_in_a_response_file_is_its_first_line(tmp_path: Path) -> None:
    """A user explains a rejection below it; the reason must not become the answer."""
    desk = Desk(tmp_path, Approval("Ok?", "text"), Question("How?", ["go", "stop"]))
    desk.put("1-response.md", "reject\n\ntoo long\n")
    desk.put("2-response.md", "go\n")

    taken = desk.take().answers

    assert [(a.value, a.text) for a in taken] == [(False, "too long"), ("go", "")]


def test_the_first_of_two_answers_counts_and_the_other_is_reported(
    tmp_path: Path,
) -> None:
    """Two users may answer at the same time; both should see what happened."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.put("answers.json", {"1": "Tea"})
    desk.put("1-response.md", "Coffee")

    taken = desk.take()

    assert [answer.value for answer in taken.answers] == ["Tea"]
    assert taken.warnings == ("hitl/1-response.md: request 1 is already answered in answers.json",)


@pytest.mark.parametrize(
    "name", ["1-response.md.swp", "response.md", "x-response.md", "1-prompt.md"]
)
def test_other_files_are_ignored(tmp_path: Path, name: str) -> None:
    """Editors leave all kinds of files next to the one being written."""
    desk = Desk(tmp_path, Response("Work"))
    desk.put(name, "text")

    assert desk.take() == FileAnswers()


def test_a_pipe_a_link_or_a_binary_is_reported_and_not_read(tmp_path: Path) -> None:
    """A pipe would hang the run, a link could carry a secret into a prompt."""
    desk = Desk(tmp_path, *[Response("Work")] * 3)
    secret = tmp_path / "secret"
    secret.write_text("password")
    (desk.hitl / "1-response.md").symlink_to(secret)
    os.mkfifo(desk.hitl / "2-response.md")
    (desk.hitl / "3-response.md").write_bytes(b"\xff\xfe\x00")

    taken = desk.take()

    assert taken.answers == ()
    assert len(taken.warnings) == 3


def test_a_used_file_is_archived_under_a_name_that_is_never_read(tmp_path: Path) -> None:
    """Answered twice, a later question of the same name would get an old answer."""
    desk = Desk(tmp_path, Question("Title?"), Response("Work"))
    desk.put("answers.json", {"1": "Tea"})
    desk.put("2-response.md", "done")
    taken = desk.take().answers

    archived = [desk.directory.archive(answer) for answer in taken]

    first, second = (answer.file.token for answer in taken)
    assert [path.name for path in archived if path] == [
        f"answers_{first}.processed.json",
        f"2-response.{second}.processed.md",
    ]
    assert desk.take() == FileAnswers()
    assert all(path.exists() for path in archived if path)


def test_a_file_changed_after_it_was_read_is_not_archived(tmp_path: Path) -> None:
    """Otherwise a fresh answer would be archived without being read."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.put("answers.json", {"1": "Tea"})
    (answer,) = desk.take().answers
    desk.put("answers.json", {"1": "Coffee"})

    archived = desk.directory.archive(answer)

    assert archived is None
    assert desk.values() == {1: "Coffee"}


def test_a_crash_before_archiving_does_not_let_the_file_answer_the_next_question(
    tmp_path: Path,
) -> None:
    """A loop asks `escalate` again in the next round; the old file must not answer that."""
    desk = Desk(tmp_path, Question("Continue?", question_id="escalate"))
    desk.put("answers.json", {"escalate": "yes"})
    (answer,) = desk.take().answers
    desk.story.answer(desk.items[0], answer.value, by=f"ann ({answer.by})")
    desk.ask(Question("And now?", question_id="escalate"), 1)

    taken = desk.take()

    assert taken.answers == ()
    assert [path.name for path in desk.hitl.iterdir() if "answers" in path.name] == [
        f"answers_{answer.file.token}.processed.json"
    ]


def test_the_same_text_given_again_is_a_new_answer(tmp_path: Path) -> None:
    """`yes` to the second question is as good as to the first."""
    desk = Desk(tmp_path, Question("Continue?", question_id="escalate"))
    path = desk.put("answers.json", {"escalate": "yes"})
    (answer,) = desk.take().answers
    desk.story.answer(desk.items[0], answer.value, by=answer.by)
    desk.directory.archive(answer)
    desk.ask(Question("And now?", question_id="escalate"), 1)

    desk.put("answers.json", {"escalate": "yes"})
    os.utime(path, (2_000_000_000, 2_000_000_000))

    assert desk.values() == {2: "yes"}


def test_an_answer_counts_only_for_requests_opened_before_it_was_written(tmp_path: Path) -> None:
    """One file may answer a request that a user saw and guess at a later one."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.story.pass_time(2000)
    desk.ask(Question("Tone?"), 1)
    desk.put("answers.json", {"1": "Tea", "2": "calm"})

    taken = desk.take()

    assert [answer.value for answer in taken.answers] == ["Tea"]
    assert taken.warnings == (
        "hitl/answers.json: was written before request 2 was opened; answer it again",
    )


def test_a_file_older_than_every_request_is_renamed(tmp_path: Path) -> None:
    """The process that opened the request may have died before it could look for such files."""
    desk = Desk(tmp_path)
    desk.hitl.mkdir(parents=True)
    desk.put("answers.json", {"1": "planted"})
    desk.story.pass_time(2000)
    desk.ask(Question("Title?"), 0)

    taken = desk.take()

    assert taken.answers == ()
    assert "is older than the request it would answer" in taken.warnings[0]
    (renamed,) = desk.hitl.glob("answers_*.early.json")
    assert json.loads(renamed.read_text()) == {"1": "planted"}


@pytest.mark.parametrize("written", ['{"1": %s}', '{"%s": "Tea"}'])
def test_a_number_of_thousands_of_digits_is_a_warning(tmp_path: Path, written: str) -> None:
    """Python refuses to read it, and a resume must not end with a traceback."""
    desk = Desk(tmp_path, Question("Title?"))
    desk.put("answers.json", written % ("1" * 5000))

    taken = desk.take()

    assert (taken.answers, len(taken.warnings)) == ((), 1)


STORAGE = UserQuestion("Storage", "Where?", (Option("SQLite"), Option("Postgres")))
AUTH = UserQuestion("Auth", "Who?", (Option("none"), Option("token")))


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("answers.json", answers(("1", {"Storage": "SQLite"})), {"Storage": "SQLite"}),
        ("answers.json", {"Storage": "SQLite", "Auth": ["none"]},
         {"Storage": "SQLite", "Auth": ["none"]}),
        ("answers.json", answers(("Storage", "SQLite"), ("Auth", "none")),
         {"Storage": "SQLite", "Auth": "none"}),
        ("1-response.md", "Storage: SQLite\nAuth: none", "Storage: SQLite\nAuth: none"),
    ],
)  # fmt: skip
def test_questions_are_answered_together_by_number_or_by_header(
    tmp_path: Path, name: str, content: Any, value: Any
) -> None:
    """They are one request, so its answer is one value."""
    desk = Desk(tmp_path, Questions("Please decide.", [STORAGE, AUTH]))
    desk.put(name, content)

    assert desk.values() == {1: value}
