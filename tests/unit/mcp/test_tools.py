"""The tools, called by the SDK's own client."""

import pytest

from signoff.app.answering import AnswerInput, record_answer
from tests.unit.mcp.review_server import ERAS, QUESTION_FLOW, ReviewServer


@pytest.mark.parametrize("era", ERAS)
async def test_a_review_is_started_followed_and_shown(server: ReviewServer, era: str) -> None:
    """This is the whole path of an agent, in both generations of the protocol."""
    async with server.client(era) as client:
        started = await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        news = await client.call("wait", run="one", cursor=started["cursor"])
        findings = await client.call("show", run="one")
        diff = await client.call("show", run="one", part="diff")
        asked = await client.call("request_signoff", request=1)

    assert (started["run"], started["status"], server.workers) == ("one", "queued", 1)
    assert (news["status"], news["round"], news["changed"]) == ("waiting", 2, True)
    assert news["waits_for"][0]["by"] == "human"
    assert "A promised cure." in findings["text"]
    assert "+Our tea warms you." in diff["text"]
    assert (asked["done"], "inbox 1" in asked["command"]) == (False, True)


async def test_the_agent_hears_of_the_decision_of_the_human(server: ReviewServer) -> None:
    """A run that was signed off ends, and the agent can report who did it."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        before = await client.call("wait", run="one")
        with server.project() as project:
            record_answer(project, 1, AnswerInput("approve", by="ann"))
        await server.drive("one")
        after = await client.call("wait", run="one", cursor=before["cursor"])

    assert after["status"] == "completed"
    assert after["decisions"] == ["approval: approve by ann"]
    assert after.keys().isdisjoint({"round", "findings", "spend", "waits_for"})


async def test_an_agent_answers_a_question_that_is_open_to_it(server: ReviewServer) -> None:
    """The run continues with the answer, which is recorded as the agent's."""
    server.write(".signoff/flows/notice.yaml", QUESTION_FLOW)
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        (asked,) = (await client.call("wait", run="one"))["waits_for"]
        request, digest = asked["request"], asked["digest"]
        answered = await client.call("answer", request=request, value="warms", digest=digest)

    with server.project() as project:
        item = project.store.item(request)
        status = project.store.row("one").status
    assert (asked["by"], asked["kind"], answered["done"]) == ("agent", "question", True)
    assert item.answered_by == "agent: mcp"
    assert (status, server.workers) == ("queued", 2)


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_cannot_answer_for_a_human(server: ReviewServer, era: str) -> None:
    """The sign-off stays open, whatever the agent sends."""
    async with server.client(era) as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        with server.project() as project:
            digest = project.store.item(1).digest
        message = await client.error("answer", request=1, value="approve", digest=digest)

    with server.project() as project:
        assert project.store.item(1).state == "open"
    assert "only a human" in message


async def test_a_mistake_is_reported_with_what_would_be_valid(server: ReviewServer) -> None:
    """The model can correct itself, and no crash fills the log."""
    async with server.client() as client:
        assert "unknown run 'nope'" in await client.error("wait", run="nope")
        assert "unknown request" in await client.error("request_signoff", request=99)
        assert "must be one of findings" in await client.error("show", run="one", part="secrets")
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        assert "no round 9" in await client.error("show", run="one", part="diff", number=9)
