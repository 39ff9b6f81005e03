"""What agents may answer, and what they may not."""

import pytest

from signoff import Approval, Choice, Outcome, Question, Response, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, answer_as_agent
from signoff.app.project import Project
from signoff.core.requests import Request
from signoff.errors import InvalidAnswer, StaleApproval, UsageError
from signoff.runtime.store_port import InboxItem


async def waiting_for(project: Project, request: Request) -> InboxItem:
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
    item = await waiting_for(project, request_)

    with pytest.raises(InvalidAnswer, match="only a human can answer"):
        answer_as_agent(project, item.id, AnswerInput(value, by="agent", digest=item.digest))

    assert project.store.item(item.id).state == "open"


async def test_an_agent_answers_only_what_it_was_shown(project: Project) -> None:
    """A request that was opened again with other content needs another answer."""
    item = await waiting_for(project, Question("Which tone?", answerable_by="agent"))

    with pytest.raises(InvalidAnswer, match="digest"):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent"))
    with pytest.raises(StaleApproval):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent", digest="0" * 12))

    assert project.store.item(item.id).state == "open"


async def test_a_worker_of_a_run_answers_nothing(project: Project) -> None:
    """Its token is for work, whatever else the workflow opens to agents."""
    item = await waiting_for(project, Question("Which tone?", answerable_by="agent"))
    project.worker_token = "token"

    with pytest.raises(UsageError, match="a worker cannot answer"):
        answer_as_agent(project, item.id, AnswerInput("calm", by="agent", digest=item.digest))
