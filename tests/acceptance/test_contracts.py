"""The contract workflows of examples/, from the command line."""

import re
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
REVIEW = """
type: review
steps: [{name: review, agent: script, prompt: "Judge the title {{title}}."}]
"""


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


@pytest.mark.parametrize("command", [("run", "review.yaml", "--dry-run"), ("run", "review.yaml")])
def test_a_missing_parameter_of_the_first_prompt_is_refused_before_a_run_starts(
    example: ExampleProject, command: tuple[str, ...]
) -> None:
    """A dry run that calls such a plan valid is worth nothing."""
    example.write("review.yaml", REVIEW)
    example.write("script.yaml", "version: 1\nrules: [{step: review, text: fine}]\n")
    example.write(".signoff/config.yaml", CONFIG)

    refused = example.call(*command)

    assert refused.code == 2
    assert "parameter 'title': is missing" in refused.err
    assert example.call("run", "review.yaml", "--dry-run", "-i", "title=Emma").code == 0


LATER = "step 'later' has no result yet"
BLAMED = {
    # What is in the step, how the run ends, how often the work was done, and what is reported.
    "its own result": ("postconditions: ['results.work.n == result.n']", 0, 1, ""),
    "a branch on its own result": (
        "next: {condition: results.work.n >= 3, on_true: later, on_false: work, max_iterations: 5}",
        0,
        3,
        "",
    ),
    "a key that is not in the result": ("postconditions: [result.q > 0]", 10, 2, "has no 'q'"),
    "a value of another type": (
        "postconditions: [result.n.size() > 0]",
        10,
        2,
        "result.n is a whole number, not a text or a list or an object",
    ),
    "a branch on a missing key": (
        "next: {condition: result.q > 0, on_true: later, on_false: work}",
        10,
        2,
        "result has no 'q'",
    ),
    "a step without a result": ("postconditions: [results.later.n > 0]", 1, 1, LATER),
    "a step without a result, in a branch": (
        "next: {condition: results.later.n > result.n, on_true: later, on_false: work}",
        1,
        1,
        LATER,
    ),
    "a step without a result, after the step's own": (
        "postconditions: [result.n > 0 && results.later.n > 0]",
        1,
        1,
        LATER,
    ),
    "types that never fit": ("postconditions: ['result.n > 1 + \"a\"']", 1, 1, "do not fit"),
    "an unknown function": ("postconditions: [sice(result.n) > 0]", 1, 1, "'sice'"),
    "items": (
        "parallel: true\n    parallel_key: list\n    postconditions: [results.later.n > 0]",
        1,
        1,
        LATER,
    ),
}
WORK = """\
type: blamed
params: [list]
DATABASE
steps:
  - name: work
    command: [sh, -c, 'echo x >> done.txt; echo "{\\"n\\": $(wc -l < done.txt)}"']
    WHAT
  - {name: later, command: [echo, '{"n": 1}']}
"""


@pytest.mark.parametrize("database", ["", "database: book.db"])
def test_a_condition_blames_who_made_the_mistake(
    example: ExampleProject, subtests: pytest.Subtests, database: str
) -> None:
    """A worker gets a retry for its result; a mistake of the author costs no attempt."""
    for title, (what, code, times, message) in BLAMED.items():
        with subtests.test(title):
            name = re.sub(r"\W+", "-", title)
            (example.folder / "done.txt").unlink(missing_ok=True)
            sqlite3.connect(example.folder / "book.db").close()
            following = "" if "next:" in what else "next: later"
            text = WORK.replace("DATABASE", database).replace("WHAT", f"{what}\n    {following}")
            example.write("blamed.yaml", text)

            ended = example.call(
                "run", "blamed.yaml", "--name", name, "--no-input", "-i", 'list:=["a"]'
            )

            assert ended.code == code, ended.err
            assert message in ended.err
            assert len((example.folder / "done.txt").read_text().splitlines()) == times
            # The author is told where the mistake is.
            assert ("blamed.yaml:" in ended.err) is (code == 1)
