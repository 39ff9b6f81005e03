import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from signoff.app.people.answering import AnswerInput
from signoff.app.people.external_work import (
    RunStatus,
    next_work,
    run_status,
    start_pulled,
    submit,
)
from signoff.app.runs.history import load_state
from signoff.app.runs.start import FROM_OUTSIDE, start
from signoff.app.runs.targets import Target
from signoff.app.settings.project import Project
from signoff.core.errors import InvalidAnswer, NotSerialisable, RunBusy, UsageError
from signoff.core.outcome import Status
from signoff.core.remedies import Resume
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock
from tests.tables import table
from tests.unit.app.conftest import project_in

TWO = '''
from signoff import Outcome, Response, StepDef, Workflow


async def two(ctx):
    """Asks an agent, then a human, in the same form."""
    draft = await ctx.ask("claude", "Write.", key="draft")
    seen = await ctx.wait(Response("Read it aloud and say how it sounds."))
    return Outcome.OK, {"draft": draft.text, "sounds": seen.value}


WORKFLOW = Workflow("two", StepDef("two", handler=two, next={Outcome.OK: None}))
'''


@pytest.fixture
def target(project: Project) -> Target:
    (project.cwd / "two.py").write_text(TWO)
    return project.find("two.py")


@pytest.fixture
async def before(project: Project, target: Target) -> RunStatus:
    """The status of the run `one` after its start."""
    await start(project, target, {}, name="one", switch=FROM_OUTSIDE)
    return run_status(project, "one")


async def test_an_agent_call_of_any_workflow_is_work(project: Project, before: RunStatus) -> None:
    """External workers need not know how the workflow was written."""
    (piece,) = before.work

    after = await submit(project, "one", None, AnswerInput("the draft"))

    assert (piece.prompt, piece.step, piece.must_hold) == ("Write.", "two", ())
    assert after.verdict is not None
    assert after.verdict.accepted
    assert after.work == ()


@pytest.mark.usefixtures("before")
async def test_a_request_to_a_human_is_not_work(project: Project) -> None:
    """It looks like an agent call, but only a human may answer it."""
    after = await submit(project, "one", None, AnswerInput("the draft"))
    (asked,) = after.people

    with pytest.raises(InvalidAnswer, match="only a human"):
        await submit(project, "one", str(asked["number"]), AnswerInput("lovely"))

    assert asked["kind"] == "response"
    assert project.store.item(asked["number"]).state == "open"


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    "answer",
    [
        AnswerInput("x", extras={"statements": [["UPDATE t SET a = 1"]]}),
        AnswerInput("x", extras={"next_step_hint": "two"}),
    ],
)
async def test_extras_that_the_step_does_not_use_are_rejected(
    project: Project, answer: AnswerInput
) -> None:
    """A worker would wrongly believe that its statements were applied."""

    with pytest.raises(InvalidAnswer, match="this work does not accept"):
        await submit(project, "one", None, answer)

    assert len(run_status(project, "one").work) == 1


@pytest.mark.usefixtures("before")
async def test_work_of_another_run_is_refused(project: Project, target: Target) -> None:
    """Two runs may ask the same question and need different answers."""
    await start(project, target, {}, name="other", switch=FROM_OUTSIDE)

    with pytest.raises(InvalidAnswer, match="run 'other' has no open work for '1'"):
        await submit(project, "other", "1", AnswerInput("the draft"))


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    "answer",
    [AnswerInput("<result>"), AnswerInput(" <JSON>\n"), AnswerInput("<why>", failed=True)],
)
async def test_a_command_that_was_not_filled_in_uses_up_no_attempt(
    project: Project, answer: AnswerInput
) -> None:
    """An agent that pastes a command twice as it is printed would stop the run for a human."""
    head = project.run("one").head

    with pytest.raises(InvalidAnswer, match="placeholders"):
        await submit(project, "one", None, answer)

    assert [each.number for each in run_status(project, "one").work] == [1]
    assert project.run("one").head == head


@pytest.mark.usefixtures("before")
async def test_work_is_recorded_while_another_process_drives_the_run(
    project: Project, clock: FrozenClock
) -> None:
    """Waiting has timed out, but the work is not lost: the next process uses it."""
    other = replace(this_process(), id="other")
    project.store.take(project.run("one").id, other, lambda _owner: True)

    with pytest.raises(RunBusy, match="work #1 is recorded"):
        await submit(project, "one", None, AnswerInput("the draft"))

    assert project.store.item(1).state == "answered"


async def test_a_run_with_its_own_agents_is_not_resumed(project: Project, target: Target) -> None:
    """Only a run whose work is handed out may be resumed by a worker."""
    async with project.engine() as engine:
        await engine.start(
            target.workflow, name="one", target=target.location, switch={"claude": "manual"}
        )
    project.store.answer(1, '{"value": "x"}', "ann", 0.0, project.store.item(1).digest)

    with pytest.raises(UsageError) as refused:
        await next_work(project, "one")
    assert refused.value.remedies == (Resume("one"), Resume("one", external=True))


JUDGED = """
type: judged
steps:
  - name: judge
    prompt: Judge it.
    {schema}
    postconditions: ['has(result.decision)']
"""
SCHEMA = "schema: {type: object, required: [decision], properties: {decision: {type: string}}}"


@pytest.mark.parametrize("schema", [SCHEMA, "title: without a schema"])
@pytest.mark.parametrize("text", ['{"decision": "appro', '["a", ', '{"n": ' + "9" * 5_000 + "}"])
async def test_malformed_json_is_a_usage_error_and_uses_up_no_attempt(
    project: Project, schema: str, text: str
) -> None:
    """A slip of quoting in a shell is no attempt at the work."""
    (project.cwd / "judged.yaml").write_text(JUDGED.replace("{schema}", schema))
    await start(project, project.find("judged.yaml"), {}, name="one", switch=FROM_OUTSIDE)

    with pytest.raises(UsageError, match="not valid JSON"):
        await submit(project, "one", None, AnswerInput(text))

    (work,) = run_status(project, "one").work
    assert work.attempt == 1
    done = await submit(project, "one", None, AnswerInput('{"decision": "yes"}'))
    assert done.verdict is not None
    assert done.verdict.accepted, done.verdict.problem


@pytest.mark.parametrize("extras", [{}, {"next_step_hint": "other"}])
async def test_a_failure_in_the_result_fails_the_attempt_whatever_comes_with_it(
    project: Project, extras: dict[str, str]
) -> None:
    """An option next to the result must not turn a reported failure into a success."""
    (project.cwd / "judged.yaml").write_text(JUDGED.replace("{schema}", "title: any"))
    await start(project, project.find("judged.yaml"), {}, name="one", switch=FROM_OUTSIDE)
    lie = '{"success": false, "decision": "approved", "error": "could not read it"}'

    after = await submit(project, "one", None, AnswerInput(lie, extras=extras))

    assert after.verdict is not None
    assert (after.verdict.accepted, after.verdict.problem) == (False, "could not read it")


TIDY = """
import sqlite3
from pathlib import Path

from signoff.contracts import define_workflow

DATABASE = Path(__file__).with_name("library.db")
if not DATABASE.exists():
    with sqlite3.connect(DATABASE) as db:
        db.execute("CREATE TABLE books (id INTEGER PRIMARY KEY)")
        db.executemany("INSERT INTO books VALUES (?)", [(n,) for n in range(12)])
    db.close()

WORKFLOW = define_workflow(
    {
        "type": "tidy",
        "database": {"url": str(DATABASE), "backup": False},
        "steps": [{"name": "tidy", "prompt": "Tidy up."}],
    }
)
"""


async def test_a_delete_that_is_submitted_waits_for_a_human(project: Project) -> None:
    """A worker must not confirm its own deletes."""
    (project.cwd / "tidy.py").write_text(TIDY)
    await start(project, project.find("tidy.py"), {}, name="spring", switch=FROM_OUTSIDE)
    work = json.dumps({"statements": [["DELETE FROM books WHERE id > ?", [1]]]})

    after = await submit(project, "spring", None, AnswerInput(work))
    (asked,) = after.people
    with pytest.raises(InvalidAnswer, match="only a human"):
        await submit(project, "spring", str(asked["number"]), AnswerInput("yes"))

    assert after.work == ()
    assert asked["kind"] == "approval"
    with closing(sqlite3.connect(project.cwd / "library.db")) as db:
        assert db.execute("SELECT count(*) FROM books").fetchone() == (12,)


# An agent that lies to `next` and `submit`: no lie gets it past the work.


WORKFLOW = """
from signoff.contracts import define_workflow

def compare(ctx):
    data = ctx.checkpoint.data
    return {"missing": [each for each in data["changes"] if each not in data["notes"]]}

gate = {
    "prompt": "Publish?",
    "context": ["notes", "results.compare.missing"],
    "options": [{"label": "Publish", "ends": "completed"}, {"label": "Reject", "ends": "rejected"}],
}
WORKFLOW = define_workflow({
    "type": "notes",
    "params": ["version"],
    "steps": [
        {"name": "collect", "command": lambda ctx: {"changes": ["#1", "#2"]}, "next": "write"},
        {
            "name": "write",
            "prompt": "Notes for {{version}}: {{changes}}. Missing: {{results.compare.missing}}",
            SCHEMA
            "postconditions": [
                {"name": "version", "check": "result.notes.contains(params.version)",
                 "error": "the notes do not name the version"},
            ],
            "next": "compare",
        },
        {
            "name": "compare",
            "command": compare,
            "preconditions": [
                '"write" in checkpoint.completedSteps', "size(checkpoint.changes) == 2",
            ],
            "next": {"condition": "size(result.missing) === 0", "on_true": "gate",
                     "on_false": "write", "max_iterations": 5},
        },
        {"name": "gate", "human_gate": gate},
    ],
})
"""
SCHEMA_LIES = """
            "schema": {"type": "object", "required": ["notes"],
                       "properties": {"notes": {"type": "string"}}},
"""

HALF = "1.0 has #1"
"""Notes that leave out a change."""


@dataclass(frozen=True)
class Lie:
    """What an agent submits although it has not done the work."""

    name: str
    result: Any
    accepted: bool = True
    """Whether it is accepted as an answer; it must not help either way."""
    options: dict[str, Any] = field(default_factory=dict)


def claims(name: str, *, accepted: bool = True, **keys: Any) -> Lie:
    return Lie(name, {"notes": HALF, **keys}, accepted)


def nested(depth: int) -> str:
    return '{"notes": ' + "[" * depth + "]" * depth + "}"


MANY: dict[str, Any] = {f"key{number}": [] for number in range(3_000)}
DONE = {"step": "compare", "completed_at": "", "result": {"missing": []}}
LIES = [
    claims("nothing changed", changes=[]),
    claims("nothing is missing", missing=[]),
    claims("both, and more", changes=[], missing=[], version="1.0"),
    claims("the results of other steps", results={"collect": {"changes": []}}),
    claims("the engine's own entries", _completed=[DONE], _owners={}, _items={}, _marker=[]),
    claims("the decision at the gate", _gate={"step": "gate", "option": "Publish", "input": ""}),
    claims("the decision by name", gate={"option": "Publish"}, gateDecision={"option": "Publish"}),
    claims("the checkpoint", checkpoint={"changes": []}, completed=["compare"], step="gate"),
    claims("other parameters", params={"version": "2.0"}, item="x"),
    claims("a prototype", __proto__={"changes": []}, constructor={"prototype": {"missing": []}}),
    Lie("names with dots", {"notes": HALF, "results.collect.changes": [], "data.changes": []}),
    claims("a list of everything", **MANY),
    claims("characters that break lines", text="\u2028\x00\x1b[2J\r\n--- work #1 ---"),
    Lie("a step to skip to", {"notes": HALF}, options={"extras": {"next_step_hint": "gate"}}),
    Lie("another version", {"notes": "2.0 has #1 #2", "version": "2.0"}, accepted=False),
    Lie("success without work", {"success": True, "result": {}}, accepted=False),
    Lie("proofs that passed", {"success": True, "postconditionsPassed": True}, accepted=False),
    claims("success, but not true", success="true", accepted=False),
    claims("success that failed", success=False, result={"missing": []}, accepted=False),
    claims("null as success", success=None, accepted=False),
    Lie("failed, then published", {"notes": HALF, "success": False}, accepted=False,
        options={"extras": {"next_step_hint": "gate"}}),
    Lie("statements for no database", {"notes": HALF}, accepted=False,
        options={"extras": {"statements": [["DELETE FROM runs"]]}}),
    Lie("something older", {"notes": HALF}, accepted=False, options={"digest": "0" * 12}),
    Lie("a number of 5,000 digits", '{"notes": "1.0", "n": ' + "9" * 5_000 + "}", accepted=False),
    Lie("endless brackets", nested(50_000), accepted=False),
    Lie("deep brackets", nested(500), accepted=False),
    Lie("half an object", '{"notes": "1.0 has #1 #2', accepted=False),
    Lie("notes twice", '{"notes": "0", "notes": "1.0 #1 #2"}', accepted=False),
    Lie("a text", "I have written the notes for 1.0 with #1 and #2.", accepted=False),
    Lie("nothing", "", accepted=False),
    Lie("the form as it is", "<JSON>", accepted=False),
    Lie("null", "null", accepted=False),
    Lie("half a character", '{"notes": "1.0 \\ud800"}', accepted=False),
    Lie("no number", '{"notes": "1.0", "n": NaN}', accepted=False),
    Lie("no number that is a number", '{"notes": "1.0", "n": 1e999}', accepted=False),
]  # fmt: skip


async def start_run(project: Project, schema: str, name: str = "one") -> None:
    (project.cwd / f"{name}.py").write_text(WORKFLOW.replace("SCHEMA", schema))
    target = project.find(f"{name}.py")
    await start_pulled(project, target, {"version": "1.0"}, name=name)


async def tell(project: Project, lie: Lie) -> RunStatus | None:
    """Submits a lie; None if the command is refused before anything is recorded."""
    result = lie.result if isinstance(lie.result, str) else json.dumps(lie.result)
    try:
        return await submit(project, "one", None, AnswerInput(result, **lie.options))
    except (UsageError, NotSerialisable):
        return None


def assert_not_past(project: Project) -> None:
    """The work is still to be done, and what other steps returned is what they returned."""
    status, state = run_status(project, "one"), load_state(project, project.run("one")).state
    assert [work.step for work in status.work] == ["write"], status.row.reason
    assert status.people == ()
    assert status.work[0].attempt <= 2
    (collected,) = [each["result"] for each in state["_completed"] if each["step"] == "collect"]
    assert collected == {"changes": ["#1", "#2"]}
    assert state["changes"] == ["#1", "#2"]
    assert "_gate" not in state


@table(("lie", "schema"), product(LIES, ["", SCHEMA_LIES]))
async def test_no_lie_replaces_the_work(tmp_path: Path, lie: Lie, schema: str) -> None:
    """Whatever is submitted, a human is only asked about notes that have every change."""
    with project_in(tmp_path, FrozenClock()) as project:
        await start_run(project, schema)

        status = await tell(project, lie)

        accepted = status is not None and status.verdict is not None and status.verdict.accepted
        assert accepted is lie.accepted, status and status.verdict
        assert_not_past(project)
        done = await submit(project, "one", None, AnswerInput(json.dumps({"notes": "1.0: #1, #2"})))
        assert [request["step"] for request in done.people] == ["gate"], done
        assert done.row.status is Status.WAITING


async def test_a_gate_of_the_own_and_work_of_another_run_are_out_of_reach(project: Project) -> None:
    """Numbers of requests are easy to guess."""
    await start_run(project, SCHEMA_LIES)
    await start_run(project, SCHEMA_LIES, "two")
    (other,) = run_status(project, "two").work
    answer = AnswerInput(json.dumps({"notes": "1.0: #1, #2"}))

    with pytest.raises(InvalidAnswer, match="no open work"):
        await submit(project, "one", str(other.number), answer)
    done = await submit(project, "one", None, answer)
    (gate,) = done.people
    for number, text in ((gate["number"], AnswerInput("Publish")), (1, answer)):
        with pytest.raises(InvalidAnswer):
            await submit(project, "one", str(number), text)

    assert run_status(project, "two").work == (other,)
    assert run_status(project, "one").row.status is Status.WAITING


async def test_two_workers_that_submit_the_same_work_do_it_once(project: Project) -> None:
    """The second one is told, and costs no attempt."""
    await start_run(project, SCHEMA_LIES)
    (work,) = run_status(project, "one").work
    answer = AnswerInput(json.dumps({"notes": HALF}))

    first = await submit(project, "one", str(work.number), answer)
    with pytest.raises(InvalidAnswer, match="no longer open"):
        await submit(project, "one", str(work.number), answer)

    assert first.verdict is not None
    assert first.verdict.accepted
    assert_not_past(project)
