"""The tools, called by the SDK's own client."""

import pytest

from signoff.app.answering import AnswerInput, record_answer
from tests.unit.mcp.review_server import ERAS, FLOW, QUESTION_FLOW, ReviewServer


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


async def test_an_agent_does_the_work_of_a_pulled_run(server: ReviewServer) -> None:
    """The engine checks each submission, like the reply of any agent."""
    async with server.client() as client:
        started = await client.call("start", workflow="notice", name="one", pull=True)
        first = await client.call("work", run="one")
        done = await client.call("work", run="one", result="Our tea warms you.")
        second = await client.call("work", run="one")
        refused = await client.call("work", run="one", item=1, result="Once more.")

    assert started["next"] == "work(run='one')"
    assert (first["work"][0]["step"], first["page"]) == ("draft", 1)
    assert "A notice about our tea" in first["text"]
    assert done["done"] is True
    assert second["work"][0]["step"] == "review"
    assert (refused["done"], "no longer open" in refused["message"]) == (False, True)
    assert server.workers == 0


async def test_work_of_other_runs_is_for_humans(server: ReviewServer) -> None:
    """A human who reviews in place of an agent must not be replaced by one."""
    server.write(".signoff/config.yaml", "version: 1\nagents: {claude: {kind: manual}}\n")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        news = await client.call("wait", run="one")
        message = await client.error("work", run="one", result="Our tea.")

    assert news["waits_for"][0]["by"] == "human"
    assert "not handed out" in message
    with server.project() as project:
        assert project.store.item(1).state == "open"


async def test_work_that_cannot_be_done_is_reported(server: ReviewServer) -> None:
    """The run asks again, or asks a human, as its step says."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one", pull=True)
        await client.call("work", run="one", failure="no sources")
        news = await client.call("wait", run="one")

    assert news["status"] in ("waiting", "failed")
    assert news["changed"] is True


async def test_a_long_prompt_comes_in_pages(server: ReviewServer) -> None:
    """A worker needs all of it, and no reply may be endless."""
    flow = (server.folder / ".signoff/flows/notice.yaml").read_text()
    long = flow.replace("A notice about our tea", "word " * 6_000 + "A notice")
    server.write(".signoff/flows/notice.yaml", long)
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one", pull=True)
        first = await client.call("work", run="one")
        last = await client.call("work", run="one", page=first["pages"])

    assert (len(first["text"]), first["pages"] > 1) == (20_000, True)
    assert last["page"] == first["pages"]


async def test_a_lost_call_can_be_repeated(server: ReviewServer) -> None:
    """The server was killed, or the client gave up, before the reply arrived."""
    async with server.client() as client:
        first = await client.call("start", workflow="notice", name="one")
    async with server.client() as client:
        again = await client.call("start", workflow="notice", name="one")

    with server.project() as project:
        names = [row.name for row in project.store.rows()]
    assert first["run"] == again["run"]
    assert names == ["one"]


async def test_a_name_is_not_reused_for_something_else(server: ReviewServer) -> None:
    """Its run would look like the result of this call."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        server.write(".signoff/flows/notice.yaml", FLOW.replace("one sentence", "two sentences"))
        message = await client.error("start", workflow="notice", name="one")

    assert "already exists" in message


async def test_files_are_reviewed_without_a_workflow(server: ReviewServer) -> None:
    """This is what agents want most: their own change reviewed."""
    server.write("a.md", "It always works.\n")
    options = {"paths": ["a.md"], "constraint": ["tone: Promise nothing."]}
    async with server.client() as client:
        started = await client.call("start", options=options, name="one")
        ended = await server.drive("one")
        news = await client.call("wait", run="one", cursor=started["cursor"])

    assert started["status"] == "queued"
    assert started["limits"]["calls"] >= 1
    assert ended.status == news["status"] == "completed"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"paths": "a.md"}, "paths must be a list of texts"),
        ({"paths": ["a.md"], "fix": "yes"}, "fix must be true or false"),
        ({"paths": ["a.md"], "write": True}, "unknown option 'write'"),
        ({"paths": ["-"]}, "name files or folders"),
        ({}, "name files or folders"),
        ({"paths": ["../a.md"], "constraint": ["x"]}, "outside of the project"),
    ],
    ids=str,
)
async def test_wrong_options_of_a_review_are_named(
    server: ReviewServer, options: dict[str, object], problem: str
) -> None:
    async with server.client() as client:
        assert problem in await client.error("start", options=options)


async def test_an_agent_that_is_not_ready_is_reported_before_the_start(
    server: ReviewServer,
) -> None:
    """Nothing is left behind that would fail later."""
    server.write(
        ".signoff/config.yaml", "version: 1\nagents: {claude: {kind: scripted, file: no}}\n"
    )
    async with server.client() as client:
        message = await client.error("start", workflow="notice", name="one")

    assert "claude is not ready" in message
    with server.project() as project:
        assert not project.has_run("one")
