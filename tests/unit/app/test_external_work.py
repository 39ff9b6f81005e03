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
