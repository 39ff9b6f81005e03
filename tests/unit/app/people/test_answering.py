import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff import (
    Approval,
    Choice,
    End,
    Gate,
    GateOption,
    Outcome,
    Question,
    Response,
    StepContext,
    StepDef,
    Workflow,
)
from signoff.app.people.answering import (
    AnswerInput,
    answer_as_agent,
    decide,
    find_item,
    record_answer,
)
from signoff.app.settings.project import Project
from signoff.core.errors import InvalidAnswer, StaleApproval, UsageError
from signoff.core.outcome import Status
from signoff.core.remedies import AnswerRequest, Resume, ShowInbox
from signoff.core.requests import Request
from signoff.runtime.store_port import InboxItem
from signoff.testing import FrozenClock


async def waiting_for(
    project: Project, *requests: Request, name: str = "one", writes: str = ""
) -> list[InboxItem]:
    """Starts a run that waits for these requests, all at once."""

    async def ask(ctx: StepContext, index: int) -> object:
        return (await ctx.wait(requests[index])).value

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        if writes:
            await ctx.write("draft.md", writes)
        return Outcome.OK, {"answers": await ctx.map(list(range(len(requests))), ask)}

    flow = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))
    async with project.engine() as engine:
        return list((await engine.start(flow, name=name)).inbox)


def stored(item: InboxItem) -> dict[str, object]:
    answer: dict[str, object] = json.loads(item.answer or "")
    return answer


async def test_an_answer_is_stored_with_its_author_time_and_reason(
    project: Project, clock: FrozenClock
) -> None:
    """An approval without an author cannot be audited."""
    (item,) = await waiting_for(project, Approval("Ship?", "text"))
    clock.advance(60)

    done = decide(project, item.id, AnswerInput(None, "reads well", "ann"), yes=True)

    assert stored(done) == {"value": True, "text": "reads well"}
    assert (done.answered_by, done.answered_at) == ("ann", clock.now())


async def test_a_secret_in_an_answer_is_hidden(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that submits a result is an agent like any other."""
    monkeypatch.setenv("MY_API_KEY", "zq-4711-very-secret")
    (item,) = await waiting_for(project, Question("Which key?"))

    done = record_answer(
        project, item.id, AnswerInput("zq-4711-very-secret", "not zq-4711-very-secret")
    )

    assert stored(done) == {"value": "[hidden: MY_API_KEY]", "text": "not [hidden: MY_API_KEY]"}


async def test_an_approval_of_something_else_is_refused(project: Project) -> None:
    """The digest identifies what the user has seen; anything else was not approved."""
    (item,) = await waiting_for(project, Approval("Ship?", "text"))

    with pytest.raises(StaleApproval) as refused:
        decide(project, item.id, AnswerInput(None, digest="0123456789ab"), yes=True)
    assert refused.value.remedies == (ShowInbox(item.id),)
    assert project.store.item(item.id).state == "open"


async def test_a_digest_of_a_few_characters_is_rejected(project: Project) -> None:
    """One character matches by chance one time in sixteen."""
    (item,) = await waiting_for(project, Approval("Ship?", "text"))

    with pytest.raises(InvalidAnswer, match="at least 12"):
        decide(project, item.id, AnswerInput(None, digest=item.digest[:11]), yes=True)
    with pytest.raises(InvalidAnswer, match="characters of the digest"):
        # As a script gives it that failed to find the digest out.
        decide(project, item.id, AnswerInput(None, digest=""), yes=True)


@pytest.mark.parametrize("change", ["another draft\n", None])
async def test_a_file_that_changed_since_cannot_be_approved(
    project: Project, change: str | None
) -> None:
    """A user edited or deleted what the request shows."""
    request = Approval("Ship?", "the draft\n", path="draft.md")
    (item,) = await waiting_for(project, request, writes="the draft\n")
    file = project.folder("one") / "draft.md"
    file.unlink() if change is None else file.write_text(change)

    with pytest.raises(StaleApproval, match="no longer what request"):
        decide(project, item.id, AnswerInput(None), yes=True)
    assert (
        decide(project, item.id, AnswerInput(None, "was tampered with"), yes=False).state
        == "answered"
    )


@pytest.mark.parametrize("content", [None, {"a": "table"}])
async def test_a_file_that_is_not_shown_must_be_as_the_run_wrote_it(
    project: Project, content: object
) -> None:
    """Without a text to compare with, not every content may pass."""
    request = Approval("Ship?", content, path="draft.md")
    (item,) = await waiting_for(project, request, writes="the draft\n")
    file = project.folder("one") / "draft.md"
    file.write_text("another draft\n")

    with pytest.raises(StaleApproval, match="no longer what request"):
        decide(project, item.id, AnswerInput(None), yes=True)
    file.write_text("the draft\n")
    assert decide(project, item.id, AnswerInput(None), yes=True).state == "answered"


async def test_a_file_that_the_run_did_not_write_cannot_be_approved(project: Project) -> None:
    """There is no record of what it should be."""
    (item,) = await waiting_for(project, Approval("Ship?", path="draft.md"))
    folder = project.folder("one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "draft.md").write_text("from nowhere")

    with pytest.raises(StaleApproval):
        decide(project, item.id, AnswerInput(None), yes=True)


GATE_TEXT = "the draft\n"


def gated(content: object, **more: Any) -> Workflow:
    """A workflow that writes a file and has it approved."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.write("final/draft.md", GATE_TEXT)
        request = Approval("Ship?", content, path="final/draft.md", **more)
        return Outcome.OK, {"shipped": (await ctx.wait(request)).approved}

    return Workflow("gated", StepDef("only", handler=work, next={Outcome.OK: None}))


def edit(file: Path) -> None:
    file.write_text("another draft\n")


def swap(file: Path) -> None:
    file.with_name("theirs.md").write_text("another draft\n")
    file.unlink()
    file.symlink_to("theirs.md")


@pytest.mark.parametrize("content", [GATE_TEXT, None, {"a": "table"}], ids=str)
@pytest.mark.parametrize("meddle", [edit, swap, Path.unlink])
async def test_a_file_that_changed_after_its_approval_has_to_be_approved_again(
    project: Project, content: object, meddle: Callable[[Path], None]
) -> None:
    """Otherwise the run would complete with a text in final/ that no human has seen.

    The approval is rejected and the request opened again. The file is not restored silently:
    a user changed it for a reason, and a human has to look again.
    """
    flow = gated(content)
    file = project.folder("one") / "final" / "draft.md"
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
    # The run's directory is written by now: a file that goes missing before is written once more.
    decide(project, item.id, AnswerInput(None, by="ann"), yes=True)
    meddle(file)

    async with project.engine() as engine:
        refused = await engine.resume("one", flow)

    (again,) = refused.inbox
    assert refused.status is Status.WAITING
    assert again.prompt.startswith("final/draft.md was changed or removed after ann approved it")
    assert again.prompt.endswith("Ship?")
    assert again.id != item.id
    assert (again.digest, again.kind) == (item.digest, "approval")


async def test_a_restored_file_can_be_approved_again(project: Project) -> None:
    """An editing mistake must not cost the run."""
    flow = gated(GATE_TEXT)
    file = project.folder("one") / "final" / "draft.md"
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
        decide(project, item.id, AnswerInput(None), yes=True)
        edit(file)
        (again,) = (await engine.resume("one", flow)).inbox
        with pytest.raises(StaleApproval):
            decide(project, again.id, AnswerInput(None), yes=True)
        file.write_text(GATE_TEXT)
        decide(project, again.id, AnswerInput(None), yes=True)

        done = await engine.resume("one", flow)

    assert (done.status, done.state) == (Status.COMPLETED, {"shipped": True})


async def test_a_changed_file_can_be_rejected_without_restoring_it(
    project: Project,
) -> None:
    """Nothing is approved, so there is nothing to compare."""
    flow = gated(GATE_TEXT)
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
        decide(project, item.id, AnswerInput(None, "no"), yes=False)
        edit(project.folder("one") / "final" / "draft.md")

        done = await engine.resume("one", flow)

    assert done.state == {"shipped": False}


async def test_a_deadline_does_not_approve_a_changed_file(
    project: Project, clock: FrozenClock
) -> None:
    """`default=True` is a yes to what was shown, like any other."""
    flow = gated(GATE_TEXT, deadline=timedelta(hours=1), default=True)
    async with project.engine() as engine:
        await engine.start(flow, name="one")
        edit(project.folder("one") / "final" / "draft.md")
        clock.advance(3600)

        refused = await engine.resume("one", flow)

    (again,) = refused.inbox
    assert refused.status is Status.WAITING
    assert "after deadline approved it" in again.prompt
    assert again.deadline == clock.now() + 3600


async def test_a_file_that_changes_after_its_approval_is_restored_at_the_end(
    project: Project,
) -> None:
    """Steps after the gate may take hours; final/ must contain what was approved."""
    file = project.folder("one") / "final" / "draft.md"

    async def sign(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.write("final/draft.md", GATE_TEXT)
        await ctx.wait(Approval("Ship?", path="final/draft.md"))
        return Outcome.OK, {}

    def later(_ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        edit(file)
        return Outcome.OK, {}

    flow = Workflow(
        "gated",
        StepDef("sign", handler=sign, next={Outcome.OK: "later"}),
        StepDef("later", handler=later, next={Outcome.OK: None}),
    )
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
        decide(project, item.id, AnswerInput(None), yes=True)
        done = await engine.resume("one", flow)

    assert done.status is Status.COMPLETED
    assert file.read_text() == GATE_TEXT


@pytest.mark.parametrize("yes", [True, False])
async def test_a_decision_after_the_deadline_is_refused(
    project: Project, clock: FrozenClock, yes: bool
) -> None:
    """The request announced that it would count as rejected from then on."""
    request = Approval("Ship?", "text", deadline=timedelta(hours=1), default=False)
    (item,) = await waiting_for(project, request)
    clock.advance(3600)

    with pytest.raises(InvalidAnswer) as refused:
        decide(project, item.id, AnswerInput(None), yes=yes)

    deadline = datetime.fromtimestamp(item.deadline or 0, UTC)
    assert str(refused.value) == (
        f"the deadline of request #{item.id} passed at {deadline:%Y-%m-%d %H:%M:%S} UTC, "
        "and it counts as rejected"
    )
    assert refused.value.remedies == (Resume("one"),)
    assert project.store.item(item.id).state == "open"


async def test_a_long_content_is_compared_in_full(project: Project) -> None:
    """Long texts are stored separately; comparing a reference would always fail."""
    text = "line\n" * 5000
    request = Approval("Ship?", text, path="draft.md")
    (item,) = await waiting_for(project, request, writes=text)

    assert decide(project, item.id, AnswerInput(None), yes=True).state == "answered"


async def test_a_gate_without_approve_names_its_own_options(project: Project) -> None:
    """Guessing that `publish` means approval would approve by accident."""
    gate = Gate("Ship?", [GateOption("publish", None), GateOption("drop", End.REJECTED)])
    flow = Workflow("gated", StepDef("only", gate=gate))
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox

    with pytest.raises(InvalidAnswer) as refused:
        decide(project, item.id, AnswerInput(None), yes=True)
    assert refused.value.remedies == (AnswerRequest(item.id, ("publish", "drop")),)


async def test_a_question_cannot_be_approved(project: Project) -> None:
    """Any text that approves is how gates approve the wrong thing."""
    (item,) = await waiting_for(project, Question("Name?"))

    with pytest.raises(InvalidAnswer) as refused:
        decide(project, item.id, AnswerInput(None), yes=True)
    assert refused.value.remedies == (AnswerRequest(item.id),)


async def test_an_approval_cannot_be_given_as_text(project: Project) -> None:
    """`answer yes` must not ship anything."""
    (item,) = await waiting_for(project, Approval("Ship?", "text"))

    with pytest.raises(InvalidAnswer, match="approve"):
        record_answer(project, item.id, AnswerInput("yes"))


async def test_a_response_must_match_its_schema(project: Project) -> None:
    """What a human pastes passes the same checks as an agent's reply."""
    schema = {"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}}
    (item,) = await waiting_for(project, Response("Judge this", schema))

    with pytest.raises(InvalidAnswer, match="score"):
        record_answer(project, item.id, AnswerInput('{"score": "high"}'))
    done = record_answer(project, item.id, AnswerInput('```json\n{"score": 7}\n```'))

    assert stored(done)["parsed"] == {"score": 7}


async def test_a_request_is_found_by_number_by_run_or_as_the_only_one(project: Project) -> None:
    """All three are natural to type."""
    (item,) = await waiting_for(project, Question("Name?"))

    found = [find_item(project, where) for where in (str(item.id), f"#{item.id}", "one", None)]

    assert {each.id for each in found} == {item.id}


async def test_an_agent_decides_nothing_whatever_it_calls(project: Project) -> None:
    """Every surface for agents says who acts, so that no tool can forget to check."""
    approval, choice = await waiting_for(
        project, Approval("Ship?", "text"), Choice("Sign off?", ["approve", "reject"])
    )
    project.for_agent = True

    for item in (approval, choice):
        with pytest.raises(InvalidAnswer, match="only a human"):
            decide(project, item.id, AnswerInput(None), yes=True)
        with pytest.raises(InvalidAnswer, match="only a human"):
            record_answer(project, item.id, AnswerInput("approve"))
        assert project.store.item(item.id).state == "open"


async def waiting_for_one(project: Project, request: Request) -> InboxItem:
    async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        return Outcome.OK, {"answer": (await ctx.wait(request)).value}

    flow = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))
    async with project.engine() as engine:
        (item,) = (await engine.start(flow, name="one")).inbox
    return item


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        (Approval("Ship?", "text"), True),
        (Choice("Sign off?", ["approve", "reject"]), "approve"),
        (Question("Which tone?"), "calm"),
        (Response("Review it."), "PASS"),
    ],
    ids=["approval", "sign-off", "question", "manual review"],
)
async def test_an_agent_answers_nothing_that_is_for_humans(
    project: Project, request_: Request, value: object
) -> None:
    """This is what keeps every surface for agents from deciding anything."""
    item = await waiting_for_one(project, request_)

    with pytest.raises(InvalidAnswer, match="only a human can answer"):
        answer_as_agent(project, item.id, AnswerInput(value, by="agent", digest=item.digest))

    assert project.store.item(item.id).state == "open"


async def test_an_agent_answers_only_what_it_was_shown(project: Project) -> None:
    """A request that was opened again with other content needs another answer."""
    item = await waiting_for_one(project, Question("Which tone?", answerable_by="agent"))

    with pytest.raises(InvalidAnswer, match="digest"):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent"))
    with pytest.raises(StaleApproval):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent", digest="0" * 12))

    assert project.store.item(item.id).state == "open"


async def test_a_worker_of_a_run_answers_nothing(project: Project) -> None:
    """Its token is for work, whatever else the workflow opens to agents."""
    item = await waiting_for_one(project, Question("Which tone?", answerable_by="agent"))
    project.worker_token = "token"

    with pytest.raises(UsageError, match="a worker cannot answer"):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent", digest=item.digest))
