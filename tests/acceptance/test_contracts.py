"""The contract workflows of examples/, from the command line."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.examples import copy_example
from tests.acceptance.flow_project import FlowProject
from tests.acceptance.forked_program import ForkedProgram

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = """
version: 1
agents: {script: {kind: scripted, file: script.yaml}}
roles: {strategist: script, writer: script, editor: script, domain_expert: script}
"""
PLAN = "{step: strategic-planning, json: {goal: G, areas: [{id: m, chapter: 3, instruction: i}]}}"


class ExampleProject(FlowProject):
    """A project that starts as a copy of an example."""

    def copy(self, example: str) -> None:
        copy_example(EXAMPLES / example, self.folder)
        self.write(".signoff/config.yaml", CONFIG)

    def write_script(self, *rules: str) -> None:
        listed = "\n".join(f"  - {rule}" for rule in rules)
        self.write("script.yaml", f"version: 1\nrules:\n{listed}\n")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "book.db")) as db:
            return db.execute(sql).fetchall()


@pytest.fixture
def example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[ExampleProject]:
    with closing(ExampleProject(tmp_path, command_server, monkeypatch)) as project:
        yield project


@pytest.fixture
def editing(example: ExampleProject) -> ExampleProject:
    """The book editing example with its sample book."""
    from signoff.documents.python_files import import_file

    example.copy("book_editing")
    import_file(example.folder / "sample.py").make_sample(example.folder / "book.db")
    return example


def edit(example: ExampleProject, *more: str) -> Any:
    return example.call("run", "workflow.py", "--name", "one", "--no-input", "--json", *more)


def answer(example: ExampleProject, *words: str) -> Any:
    return example.call("answer", "one", *words, "--resume", "--json")


def test_a_book_is_edited_reviewed_measured_and_published(editing: ExampleProject) -> None:
    """The whole example: the editor requests changes, the human does too, then approves."""
    waiting = edit(editing)
    inbox = editing.call("inbox", "--json").json
    refused = answer(editing, "Request more improvements")
    again = answer(editing, "Request more improvements", "--text", "a finer morning")
    done = answer(editing, "Approve and finalize")

    assert [waiting.code, refused.code, again.code, done.code] == [10, 2, 10, 0]
    assert "modifiedChapters" in str(inbox)
    assert "needs an explanation" in refused.err
    state = editing.load("state.json")["state"]
    assert [each["step"] for each in state["_completed"]].count("editor-review") == 3
    assert state["published"] == "lighthouse-v3"
    assert editing.rows("SELECT id, status FROM book_versions ORDER BY id") == [
        ("lighthouse-v1", "replaced"),
        ("lighthouse-v2", "draft"),
        ("lighthouse-v3", "published"),
    ]
    assert editing.rows("SELECT status FROM workflow_runs") == [("completed",)]
    assert len(list((editing.folder / "backups").glob("*.db"))) == 1


def test_a_rejection_ends_the_run_and_leaves_the_book_unchanged(editing: ExampleProject) -> None:
    """`signoff run ... && publish` must not publish rejected work."""
    edit(editing)

    done = answer(editing, "Reject and stop")

    assert done.code == 14
    published = "SELECT id FROM book_versions WHERE status = 'published'"
    assert editing.rows(published) == [("lighthouse-v1",)]


def test_an_editor_that_never_approves_leads_to_a_human_decision(editing: ExampleProject) -> None:
    """Three rounds are allowed; only a human may allow a fourth."""
    editing.write_script(
        PLAN,
        "{step: writer, json: {text: The sea was calm. He slept.}}",
        "{step: editor-review, json: {decision: changes, notes: no}}",
    )

    waiting = edit(editing)

    assert waiting.code == 10
    (item,) = waiting.json["inbox"]
    assert "at most 3 times" in item["prompt"]
    assert editing.rows("SELECT count(*) FROM signoff_steps WHERE step = 'writer'") == [(4,)]


def test_a_missing_book_is_reported_before_any_agent_call(editing: ExampleProject) -> None:
    """A plan for a book that does not exist would be wasted money."""
    failed = edit(editing, "-i", "book=unknown")

    assert failed.code == 1
    assert "Book not found" in failed.json["reason"]
    assert failed.json["spend"]["calls"] == 0


def test_a_step_that_fails_twice_waits_for_a_human_who_can_retry_it(
    editing: ExampleProject,
) -> None:
    """Once the plan is fixed, the run continues."""
    editing.write_script("{step: strategic-planning, json: {goal: G, areas: []}}")
    waiting = edit(editing)
    plans = editing.rows("SELECT count(*) FROM strategic_plans")
    shutil.copy(EXAMPLES / "book_editing/script.yaml", editing.folder / "script.yaml")

    again = answer(editing, "retry")

    assert waiting.code == 10
    assert "names no areas" in waiting.json["inbox"][0]["prompt"]
    assert plans == [(0,)]
    assert again.code == 10
    assert "Review the changes" in again.json["inbox"][0]["prompt"]
