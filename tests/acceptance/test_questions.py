"""One request with several questions, from the command line."""

import json
import shlex
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject

ASKS = """
from signoff import Option, Outcome, Questions, StepDef, UserQuestion, Workflow

STORAGE = UserQuestion(
    "Storage",
    "Where are the records kept?",
    (
        Option("SQLite", description="One file, no server."),
        Option("Postgres", description="A server."),
    ),
)
EXTRAS = UserQuestion("Extras", "What else?", (Option("logs"), Option("full metrics")), True)

async def ask_both(ctx):
    answer = await ctx.wait(Questions("Two things are open.", [STORAGE, EXTRAS]))
    return Outcome.OK, {"value": answer.value, "comment": answer.text}

async def ask_one(ctx):
    answer = await ctx.wait(Questions("One thing is open.", [STORAGE]))
    return Outcome.OK, {"value": answer.value}

BOTH = Workflow("both", StepDef("ask", handler=ask_both, next={Outcome.OK: None}))
ONE = Workflow("one", StepDef("ask", handler=ask_one, next={Outcome.OK: None}))
"""
EXPECTED = {"Storage": "SQLite", "Extras": ["logs", "full metrics"]}
ALL_WORDS = (
    "Where are the records kept?",
    "SQLite: One file, no server.",
    "Postgres: A server.",
    "What else? (choose one or more)",
    "full metrics",
)


def state_of(project: CliProject) -> Any:
    file = project.folder / ".signoff/runs/run/state.json"
    return json.loads(file.read_text())["state"]


@pytest.fixture
def waiting(project: CliProject) -> CliProject:
    """A run that asks two questions; the process that started it has exited."""
    project.write("asks.py", ASKS)
    done = project.signoff("run", "asks.py:BOTH", "--name", "run")
    assert done.returncode == 10, done.stderr
    for words in ALL_WORDS:
        assert words in done.stdout
    return project


@pytest.mark.parametrize(
    "words",
    [
        ("run", "Storage=SQLite", "Extras=logs,full metrics"),
        ("1", "Extras=2", "Extras=1", "storage=sqlite"),
        ("Storage=SQLite", "Extras=logs, full metrics"),
    ],
    ids=["by the run", "by the number", "of the latest run"],
)
def test_every_question_is_answered_under_its_header(
    waiting: CliProject, words: tuple[str, ...]
) -> None:
    """One command answers all of them, so the run is resumed once."""
    done = waiting.signoff("answer", *words, "--text", "as always", "--resume")

    assert done.returncode == 0, done.stderr
    state = state_of(waiting)
    assert (state["value"], state["comment"]) == (EXPECTED, "as always")
    assert "Storage=SQLite; Extras=logs, full metrics" in waiting.signoff("show", "run").stdout
    assert "Storage=SQLite; Extras=logs, full metrics" in waiting.signoff("logs", "run").stdout
    assert "Storage=SQLite; Extras=logs, full metrics" in waiting.signoff("inbox", "1").stdout


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        (("Storage=Oracle", "Extras=logs"), ["'Oracle' is not an option", "SQLite, Postgres"]),
        (("Storage=SQLite",), ["Extras: not answered; choose one of: logs, full metrics"]),
        (("Store=SQLite", "Extras=logs"), ["unknown question 'Store'", "Storage, Extras"]),
        (("SQLite", "logs"), ["too many arguments"]),
    ],
)
def test_a_wrong_answer_records_nothing_and_lists_what_is_valid(
    waiting: CliProject, words: tuple[str, ...], problems: list[str]
) -> None:
    """An answer cannot be undone, so half of one is not recorded."""
    refused = waiting.signoff("answer", "run", *words)

    assert refused.returncode == 2
    assert refused.stdout == ""
    for problem in problems:
        assert problem in refused.stderr
    assert waiting.json("inbox")[0]["state"] == "open"


def test_the_printed_command_answers_nothing_until_it_is_filled_in(waiting: CliProject) -> None:
    """Pasted unchanged, it must neither answer nor harm the shell."""
    (request,) = waiting.json("inbox")
    (command,) = request["commands"]

    pasted = waiting.signoff(*shlex.split(command)[1:])
    command = command.replace("<SQLite|Postgres>", "Postgres")
    command = command.replace("<logs|full metrics,...>", "logs")
    filled_in = waiting.signoff(*shlex.split(command)[1:])

    assert pasted.returncode == 2
    assert filled_in.returncode == 0, filled_in.stderr
    assert state_of(waiting)["value"]["Storage"] == "Postgres"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("answers.json", {"answers": [{"question_id": "1", "answer": EXPECTED}]}),
        ("answers.json", {"Storage": "SQLite", "Extras": ["logs", "full metrics"]}),
        (
            "answers.json",
            {
                "answers": [
                    {"question_id": "Storage", "answer": "SQLite"},
                    {"question_id": "Extras", "answer": "logs,full metrics"},
                ]
            },
        ),
        ("1-response.md", "Storage: SQLite\nExtras: logs, full metrics\n"),
    ],
    ids=["by number", "by header", "entries by header", "response file"],
)
def test_a_file_answers_each_question_under_its_header(
    waiting: CliProject, name: str, content: Any
) -> None:
    """A user who works with files needs no command for the answer."""
    text = content if isinstance(content, str) else json.dumps(content)
    waiting.write(f".signoff/runs/run/hitl/{name}", text)

    resumed = waiting.signoff("resume", "run")

    assert resumed.returncode == 0, resumed.stderr
    assert state_of(waiting)["value"] == EXPECTED
