import sqlite3
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from signoff.contracts.definition import compile_file
from signoff.core.errors import InvalidWorkflow
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent


def read(folder: Path, text: str, **context: Any) -> Workflow:
    path = folder / "contract.yaml"
    path.write_text(dedent(text), "utf-8")
    return compile_file(SourceFile(path), CompileContext(folder, folder / ".signoff", **context))


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidWorkflow) as caught:
        read(folder, text)
    return [str(each).removeprefix(f"{folder}/") for each in caught.value.problems]


def test_every_mistake_is_reported_with_its_line(tmp_path: Path) -> None:
    """All mistakes of a file can be fixed at once, of whatever kind they are."""
    messages = problems(
        tmp_path,
        """\
        version: 1
        type: w1
        initialStep: planing
        database: mysql://host/name
        limits: {usd: many}
        steps:
          - name: plan
            comand: [echo]
            prompt: x
            next: writr
          - name: write
            command: nowhere_at_all:write
            parallel: sometimes
            postconditions:
              - "result.x ==="
            next:
              condition: 1 +
              onTrue: plan
              onFalse: missing
              maxIterations: 0
          - name: gate
            timeout: -1
            humanGate:
              prompt: Continue?
              options:
                - {label: "no", nextStep: elsewhere}
        """,
    )

    expected = [
        "contract.yaml:3: initial_step is the unknown step 'planing' (one of: plan, write, gate)",
        "contract.yaml:4: unsupported kind of database 'mysql'",
        "contract.yaml:5: limits.usd is 'many' (a number of at least 0)",
        "contract.yaml:8: unknown key 'comand' (did you mean 'command'? valid: name, title, co",
        "contract.yaml:10: next is the unknown step 'writr' (one of: plan, write, gate)",
        "contract.yaml:12: the command 'nowhere_at_all:write' cannot be loaded: ModuleNotFound",
        "contract.yaml:13: steps[1].parallel is 'sometimes' (true or false)",
        "contract.yaml:15: 'result.x ===' is not an expression",
        "contract.yaml:17: '1 +' is not an expression",
        "contract.yaml:19: next.on_false is the unknown step 'missing'",
        "contract.yaml:20: steps[1].next.max_iterations is 0 (a whole number from 1)",
        "contract.yaml:22: steps[2].timeout is -1 (a number of seconds above 0)",
        "contract.yaml:26: human_gate.options[0].next_step is the unknown step 'elsewhere'",
    ]
    assert len(messages) == len(expected), messages
    for line, beginning in zip(messages, expected, strict=True):
        assert line.startswith(beginning)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "steps: []\ntype: x\n",
            "contract.yaml:1: steps is [] (a list of steps, each with a name)",
        ),
        ("steps: [{name: a, command: [x]}]\n", "contract.yaml:1: type is missing"),
        ("type: x\nsteps: [{command: [x]}]\n", "contract.yaml:2: steps[0].name is missing"),
        ("type: x\nsteps: [a]\n", "contract.yaml:2: steps[0] is 'a'"),
        (
            "type: x\nsteps: [{name: a b, command: [x]}]\n",
            "contract.yaml:2: steps[0].name is 'a b'",
        ),
        ("version: 2\ntype: x\nsteps: 5\n", "contract.yaml:1: version 2 is newer than signoff"),
        ("- a\n", "contract.yaml:1: is not a list of `key: value` settings"),
        ("", "contract.yaml:1: is empty"),
        ("type: [\n", "contract.yaml:"),
    ],
)
def test_an_unusable_file_is_one_problem(tmp_path: Path, text: str, message: str) -> None:
    """Problems that follow from the first one are not reported."""
    (problem,) = problems(tmp_path, text)

    assert problem.startswith(message)


def test_names_are_read_in_either_form_and_schemas_left_alone(tmp_path: Path) -> None:
    """Definitions from JavaScript need no renamed keys."""
    ours = read(
        tmp_path,
        """\
        type: x
        initial_step: a
        steps:
          - name: a
            prompt: p
            schema: {type: object, additionalProperties: false}
            next: {condition: 'true', on_true: b, on_false: a, max_iterations: 2}
          - name: b
            human_gate:
              prompt: p
              options: [{label: more, next_step: a, requires_input: true}, {label: end}]
        """,
    )
    theirs = read(
        tmp_path,
        """\
        type: x
        initialStep: a
        steps:
          - name: a
            prompt: p
            schema: {type: object, additionalProperties: false}
            next: {condition: 'true', onTrue: b, onFalse: a, maxIterations: 2}
          - name: b
            humanGate:
              prompt: p
              options: [{label: more, nextStep: a, requiresInput: true}, {label: end}]
        """,
    )

    assert ours.digest == theirs.digest
    assert "additionalProperties" in ours.definition_json


def test_steps_that_name_no_agent_ask_the_default_one_and_the_run_remembers(
    tmp_path: Path,
) -> None:
    """A run that is resumed where another agent is the default keeps its own."""
    text = """\
    type: x
    steps: [{name: a, prompt: p, next: b}, {name: b, prompt: p, agent: codex}]
    """

    workflow = read(tmp_path, text, default_agent="auto", installed=["gemini"])

    steps = workflow.source["contract"]["steps"]
    assert [step["asks"][1] for step in steps] == ["auto", "codex"]
    assert workflow.source["given"]["default_agent"] == "auto"


def test_unknown_agents_are_reported_before_a_run(tmp_path: Path) -> None:
    """A typo in the third step must not be found after the first two were paid for."""
    text = """\
    type: x
    roles: {writer: claud, editor: codex}
    steps:
      - {name: a, prompt: p, agent: writer, next: b}
      - {name: b, prompt: p, agent: gemni, next: c}
      - {name: c, prompt: p}
    """

    with pytest.raises(InvalidWorkflow) as caught:
        read(tmp_path, text, agent_names=["claude", "codex", "gemini"])

    writer, second = (str(each).removeprefix(f"{tmp_path}/") for each in caught.value.problems)
    assert writer.startswith("contract.yaml:2: roles.writer is the unknown agent 'claud'")
    assert "valid: claude, codex, gemini" in writer
    assert second.startswith("contract.yaml:5: steps[1].agent is the unknown agent 'gemni'")


async def test_the_database_and_programs_are_found_from_the_projects_folder(
    tmp_path: Path,
) -> None:
    """Paths in a file do not depend on the current folder."""

    with sqlite3.connect(tmp_path / "books.db") as db:
        db.execute("CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT)")
    db.close()
    (tmp_path / "title.txt").write_text("Emma")
    workflow = read(
        tmp_path,
        """\
        type: x
        database: books.db
        steps:
          - {name: read, command: [cat, title.txt], next: write}
          - name: write
            prompt: "Catalogue {{results.read}}."
            postconditions: [result.ok]
        """,
    )
    statement = '["INSERT INTO books (title) VALUES (?)", ["Emma"]]'
    claude = ScriptedAgent([f'{{"ok": true, "statements": [{statement}]}}'])

    async with Engine(MemoryStore(), agents={"claude": claude}) as engine:
        result = await engine.start(workflow, name="run")

    assert result.status is Status.COMPLETED, result.reason
    assert claude.prompts[0].startswith("Catalogue Emma.")
    with sqlite3.connect(tmp_path / "books.db") as db:
        assert db.execute("SELECT title FROM books").fetchall() == [("Emma",)]
    db.close()
    assert len(list((tmp_path / "backups").glob("*.db"))) == 1


def test_a_condition_that_cannot_be_imported_is_reported_with_its_line(tmp_path: Path) -> None:
    """An unknown name would fail every attempt, after the agent was paid."""
    messages = problems(
        tmp_path,
        """\
        type: t
        steps:
          - name: a
            command: [echo]
            postconditions:
              - {name: n, check: "nowhere_at_all:check"}
            next: {condition: "sys:maxsize", on_true: a, on_false: a}
        """,
    )

    assert messages == [
        (
            "contract.yaml:6: the condition 'nowhere_at_all:check' cannot be loaded: "
            "ModuleNotFoundError: No module named 'nowhere_at_all'"
        ),
        "contract.yaml:7: the condition 'sys:maxsize' is not a function",
    ]


def test_a_gate_that_requires_presence_is_another_gate(tmp_path: Path) -> None:
    """The requirement is part of the definition; without it, earlier runs keep their digest."""
    text = """\
        type: x
        steps:
          - name: a
            human_gate: {prompt: p, options: [{label: go, ends: completed}]%s}
        """
    plain, strict = read(tmp_path, text % ""), read(tmp_path, text % ", presence: true")
    (off,) = [step.gate for step in plain.steps.values()]
    (on,) = [step.gate for step in strict.steps.values()]

    assert off is not None
    assert on is not None
    assert (off.presence, on.presence) == (False, True)
    assert read(tmp_path, text % ", presence: false").digest == plain.digest != strict.digest
