"""Workers do work; what a human decides is out of their reach."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from signoff.app.answering import (
    AnswerInput,
    decide,
    find_item,
    record_answer,
    record_file_answers,
    token_of,
)
from signoff.app.external_work import next_work, start_pulled, submit
from signoff.app.project import Project
from signoff.app.start import resume
from signoff.core.outcome import Status
from signoff.errors import InvalidAnswer, UsageError

GATED = """
type: gated
steps:
  - {name: write, prompt: Write., next: gate}
  - name: gate
    human_gate:
      prompt: Publish?
      options: [{label: Approve, ends: completed}, {label: Reject, ends: rejected}]
"""


@pytest.fixture
def worker(project: Project) -> Project:
    """The project as a worker of the run `one` opens it."""
    (project.cwd / "gated.yaml").write_text(GATED)
    return project


async def start_one(project: Project, name: str = "one") -> Project:
    """Starts a run and returns the project as its worker opens it."""
    status = await start_pulled(project, project.find("gated.yaml"), {}, name=name)
    return replace(project, worker_token=status.token)


async def test_a_worker_does_its_work_and_leaves_the_decision_to_a_human(worker: Project) -> None:
    """A model that wants to be done would approve its own work."""
    project, worker = worker, await start_one(worker)

    taken = await next_work(worker, "one")
    done = await submit(worker, "one", None, AnswerInput("the text"))
    gate = find_item(worker, "one")
    refused: list[Callable[[], object]] = [
        lambda: record_answer(worker, gate.id, AnswerInput("Approve")),
        lambda: decide(worker, gate.id, AnswerInput(None), yes=True),
        lambda: decide(worker, gate.id, AnswerInput(None), yes=False),
    ]
    for decision in refused:
        with pytest.raises(UsageError, match="a worker cannot"):
            decision()
    with pytest.raises(InvalidAnswer, match="only a human"):
        await submit(worker, "one", str(gate.id), AnswerInput("Approve"))
    decide(project, gate.id, AnswerInput(None), yes=True)
    ended = await resume(project, "one")

    assert len(taken.work) == 1
    assert done.verdict is not None
    assert done.verdict.accepted
    assert ended.status is Status.COMPLETED


@pytest.mark.parametrize(
    "options",
    [
        {"adopt": True},
        {"target": "gated.yaml"},
        {"switch": {"claude": "manual"}},
        {"params": {"a": 1}},
    ],
)
async def test_a_worker_cannot_change_how_its_run_continues(
    worker: Project, options: dict[str, object]
) -> None:
    """It could replace the conditions that its work has to meet."""
    worker = await start_one(worker)

    with pytest.raises(UsageError, match="a worker cannot change"):
        await resume(worker, "one", **options)  # type: ignore[arg-type]  # one of its options


async def test_a_worker_cannot_answer_by_file(worker: Project) -> None:
    """A resume reads answer files, and a submission resumes the run."""
    project, worker = worker, await start_one(worker)
    await submit(worker, "one", None, AnswerInput("the text"))
    gate = find_item(worker, "one")
    file = project.folder("one") / "hitl/answers.json"
    file.write_text(json.dumps({str(gate.id): "Approve"}))

    await next_work(worker, "one")
    record_file_answers(worker, "one")

    assert project.store.item(gate.id).state == "open"
    assert record_file_answers(project, "one") == []
    assert project.store.item(gate.id).state == "answered"


async def test_a_worker_does_the_work_of_its_own_run_only(worker: Project) -> None:
    """Several agents may work in one project."""
    project, first = worker, await start_one(worker)
    other = await start_one(project, "two")

    assert first.worker_token != other.worker_token
    assert first.worker_token == token_of(project, project.run("one"))
    with pytest.raises(UsageError, match="does not belong to run 'two'"):
        await next_work(first, "two")
    with pytest.raises(UsageError, match="does not belong to run 'two'"):
        await submit(first, "two", None, AnswerInput("x"))
    assert (await next_work(project, "two")).work
