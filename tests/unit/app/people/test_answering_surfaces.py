import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff import Approval, Choice, Outcome, Question, Response, StepContext, StepDef, Workflow
from signoff.app.people import answering
from signoff.app.people.external_work import next_work, start_pulled, submit
from signoff.app.runs.start import resume
from signoff.app.settings.project import Project
from signoff.core.digest import text_digest
from signoff.core.errors import InvalidAnswer, StaleApproval, UsageError
from signoff.core.outcome import Status
from signoff.core.requests import Answer, Request
from signoff.runtime.store_port import InboxItem
from signoff.store.run_files import LARGEST_READ
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

    answering.record_file_answers(project, "one")

    item = project.store.item(1)
    assert json.loads(item.answer or "")["value"] == "Bob"
    assert "answers.json" in str(item.answered_by)
    assert not path.exists()


async def test_a_response_file_answers_the_request_of_its_number(project: Project) -> None:
    """Manual work is pasted into a file next to its prompt."""
    await waiting_for(project, Response("Translate: hello"))
    (hitl(project) / "1-response.md").write_text("hallo\n")

    answering.record_file_answers(project, "one")

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

    warnings = answering.record_file_answers(project, "one")

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

    warnings = answering.record_file_answers(project, "one")

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

    answering.record_file_answers(replace(project, for_agent=True), "one")
    before = project.store.item(1).state
    answering.record_file_answers(project, "one")

    assert (before, project.store.item(1).state) == ("open", "answered")


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


async def begin(project: Project, name: str = "one") -> None:
    async with project.engine() as engine:
        await engine.start(ASKS, name=name)


async def test_an_answered_request_shows_the_answer_its_author_and_time(
    project: Project, clock: FrozenClock
) -> None:
    """Commands that answer it would only fail."""
    await begin(project)
    answering.record_answer(project, 1, answering.AnswerInput("Bob", "of course", by="ann"))

    request = answering.request_to_json(project, project.store.item(1))

    assert request["answer"] == {
        "value": "Bob",
        "text": "of course",
        "by": "ann",
        "at": clock.now(),
    }
    assert request["commands"] == []


@pytest.mark.parametrize(
    ("request_", "commands"),
    [
        (Approval("Ship?"), ["approve 1", 'reject 1 --why "..."']),
        (Choice("Which?", ("a", "b b")), ["answer 1 a", "answer 1 'b b'"]),
        (Response("Write."), ["answer 1 --file REPLY.md"]),
        (Question("Name?"), ['answer 1 "..."']),
    ],
)
async def test_every_command_that_answers_is_bound_to_what_is_shown(
    project: Project, request_: Request, commands: list[str]
) -> None:
    """Copied from an old log, or into another project, it would answer something else."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.wait(request_)
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})))

    request = answering.request_to_json(project, project.store.item(1))

    tail = f"--digest {request['digest'][:12]} --resume"
    assert request["commands"] == [f"signoff {command} {tail}" for command in commands]


async def test_a_request_for_a_response_names_the_file_that_holds_its_prompt(
    project: Project,
) -> None:
    """It is pasted into a chat window, all of it."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.wait(Response("Write.\n" * 100))
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(
            Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})), name="one"
        )

    request = answering.request_to_json(project, project.store.item(1))

    path = project.folder("one") / "hitl" / "1-prompt.md"
    assert request["prompt_file"] == str(path)
    assert path.read_text().startswith("Write.\n" * 100)


async def test_an_approval_names_its_file_by_the_full_path(project: Project) -> None:
    """The recorded path starts in the run's folder, where no user is."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.write("plan.md", "a plan")
        await ctx.wait(Approval("Good?", path="plan.md"))
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(
            Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})), name="one"
        )

    request = answering.request_to_json(project, project.store.item(1))

    assert request["path"] == "plan.md"
    assert request["file"] == str(project.folder("one") / "plan.md")


# Workers do work; what a human decides is out of their reach.


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
    done = await submit(worker, "one", None, answering.AnswerInput("the text"))
    gate = answering.find_item(worker, "one")
    refused: list[Callable[[], object]] = [
        lambda: answering.record_answer(worker, gate.id, answering.AnswerInput("Approve")),
        lambda: answering.decide(worker, gate.id, answering.AnswerInput(None), yes=True),
        lambda: answering.decide(worker, gate.id, answering.AnswerInput(None), yes=False),
    ]
    for decision in refused:
        with pytest.raises(UsageError, match="a worker cannot"):
            decision()
    with pytest.raises(InvalidAnswer, match="only a human"):
        await submit(worker, "one", str(gate.id), answering.AnswerInput("Approve"))
    answering.decide(project, gate.id, answering.AnswerInput(None), yes=True)
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
    await submit(worker, "one", None, answering.AnswerInput("the text"))
    gate = answering.find_item(worker, "one")
    file = project.folder("one") / "hitl/answers.json"
    file.write_text(json.dumps({str(gate.id): "Approve"}))

    await next_work(worker, "one")
    answering.record_file_answers(worker, "one")

    assert project.store.item(gate.id).state == "open"
    assert answering.record_file_answers(project, "one") == []
    assert project.store.item(gate.id).state == "answered"


async def test_a_worker_does_the_work_of_its_own_run_only(worker: Project) -> None:
    """Several agents may work in one project."""
    project, first = worker, await start_one(worker)
    other = await start_one(project, "two")

    assert first.worker_token != other.worker_token
    assert first.worker_token == answering.token_of(project, project.run("one"))
    with pytest.raises(UsageError, match="does not belong to run 'two'"):
        await next_work(first, "two")
    with pytest.raises(UsageError, match="does not belong to run 'two'"):
        await submit(first, "two", None, answering.AnswerInput("x"))
    assert (await next_work(project, "two")).work


# Approvals whose approver may edit the file first, and what a surface adds to a decision.


WRITTEN, EDITED = "the draft\n", "a better draft\n"
SECRET = "zq-4711-very-secret"


def reviewed(answers: list[Answer], *, writes: bool = True, again: bool = False) -> Workflow:
    """A workflow that has a file approved, and with `again` once more, strictly."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        if writes:
            await ctx.write("draft.md", WRITTEN)
        answers.append(await ctx.wait(Approval("Ship?", path="draft.md", edits="accept")))
        if again:
            answers.append(await ctx.wait(Approval("Sure?", path="draft.md"), key="strict"))
        return Outcome.OK, {"content": answers[0].content, "by": answers[0].by}

    return Workflow("reviewed", StepDef("only", handler=work, next={Outcome.OK: None}))


async def waiting(project: Project, flow: Workflow) -> InboxItem:
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
    return item


def draft(project: Project) -> Path:
    return project.folder("one") / "draft.md"


@pytest.mark.parametrize("text", [EDITED, WRITTEN, "", "é\r\n", "half \ud83d"], ids=repr)
async def test_the_text_found_at_the_approval_reaches_the_handler(
    project: Project, text: str
) -> None:
    """The approver edits a prompt, and the agent has to get what was approved."""
    answers: list[Answer] = []
    flow = reviewed(answers)
    item = await waiting(project, flow)
    draft(project).write_bytes(text.encode("utf-8", "surrogatepass"))

    answering.decide(project, item.id, answering.AnswerInput(None, "better", "ann"), yes=True)
    async with project.engine() as engine:
        done = await engine.resume("one", flow)

    assert done.status is Status.COMPLETED
    assert (answers[0].content, answers[0].content_digest) == (text, text_digest(text))
    assert (answers[0].approved, answers[0].text, answers[0].by) == (True, "better", "ann")


@pytest.mark.parametrize("meddle", [lambda file: file.write_text("too late"), Path.unlink])
async def test_edits_after_the_approval_do_not_count_and_are_undone_at_the_end(
    project: Project, meddle: Callable[[Path], object]
) -> None:
    """What the run continues with is what was approved, and the file shows it."""
    flow = reviewed([])
    item = await waiting(project, flow)
    draft(project).write_text(EDITED)
    answering.decide(project, item.id, answering.AnswerInput(None), yes=True)
    meddle(draft(project))

    async with project.engine() as engine:
        done = await engine.resume("one", flow)

    assert done.state["content"] == EDITED
    assert draft(project).read_text() == EDITED


async def test_an_edit_stays_in_the_file(project: Project) -> None:
    """The directory is written from the journal, which has the text that the run wrote as well."""
    flow = reviewed([])
    item = await waiting(project, flow)
    draft(project).write_text(EDITED)
    project.directory().catch_up("one")
    before = draft(project).read_text()
    answering.decide(project, item.id, answering.AnswerInput(None), yes=True)

    async with project.engine() as engine:
        await engine.resume("one", flow)

    assert (before, draft(project).read_text()) == (EDITED, EDITED)


def plant_link(file: Path) -> None:
    file.with_name("theirs.md").write_text(EDITED)
    file.symlink_to("theirs.md")


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        (lambda file: file.write_bytes(b"\xff\xfe"), "is not UTF-8 text"),
        (lambda file: file.write_bytes(b"x" * (LARGEST_READ + 1)), "is larger than 16 MiB"),
        (lambda file: file.write_text(f"key: {SECRET}"), "contains the value of MY_API_KEY"),
        (plant_link, "is a link"),
        (Path.mkdir, "is a folder"),
        (os.mkfifo, "is a pipe"),
    ],
    ids=["bytes", "too large", "secret", "link", "folder", "pipe"],
)
async def test_a_file_that_cannot_be_recorded_is_refused_by_its_name(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[Path], object],
    problem: str,
) -> None:
    """The request stays open, so the user can fix the file."""
    monkeypatch.setenv("MY_API_KEY", SECRET)
    item = await waiting(project, reviewed([], writes=False))
    plant(draft(project))

    with pytest.raises(InvalidAnswer, match=problem) as refused:
        answering.decide(project, item.id, answering.AnswerInput(None), yes=True)

    assert "draft.md" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert project.store.item(item.id).state == "open"


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "state.json"])
async def test_a_path_out_of_the_run_is_refused(project: Project, path: str) -> None:
    """A path may come from a model; an approval must not read what it names."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        await ctx.wait(Approval("Ship?", path=path, edits="accept"))
        return Outcome.OK, {}

    flow = Workflow("hostile", StepDef("only", handler=work, next={Outcome.OK: None}))
    item = await waiting(project, flow)

    with pytest.raises(InvalidAnswer, match="cannot be used"):
        answering.decide(project, item.id, answering.AnswerInput(None), yes=True)


async def test_of_two_approvals_the_first_counts(project: Project) -> None:
    """Two terminals show the same request; the second must not replace what was approved."""
    flow = reviewed([])
    item = await waiting(project, flow)
    draft(project).write_text(EDITED)
    answering.decide(project, item.id, answering.AnswerInput(None, by="ann"), yes=True)
    draft(project).write_text("another draft\n")

    with pytest.raises(InvalidAnswer, match="answered by ann"):
        answering.decide(project, item.id, answering.AnswerInput(None, by="bob"), yes=True)
    async with project.engine() as engine:
        done = await engine.resume("one", flow)

    assert done.state == {"content": EDITED, "by": "ann"}


async def test_a_later_strict_approval_expects_the_text_that_was_approved(
    project: Project,
) -> None:
    """It would be refused as stale if what the run itself wrote counted."""
    flow = reviewed([], again=True)
    item = await waiting(project, flow)
    draft(project).write_text(EDITED)
    answering.decide(project, item.id, answering.AnswerInput(None), yes=True)
    async with project.engine() as engine:
        (strict,) = (await engine.resume("one", flow)).inbox

    draft(project).write_text(WRITTEN)
    with pytest.raises(StaleApproval):
        answering.decide(project, strict.id, answering.AnswerInput(None), yes=True)
    draft(project).write_text(EDITED)

    assert (
        answering.decide(project, strict.id, answering.AnswerInput(None), yes=True).state
        == "answered"
    )


async def test_the_inbox_shows_that_edits_are_accepted_and_what_was_approved(
    project: Project,
) -> None:
    """A program that approves has to know which file counts."""
    item = await waiting(project, reviewed([]))
    shown = answering.request_to_json(project, item)
    draft(project).write_text(EDITED)

    done = answering.decide(project, item.id, answering.AnswerInput(None), yes=True)

    assert (shown["path"], shown["edits"]) == ("draft.md", "accept")
    assert (answering.answer_to_json(done) or {})["content_digest"] == text_digest(EDITED)


@pytest.mark.parametrize(
    ("request_", "value"), [(Approval("Ship?"), False), (Choice("Which?", ["a"]), "a")]
)
async def test_what_a_surface_adds_to_a_decision_reaches_the_handler(
    project: Project, monkeypatch: pytest.MonkeyPatch, request_: Any, value: object
) -> None:
    """A notation's own command may say more than yes or no, and it has to survive a crash."""
    monkeypatch.setenv("MY_API_KEY", SECRET)
    extras: list[Any] = []

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        extras.append((await ctx.wait(request_)).extras)
        extras.append((await ctx.wait(request_, key="plain")).extras)
        return Outcome.OK, {}

    flow = Workflow("decided", StepDef("only", handler=work, next={Outcome.OK: None}))
    item = await waiting(project, flow)
    more = {"command": "approve_complete", "note": SECRET}
    answering.record_answer(project, item.id, answering.AnswerInput(value, extras=more))
    async with project.engine() as engine:
        (plain,) = (await engine.resume("one", flow)).inbox
        done = answering.record_answer(project, plain.id, answering.AnswerInput(value))
        await engine.resume("one", flow)

    kept = {"command": "approve_complete", "note": "[hidden: MY_API_KEY]"}
    assert extras == [kept, kept, {}]
    assert "extras" not in json.loads(done.answer or "")
