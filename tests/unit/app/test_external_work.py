import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from signoff.app.answering import AnswerInput
from signoff.app.external_work import (
    RunStatus,
    next_work,
    run_status,
    submit,
)
from signoff.app.project import Project
from signoff.app.start import FROM_OUTSIDE, start
from signoff.app.targets import Target
from signoff.errors import InvalidAnswer, RunBusy, UsageError
from signoff.remedies import Resume
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock

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
