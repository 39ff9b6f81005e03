import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from signoff import Approval, Outcome, Question, Response, StepContext, StepDef, Workflow
from signoff.app.answering import record_file_answers
from signoff.app.project import Project
from signoff.core.requests import Request
from signoff.testing import FrozenClock


async def waiting_for(project: Project, request: Request) -> None:
    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        return Outcome.OK, {"answer": (await ctx.wait(request)).value}

    flow = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))
    async with project.engine() as engine:
        await engine.start(flow, name="one")


def hitl(project: Project) -> Path:
    return project.folder("one") / "hitl"


def put_answers(project: Project, question: str, answer: object) -> Path:
    path = hitl(project) / "answers.json"
    path.write_text(json.dumps({"answers": [{"question_id": question, "answer": answer}]}))
    return path


async def test_an_answer_in_a_file_is_recorded_and_the_file_archived(project: Project) -> None:
    """Many users answer with an editor; the file must not be used again tomorrow."""
    await waiting_for(project, Question("Name?", question_id="name"))
    path = put_answers(project, "name", "Bob")

    record_file_answers(project, "one")

    item = project.store.item(1)
    assert json.loads(item.answer or "")["value"] == "Bob"
    assert "answers.json" in str(item.answered_by)
    assert not path.exists()


async def test_a_response_file_answers_the_request_of_its_number(project: Project) -> None:
    """Manual work is pasted into a file next to its prompt."""
    await waiting_for(project, Response("Translate: hello"))
    (hitl(project) / "1-response.md").write_text("hallo\n")

    record_file_answers(project, "one")

    assert json.loads(project.store.item(1).answer or "")["value"] == "hallo\n"


@pytest.mark.parametrize(("written", "counts"), [(59, True), (60, False)])
async def test_an_answer_by_file_was_given_when_the_file_was_written(
    project: Project, clock: FrozenClock, written: float, counts: bool
) -> None:
    """A timer resumes the run after the deadline; an answer given in time must still count."""
    began = clock.now()
    request = Question("Name?", question_id="name", deadline=timedelta(seconds=60), default="-")
    await waiting_for(project, request)
    path = put_answers(project, "name", "Bob")
    os.utime(path, (began + written, began + written))
    clock.advance(3600)

    warnings = record_file_answers(project, "one")

    assert project.store.item(1).answered_at == (began + written if counts else None)
    assert bool(warnings) is not counts
    assert all("the deadline of request #1 passed" in warning for warning in warnings)


async def test_an_answer_written_before_its_request_is_renamed_and_reported(
    project: Project, clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent must not approve what no human has seen, whatever date its file has."""
    clock.jump(time.time() - clock.now())
    form = {"answers": [{"question_id": "1", "answer": True, "digest": "000000"}]}
    future = clock.now() + 3600

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        hitl(project).mkdir(parents=True)
        for name, text in (("answers.json", json.dumps(form)), ("1-response.md", "approve")):
            (hitl(project) / name).write_text(text)
            os.utime(hitl(project) / name, (future, future))
        clock.advance(60)
        return Outcome.OK, {"answer": (await ctx.wait(Approval("Ship?", "text"))).value}

    flow = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))
    async with project.engine() as engine:
        await engine.start(flow, name="one")

    warnings = record_file_answers(project, "one")

    assert warnings == []
    assert project.store.item(1).state == "open"
    names = sorted(path.name for path in hitl(project).iterdir())
    assert [name.split("_")[0] for name in names] == ["1-response", "answers", "questions.json"]
    assert all(".early." in name for name in names[:2])
    assert caplog.text.count("is older than the request") == 2


async def test_a_file_answers_nothing_while_an_agent_acts(project: Project) -> None:
    """The agent could have written it; it counts when a human resumes the run."""
    await waiting_for(project, Question("Name?", question_id="name"))
    put_answers(project, "name", "Bob")

    record_file_answers(replace(project, for_agent=True), "one")
    before = project.store.item(1).state
    record_file_answers(project, "one")

    assert (before, project.store.item(1).state) == ("open", "answered")
