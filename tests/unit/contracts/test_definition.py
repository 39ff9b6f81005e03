import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from signoff.contracts import (
    Condition,
    ConditionalNext,
    Database,
    GateOption,
    HumanGate,
    StepContext,
    WorkflowDefinition,
    WorkflowStep,
    define_workflow,
)
from signoff.contracts.checkpoint import checkpoint_of
from signoff.contracts.definition import QueryCheck, compile_file
from signoff.core.errors import AuthorError, InvalidWorkflow
from signoff.core.outcome import Status
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.tables import table


def nothing(_ctx: Any) -> None:
    """Does nothing."""


def problems(definition: Any, **more: Any) -> list[str]:
    with pytest.raises(InvalidWorkflow) as caught:
        define_workflow(definition, **more)
    return [str(problem) for problem in caught.value.problems]


def steps(*given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "t", "steps": list(given)}


def test_every_mistake_of_a_definition_is_reported_at_once() -> None:
    """Fixing one mistake only to learn of the next one takes an afternoon."""
    wrong = {
        "type": "w1",
        "initialStep": "planing",
        "database": "mysql://host/name",
        "steps": [
            {"name": "plan", "comand": nothing, "prompt": "x", "next": "writr"},
            {
                "name": "write",
                "command": "w1:write",
                "preconditions": [{"name": "a"}],
                "postconditions": [{"name": "b", "check": "result.x =="}],
                "parallelKey": "areas",
                "timeout": "soon",
            },
            {
                "name": "review",
                "command": nothing,
                "next": {
                    "condition": "true",
                    "onTrue": "plan",
                    "onFalse": "missing",
                    "maxIterations": 0,
                },
            },
            {
                "name": "gate",
                "humanGate": {
                    "prompt": "Continue?",
                    "options": [
                        {"label": "yes", "nextStep": "finsh"},
                        {"label": "no", "nextStep": None, "ends": "badly"},
                    ],
                },
            },
        ],
    }

    message = problems(wrong)

    expected = [
        "step 'plan'.comand: unknown key 'comand' (did you mean 'command'? valid: ",
        "step 'write'.preconditions[0].check: preconditions[0].check is missing",
        "step 'write'.timeout: timeout is 'soon' (a number of seconds above 0)",
        "initial_step: initial_step is the unknown step 'planing' (one of: plan, write, ",
        "database: unsupported kind of database 'mysql'",
        "step 'plan'.next: next is the unknown step 'writr'",
        "step 'write'.command: the command 'w1:write' cannot be loaded: ModuleNotFoundError",
        "step 'write'.postconditions[0].check: 'result.x ==' is not an expression",
        "step 'write'.parallel_key: parallel_key without parallel: true",
        "step 'review'.next.on_false: next.on_false is the unknown step 'missing'",
        "step 'review'.next.max_iterations: next.max_iterations is 0 (a whole number from 1)",
        "step 'gate'.human_gate.options[0].next_step: human_gate.options[0].next_step is the unkn",
        "step 'gate'.human_gate.options[1].ends: human_gate.options[1].ends is 'badly'",
    ]
    assert len(message) == len(expected)
    for line, beginning in zip(sorted(message), sorted(expected), strict=True):
        assert line.startswith(beginning)


@table(
    ("definition", "message"),
    [
        ("w1", "workflow: is 'w1' (a mapping or a WorkflowDefinition)"),
        ({"steps": []}, "type: type is missing (such as w1_editing)"),
        ({"type": "t"}, "steps: steps is missing (a list of steps"),
        ({"type": "t", "steps": []}, "steps: steps is [] (a list of steps"),
        (steps({"command": nothing}), "steps[0].name: name is missing"),
        (steps({"name": "a"}), "step 'a': step 'a' does nothing"),
        (steps({"name": "a", "command": []}), "step 'a'.command: command is []"),
        (steps({"name": "a", "command": 5}), "step 'a'.command: command is 5"),
        (steps({"name": "a", "command": ["x", 1]}), "step 'a'.command[1]: command[1] is 1"),
        (
            steps({"name": "a", "command": "echo hi"}),
            "step 'a'.command: unknown command 'echo hi' (a program is a list: [echo, hi])",
        ),
        (
            {**steps({"name": "a", "command": "read"}), "commands": {"write": nothing}},
            "step 'a'.command: unknown command 'read' (valid: write; a program is",
        ),
        (
            {**steps({"name": "a", "command": "w1:read"}), "commands": {"w1:write": nothing}},
            (
                "step 'a'.command: the command 'w1:read' cannot be loaded: ModuleNotFoundError: "
                "No module named 'w1' (valid: w1:write)"
            ),
        ),
        (
            steps({"name": "a", "prompt": "x", "schema": {"type": "objekt"}}),
            "step 'a'.schema: not a valid JSON Schema, at $.type: 'objekt' is not valid",
        ),
        (
            WorkflowDefinition(type="t", steps=[WorkflowStep("a", nothing, postconditions=[5])]),
            "step 'a'.postconditions[0]: postconditions[0] is 5 (an expression",
        ),
        (
            WorkflowDefinition(type="t", steps=[WorkflowStep("a", nothing, preconditions="x")]),
            "step 'a'.preconditions: preconditions is 'x' (a list of conditions",
        ),
        (steps({"name": "a", "command": nothing, "prompt": "x"}), "step 'a'.prompt: has a command"),
        (
            steps({"name": "a+b", "command": nothing}),
            "step 'a+b'.name: name is 'a+b' (a name without + and /)",
        ),
        (
            steps(*[{"name": "a", "command": nothing}] * 2),
            "step 'a'.name: 2 steps have the name 'a'",
        ),
        (
            steps({"name": "a", "command": nothing, "parallel": 1}),
            "step 'a'.parallel: parallel is 1 (true or false)",
        ),
        (
            steps({"name": "a", "command": nothing, "next": 3}),
            "step 'a'.next: next is 3 (the name of a step, or a mapping",
        ),
        (
            steps(
                {"name": "a", "command": nothing, "parallel": True, "next": "c"},
                {"name": "b", "command": nothing, "parallel": True},
                {"name": "c", "command": nothing},
            ),
            "step 'a'.next: step 'a' runs together with 'b', which decides what follows (put `n",
        ),
        (
            steps(
                {
                    "name": "a",
                    "parallel": True,
                    "humanGate": {"prompt": "?", "options": [{"label": "x", "nextStep": None}]},
                },
                {"name": "b", "command": nothing, "parallel": True},
            ),
            "step 'a'.human_gate: step 'a' runs together with 'b', which decides what follows (",
        ),
        (
            steps({"name": "a", "command": nothing, "postconditions": "x"}),
            "step 'a'.postconditions: postconditions is 'x' (a list of conditions",
        ),
        (
            steps({"name": "a", "command": nothing, "preconditions": [{"name": "x", "check": 1}]}),
            "step 'a'.preconditions[0].check: preconditions[0].check is 1 (an expression",
        ),
        (
            steps({"name": "a", "humanGate": {"options": []}}),
            "step 'a'.human_gate.prompt: human_gate.prompt is missing",
        ),
        (
            steps({"name": "a", "humanGate": {"prompt": "x", "options": []}}),
            "step 'a'.human_gate.options: human_gate.options is [] (a list of options",
        ),
        (
            {**steps({"name": "a", "command": nothing}), "limits": {"euros": 1}},
            "limits.euros: unknown key 'euros'",
        ),
        ({**steps({"name": "a", "command": nothing}), "limits": 5}, "limits: limits is 5"),
    ],
)
def test_a_mistake_is_reported_with_its_location(definition: Any, message: str) -> None:
    """The report says what is wrong, where, and what is valid."""
    assert any(problem.startswith(message) for problem in problems(definition)), problems(
        definition
    )


def test_a_command_that_raises_while_it_is_loaded_is_a_problem(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken module must not end the program."""
    (tmp_path / "broken_commands.py").write_text("raise ZeroDivisionError('early')\n")
    monkeypatch.syspath_prepend(tmp_path)

    (message,) = problems(steps({"name": "a", "command": "broken_commands:write"}))

    assert "cannot be loaded: ZeroDivisionError: early" in message


def test_a_command_is_found_by_the_name_it_was_registered_under() -> None:
    """Names such as w1:write are chosen by the author and need not be modules."""
    workflow = define_workflow(
        steps({"name": "a", "command": "w1:write"}), commands={"w1:write": nothing}
    )

    assert list(workflow.steps) == ["a"]


def test_typed_objects_mean_the_same_as_a_dict() -> None:
    """Both give the same workflow, and so the same digest."""
    typed = define_workflow(
        WorkflowDefinition(
            type="t",
            initial_step="a",
            database=Database("x.db", keep=3),
            limits=Limits(calls=3),
            steps=[
                WorkflowStep(
                    "a",
                    command=["true"],
                    postconditions=[Condition("c", "result == null", "e")],
                    next=ConditionalNext("true", "b", "a", 2),
                ),
                WorkflowStep("b", human_gate=HumanGate("Go?", [GateOption("yes", None)], ["x"])),
            ],
        )
    )
    written = define_workflow(
        {
            "type": "t",
            "initialStep": "a",
            "database": {"url": "x.db", "keep": 3},
            "limits": {"calls": 3},
            "steps": [
                {
                    "name": "a",
                    "command": ["true"],
                    "postconditions": [{"name": "c", "check": "result == null", "error": "e"}],
                    "next": {
                        "condition": "true",
                        "onTrue": "b",
                        "onFalse": "a",
                        "maxIterations": 2,
                    },
                },
                WorkflowStep("b", human_gate=HumanGate("Go?", [GateOption("yes", None)], ["x"])),
            ],
        }
    )

    assert typed.digest == written.digest


def test_a_password_and_a_folder_are_not_stored_with_runs() -> None:
    """More people read the journal than the database, and projects are moved."""
    one = {"name": "a", "command": ["true"]}

    server = define_workflow({**steps(one), "database": "postgresql://ann:secret@host/books"})
    here = define_workflow({**steps(one), "database": "/here/books.db"})
    there = define_workflow({**steps(one), "database": "/there/books.db"})

    assert "secret" not in server.definition_json
    assert "ann@host/books" in server.definition_json
    assert here.digest == there.digest


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("command", ["false"]),
        ("prompt", "x"),
        ("postconditions", ["result == null"]),
        ("next", "b"),
        ("parallel", True),
    ],
)
def test_what_a_run_depends_on_changes_its_digest(change: str, value: Any) -> None:
    """A run that continues with other conditions than it started with proves nothing."""
    first: dict[str, Any] = {"name": "a", "command": ["true"], "next": "c"}
    other: dict[str, Any] = {"name": "b", "command": ["true"], "parallel": True, "next": "c"}
    both = {"condition": "true", "on_true": "a", "on_false": "b"}
    start: dict[str, Any] = {"name": "s", "command": ["true"], "next": both}
    last: dict[str, Any] = {"name": "c", "command": ["true"]}
    changed = {**first, change: value}
    if change == "prompt":
        changed.pop("command")

    before, after = (define_workflow(steps(start, each, other, last)) for each in (first, changed))

    assert before.digest != after.digest


def is_done(_ctx: Any) -> bool:
    """Holds."""
    return True


@pytest.mark.parametrize(
    "definition",
    [
        steps({"name": "a", "command": nothing, "postconditions": [is_done, "result == null"]}),
        WorkflowDefinition(
            type="t", steps=[WorkflowStep("a", nothing, postconditions=[is_done, "result == null"])]
        ),
    ],
)
def test_a_bare_function_or_text_is_a_condition_of_its_own_name(definition: Any) -> None:
    """Short conditions are short in Python too."""
    workflow = define_workflow(definition)

    (step,) = workflow.source["contract"]["steps"]
    assert [condition[0] for condition in step["after"]] == ["is_done", "result == null"]


def test_a_condition_may_be_one_of_the_named_functions() -> None:
    """Names in `commands` are valid wherever a function can be named."""
    step = {"name": "a", "command": "w1:do", "preconditions": ["w1:done"]}

    workflow = define_workflow(steps(step), commands={"w1:do": nothing, "w1:done": is_done})

    (described,) = workflow.source["contract"]["steps"]
    assert described["before"][0][2]["name"].endswith("is_done")


# Conditions that query the database, in files and in Python.


FILE = """
type: books
database: {{url: books.db, backup: false}}
steps:
  - name: add
    prompt: Add {{{{title}}}} to the books.
    postconditions:
      - name: listed once
        query: SELECT count(*) FROM books WHERE title = :title
        values: {{title: params.title}}
        check: value == 1
        error: It is not listed once
      - name: cheap
        query: {query}
        check: {check}
"""
CHEAP = "SELECT title, price FROM books"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "books.db")) as db:
        db.execute("CREATE TABLE books (title TEXT, price INTEGER)")
        db.commit()
    return tmp_path


def compiled(
    folder: Path, query: str = CHEAP, check: str = "rows.all(r, r.price < 10)"
) -> Workflow:
    file = folder / "contract.yaml"
    file.write_text(FILE.format(query=json.dumps(query), check=json.dumps(check)))
    return compile_file(SourceFile(file), CompileContext(folder, folder / ".signoff"))


async def play(workflow: Workflow, *statements: tuple[str, list[Any]]) -> RunResult:
    replies = [json.dumps({"statements": [[sql, values]]}) for sql, values in statements]
    agents = {"claude": ScriptedAgent(replies)}
    async with Engine(MemoryStore(), agents=agents) as engine:
        return await engine.start(workflow, {"title": "Emma'; --"}, name="run")


INSERT = "INSERT INTO books VALUES (?, ?)"


async def test_a_file_checks_the_database_without_a_function(folder: Path) -> None:
    """The first reply adds another book, the second one is too expensive, the third is right."""
    result = await play(compiled(folder), (INSERT, ["Emma", 5]), (INSERT, ["Emma'; --", 5]))

    assert result.status is Status.COMPLETED, result.reason
    with closing(sqlite3.connect(folder / "books.db")) as db:
        assert db.execute("SELECT title FROM books").fetchall() == [("Emma'; --",)]


async def test_work_that_does_not_meet_the_query_is_rolled_back(folder: Path) -> None:
    """The query runs inside the transaction."""
    result = await play(compiled(folder), (INSERT, ["Emma'; --", 50]), (INSERT, ["Emma'; --", 60]))

    assert result.status is Status.WAITING
    with closing(sqlite3.connect(folder / "books.db")) as db:
        assert db.execute("SELECT count(*) FROM books").fetchone() == (0,)


@pytest.mark.parametrize(
    ("query", "check", "problem"),
    [
        ("DELETE FROM books WHERE price = 1", "value == 1", "only read"),
        ("INSERT INTO books VALUES ('x', 1) RETURNING price", "value == 1", "only read"),
        ("DROP TABLE books", "value == 1", "migration"),
        ("SELECT load_extension('x')", "value == 1", "load_extension"),
        ("SELECT 1; DELETE FROM books", "value == 1", "several statements"),
        (CHEAP, "count == 1", "unknown name count; valid: checkpoint"),
        (CHEAP, "rows ==", "not an expression"),
    ],
)
def test_a_bad_query_is_an_error_of_the_definition(
    folder: Path, query: str, check: str, problem: str
) -> None:
    """It must not wait until an agent has done its work."""
    with pytest.raises(AuthorError) as refused:
        compiled(folder, query, check)

    assert problem in str(refused.value)
    assert "contract.yaml:14" in str(refused.value)


def test_a_query_needs_a_database_and_values_need_a_query() -> None:
    """Both would only fail after the work."""
    checks = [
        {"name": "a", "query": "SELECT 1", "check": "value == 1"},
        {"name": "b", "check": "result == 1", "values": {"x": "params.x"}},
        {"name": "c", "query": "SELECT :x", "check": "value == 1", "values": {"x": "nothing.x"}},
    ]

    with pytest.raises(AuthorError) as refused:
        define_workflow(
            {"type": "t", "steps": [{"name": "s", "command": print, "postconditions": checks}]}
        )

    for problem in ("a query needs a database", "values without a query", "unknown name nothing"):
        assert problem in str(refused.value)


class Rows:
    """A database that returns the same rows to every query."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._rows = rows
        self.asked: list[Any] = []

    def query(self, sql: str, params: Any = ()) -> Any:
        self.asked.append((sql, params))
        return self._rows


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ([{"n": Decimal(3)}], "value == 3"),
        ([{"n": Decimal("2.5")}], "value > 2.0 && value < 3.0"),
        ([{"n": UUID(int=1)}], "value == '00000000-0000-0000-0000-000000000001'"),
        ([{"n": b"\xff"}], "value == 'ff'"),
        ([{"n": {"a": [1, None]}}], "rows[0].n.a[0] == 1"),
        ([], "value == null && size(rows) == 0"),
    ],
)
def test_values_of_the_database_are_plain_values_in_the_check(
    rows: list[dict[str, Any]], check: str
) -> None:
    """Expressions know numbers, texts, lists and mappings."""
    database: Any = Rows(*rows)
    ctx = StepContext("s", checkpoint_of("run", "t", "s", {}), {"x": 7}, view=database)

    held = QueryCheck("SELECT :x", check, {"x": "params.x + 1"})(ctx)

    assert held
    assert database.asked == [("SELECT :x", {"x": 8})]


def test_a_worker_is_shown_the_query() -> None:
    """It can then run the query itself."""
    condition = Condition("listed", "value == 1", query="SELECT count(*) FROM books")

    assert condition.description == "listed (value == 1), for: SELECT count(*) FROM books"
