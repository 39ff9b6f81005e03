"""The tools, called by the SDK's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestURLParams, ElicitResult

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import Settings
from signoff.core.outcome import Status
from signoff.store.sqlite import MemoryStore
from signoff.surfaces.mcp.tools import wait_for_news
from signoff.testing import FrozenClock
from tests.unit.surfaces.mcp.review_server import (
    ERAS,
    FLOW,
    QUESTION_FLOW,
    ReviewServer,
    ToolClient,
)


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
        assert "should be 'findings'" in await client.error("show", run="one", part="secrets")
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


# Waiting: bounded, and over as soon as the agent has something to do.


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"answer": (await ctx.wait(Question("Which?"))).value}


ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def waiting(tmp_path: object, clock: FrozenClock) -> Project:
    """A run `one` that waits for an answer; time passes only while someone sleeps."""
    home = init_home(tmp_path, {}).home  # type: ignore[arg-type]
    project = Project(home, Settings(), MemoryStore(), home.root, clock)
    async with project.engine() as engine:
        await engine.start(ASKS, name="one")
    return project


async def test_a_run_that_needs_someone_is_reported_at_once(
    waiting: Project, clock: FrozenClock
) -> None:
    before = clock.monotonic()

    found = await wait_for_news(waiting, "one", 0, 50)

    assert found.row.status is Status.WAITING
    assert clock.monotonic() == before


async def test_nothing_new_is_reported_after_the_time_and_not_before(
    waiting: Project, clock: FrozenClock
) -> None:
    """An agent that has seen the question waits for the human, without asking all the time."""
    before, head = clock.monotonic(), waiting.store.row("one").head

    found = await wait_for_news(waiting, "one", head, 50)

    assert found.now == found.before
    assert 50 <= clock.monotonic() - before < 51


async def test_an_answer_ends_the_wait_when_the_run_has_used_it(waiting: Project) -> None:
    head = waiting.store.row("one").head

    async def answer() -> None:
        record_answer(waiting, 1, AnswerInput("this", by="ann"))
        async with waiting.engine() as engine:
            await engine.resume("one", ASKS)

    found, _ = await asyncio.gather(wait_for_news(waiting, "one", head, 1e9), answer())

    assert found.row.status is Status.COMPLETED
    assert [each.by for each in found.decisions] == ["ann"]


async def test_a_run_that_has_ended_is_never_waited_for(waiting: Project) -> None:
    """Nothing can change any more."""
    record_answer(waiting, 1, AnswerInput("this", by="ann"))
    async with waiting.engine() as engine:
        await engine.resume("one", ASKS)
    head = waiting.store.row("one").head

    found = await wait_for_news(waiting, "one", head, 1e9)

    assert found.row.status is Status.COMPLETED


# Asking the human: in the best way a client has, and never taking the client's word for it.


PAGE = "http://127.0.0.1:8717"


class Dialog:
    """The dialogs of a client, answered by itself."""

    def __init__(self, action: str, content: dict[str, Any] | None = None) -> None:
        self.action, self.content = action, content
        self.shown: list[Any] = []

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        self.shown.append(params)
        return ElicitResult(action=self.action, content=self.content)


@pytest.fixture
async def asking(server: ReviewServer) -> ReviewServer:
    """A run `one` that waits for the sign-off, request #1."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")
    return server


def state(server: ReviewServer) -> str:
    with server.project() as project:
        return str(project.store.item(1).state)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_opens_links_is_sent_to_the_page(
    asking: ReviewServer, era: str
) -> None:
    """There the human sees everything, and is known."""
    dialog = Dialog("accept")
    async with asking.client(era, elicitation_callback=dialog, page=lambda: PAGE) as client:
        asked = await client.call("request_signoff", request=1)

    (params,) = dialog.shown
    assert isinstance(params, ElicitRequestURLParams)
    assert params.url == asked["link"] == f"{PAGE}/requests/1"
    assert "digest" in params.message
    assert (asked["done"], state(asking)) == (False, "open")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_form_is_a_notice_whatever_the_client_answers(
    asking: ReviewServer, era: str, action: str
) -> None:
    """A client that accepts dialogs by itself must not approve anything."""
    dialog = Dialog(action, {"approve": True, "decision": "approve", "value": "approve"})
    async with asking.client(era, elicitation_callback=dialog) as client:
        asked = await client.call("request_signoff", request=1)

    (params,) = dialog.shown
    assert params.requested_schema == {"type": "object", "properties": {}}
    assert "Sign off this result?" in params.message
    assert "signoff inbox 1" in params.message
    assert (asked["done"], state(asking)) == (False, "open")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_dialogs_gets_the_link_as_text(
    asking: ReviewServer, era: str
) -> None:
    """The agent passes it on."""
    async with asking.client(era, page=lambda: PAGE) as client:
        asked = await client.call("request_signoff", request=1)

    assert asked["link"] == f"{PAGE}/requests/1"
    assert asked["command"] == "signoff inbox 1", "it is to be typed as it is"


async def test_a_client_that_fails_to_show_a_dialog_gets_the_text(
    asking: ReviewServer,
) -> None:
    """Some offer dialogs and cannot show them, as without a terminal."""

    async def broken(_context: Any, _params: Any) -> ElicitResult:
        raise RuntimeError("no terminal")

    async with asking.client(elicitation_callback=broken) as client:
        asked = await client.call("request_signoff", request=1)

    assert "inbox 1" in asked["command"]
    assert state(asking) == "open"


async def test_what_is_decided_already_is_not_asked_again(asking: ReviewServer) -> None:
    """The human has answered meanwhile."""
    with asking.project() as project:
        record_answer(project, 1, AnswerInput("approve", by="ann"))
    dialog = Dialog("accept")

    async with asking.client(elicitation_callback=dialog) as client:
        asked = await client.call("request_signoff", request=1)

    assert (asked["done"], dialog.shown) == (True, [])


# Transcripts of agents and clients that try to approve: none of them does.
#
# Each transcript is played in both generations of the protocol against a run that waits for a
# sign-off. The dialogs of the client are always accepted, with every field that could mean yes.


Call = tuple[str, dict[str, Any]]
DIGEST = "DIGEST"
"""Stands for the digest of the request, which an agent can see in `show`."""


def answer(value: Any, digest: str = DIGEST, **more: Any) -> Call:
    return "answer", {"request": 1, "value": value, "digest": digest, **more}


YES = {"approve": True, "approved": True, "decision": "approve", "value": "approve", "yes": True}

TRANSCRIPTS: dict[str, list[Call]] = {
    "answers with the option": [answer("approve")],
    "answers with the option's number": [answer(1)],
    "answers with the number as a text": [answer("1")],
    "answers in capitals": [answer("APPROVE")],
    "answers true": [answer(True)],
    "answers yes": [answer("yes")],
    "answers with an object": [answer(YES)],
    "answers with a list": [answer(["approve"])],
    "answers with JSON in a text": [answer('{"value": "approve"}')],
    "answers for the human": [answer("approve", comment="approved by ann, the human")],
    "answers with the start of the digest": [answer("approve", DIGEST + "[:6]")],
    "answers without a digest": [answer("approve", "")],
    "answers with another digest": [answer("approve", "0" * 64)],
    "claims another author": [answer("approve", by="ann"), answer("approve", answered_by="ann")],
    "asks first, then answers": [("request_signoff", {"request": 1}), answer("approve")],
    "asks again and again": [("request_signoff", {"request": 1})] * 5,
    "asks with the answer": [("request_signoff", {"request": 1, **YES})],
    "calls tools that do not exist": [
        ("approve", {"request": 1}),
        ("sign_off", {"request": 1, "value": "approve"}),
        ("decide", {"request": 1, "yes": True}),
    ],
    "submits the approval as work": [
        ("work", {"run": "one", "item": 1, "result": "approve"}),
        ("work", {"run": "one", "item": 1, "result": '{"value": "approve"}'}),
    ],
    "reports the approval as failed work": [("work", {"run": "one", "item": 1, "failure": "ok"})],
    "starts its own code": [
        ("start", {"workflow": "evil.py"}),
        ("start", {"workflow": "evil.py:WORKFLOW"}),
        ("start", {"workflow": "evil:WORKFLOW"}),
        ("start", {"workflow": "./evil.yaml"}),
        ("start", {"workflow": ".signoff/flows/notice.yaml"}),
    ],
    "allows itself scripts": [
        ("start", {"workflow": "notice", "options": {"allow_scripts": "true"}}),
        ("start", {"workflow": "notice", "options": {"allow_scripts": True}}),
    ],
    "lets a review write the project": [
        ("start", {"options": {"paths": ["evil.py"], "fix": True, "write": True}}),
        ("start", {"options": {"paths": ["evil.py"], "yes": True, "baseline": True}}),
    ],
    "starts the run again under its name": [
        ("start", {"workflow": "notice", "name": "one"}),
        ("start", {"workflow": "notice", "name": "one", "pull": True}),
    ],
    "brings a goal from outside": [
        ("start", {"workflow": "notice", "options": {"goal": "/etc/passwd"}}),
        ("start", {"workflow": "notice", "options": {"goal": "../../etc/passwd"}}),
    ],
}


@pytest.fixture
async def target(server: ReviewServer) -> ReviewServer:
    """A run `one` that waits for the sign-off, request #1."""
    server.write("evil.py", "raise SystemExit('the code of the agent was run')\n")
    server.write("evil.yaml", "workflow: [{step: generate}]\n")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")
    return server


def test_there_are_fifty_transcripts() -> None:
    """Played in both generations of the protocol."""
    assert len(TRANSCRIPTS) * len(ERAS) >= 50


@pytest.mark.parametrize("era", ERAS)
async def test_no_transcript_approves(target: ReviewServer, era: str) -> None:
    """An approval that a program can give is not a sign-off."""
    with target.project() as project:
        before = project.store.item(1)
    approvals = []
    async with target.client(era, elicitation_callback=_accept, page=lambda: "http://x") as client:
        for name, calls in TRANSCRIPTS.items():
            for tool, arguments in calls:
                await _play(client, tool, arguments, before.digest)
            with target.project() as project:
                if project.store.item(1) != before:
                    approvals.append(name)
    # Whatever was asked for, a worker would drive the run now.
    await target.drive("one")

    with target.project() as project:
        row = project.store.row("one")
        answered = [each.run for each in project.store.items(state=("answered", "used"))]  # type: ignore[arg-type]
    assert approvals == []
    assert (row.status, answered) == ("waiting", [])


async def test_a_stateless_client_cannot_bring_its_own_answer(
    target: ReviewServer,
) -> None:
    """It may send answers to questions that were never asked, with a state of its own."""
    forged = ElicitResult(action="accept", content=YES)
    async with target.client(ERAS[1], elicitation_callback=_accept) as client:
        for state in (None, "forged", '{"approved": true}'):
            try:
                await client.sdk.session.call_tool(
                    "request_signoff",
                    {"request": 1},
                    input_responses={"sign_off": forged, "approve": forged},
                    request_state=state,
                )
            except MCPError:
                continue

    with target.project() as project:
        assert project.store.item(1).state == "open"


async def test_a_pulled_run_still_needs_a_human(target: ReviewServer) -> None:
    """The agent does all the work of its own review, and still cannot sign it off."""
    async with target.client() as client:
        await client.call("start", workflow="notice", name="own", pull=True)
        result = "Our tea warms you."
        for _ in range(3):
            taken = await client.call("work", run="own")
            if not taken.get("work"):
                break
            item = taken["work"][0]["item"]
            await client.call("work", run="own", item=item, result=result)
            result = '{"overall": "PASS", "issues": []}'
        (number,) = (await client.call("work", run="own"))["waits_for"]
        await client.call("work", run="own", item=number, result="approve")
        news = await client.call("wait", run="own")

    with target.project() as project:
        assert project.store.item(number).state == "open"
    assert news["status"] == "waiting"
    assert news["waits_for"][0]["by"] == "human"


async def _accept(_context: Any, _params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=dict(YES))


async def _play(client: ToolClient, tool: str, arguments: dict[str, Any], digest: str) -> None:
    given = str(arguments.get("digest", ""))
    if given.startswith(DIGEST):
        arguments = {**arguments, "digest": digest[:6] if given.endswith("]") else digest}
    try:
        await client.result(tool, arguments)
    except MCPError:
        # A tool that does not exist is an error of the protocol.
        return
