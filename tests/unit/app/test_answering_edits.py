"""Approvals whose approver may edit the file first, and what a surface adds to a decision."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signoff import Approval, Choice, Outcome, StepContext, StepDef, Workflow
from signoff.app.answering import (
    AnswerInput,
    answer_to_json,
    decide,
    record_answer,
    request_to_json,
)
from signoff.app.project import Project
from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.core.requests import Answer
from signoff.errors import InvalidAnswer, StaleApproval
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.files import LARGEST_READ

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

    decide(project, item.id, AnswerInput(None, "better", "ann"), yes=True)
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
    decide(project, item.id, AnswerInput(None), yes=True)
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
    decide(project, item.id, AnswerInput(None), yes=True)

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
        decide(project, item.id, AnswerInput(None), yes=True)

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
        decide(project, item.id, AnswerInput(None), yes=True)


async def test_of_two_approvals_the_first_counts(project: Project) -> None:
    """Two terminals show the same request; the second must not replace what was approved."""
    flow = reviewed([])
    item = await waiting(project, flow)
    draft(project).write_text(EDITED)
    decide(project, item.id, AnswerInput(None, by="ann"), yes=True)
    draft(project).write_text("another draft\n")

    with pytest.raises(InvalidAnswer, match="answered by ann"):
        decide(project, item.id, AnswerInput(None, by="bob"), yes=True)
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
    decide(project, item.id, AnswerInput(None), yes=True)
    async with project.engine() as engine:
        (strict,) = (await engine.resume("one", flow)).inbox

    draft(project).write_text(WRITTEN)
    with pytest.raises(StaleApproval):
        decide(project, strict.id, AnswerInput(None), yes=True)
    draft(project).write_text(EDITED)

    assert decide(project, strict.id, AnswerInput(None), yes=True).state == "answered"


async def test_the_inbox_shows_that_edits_are_accepted_and_what_was_approved(
    project: Project,
) -> None:
    """A program that approves has to know which file counts."""
    item = await waiting(project, reviewed([]))
    shown = request_to_json(project, item)
    draft(project).write_text(EDITED)

    done = decide(project, item.id, AnswerInput(None), yes=True)

    assert (shown["path"], shown["edits"]) == ("draft.md", "accept")
    assert (answer_to_json(done) or {})["content_digest"] == text_digest(EDITED)


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
    record_answer(project, item.id, AnswerInput(value, extras=more))
    async with project.engine() as engine:
        (plain,) = (await engine.resume("one", flow)).inbox
        done = record_answer(project, plain.id, AnswerInput(value))
        await engine.resume("one", flow)

    kept = {"command": "approve_complete", "note": "[hidden: MY_API_KEY]"}
    assert extras == [kept, kept, {}]
    assert "extras" not in json.loads(done.answer or "")
