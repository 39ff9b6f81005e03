"""Transcripts of agents and clients that try to approve: none of them does.

Each transcript is played in both generations of the protocol against a run that waits for a
sign-off. The dialogs of the client are always accepted, with every field that could mean yes.
"""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from tests.unit.mcp.review_server import ERAS, ReviewServer, ToolClient

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
async def waiting(server: ReviewServer) -> ReviewServer:
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
async def test_no_transcript_approves(waiting: ReviewServer, era: str) -> None:
    """An approval that a program can give is not a sign-off."""
    with waiting.project() as project:
        before = project.store.item(1)
    approvals = []
    async with waiting.client(era, elicitation_callback=_accept, page=lambda: "http://x") as client:
        for name, calls in TRANSCRIPTS.items():
            for tool, arguments in calls:
                await _play(client, tool, arguments, before.digest)
            with waiting.project() as project:
                if project.store.item(1) != before:
                    approvals.append(name)
    # Whatever was asked for, a worker would drive the run now.
    await waiting.drive("one")

    with waiting.project() as project:
        row = project.store.row("one")
        answered = [each.run for each in project.store.items(state=("answered", "used"))]  # type: ignore[arg-type]
    assert approvals == []
    assert (row.status, answered) == ("waiting", [])


async def test_a_stateless_client_cannot_bring_its_own_answer(waiting: ReviewServer) -> None:
    """It may send answers to questions that were never asked, with a state of its own."""
    forged = ElicitResult(action="accept", content=YES)
    async with waiting.client(ERAS[1], elicitation_callback=_accept) as client:
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

    with waiting.project() as project:
        assert project.store.item(1).state == "open"


async def test_a_pulled_run_still_needs_a_human(waiting: ReviewServer) -> None:
    """The agent does all the work of its own review, and still cannot sign it off."""
    async with waiting.client() as client:
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

    with waiting.project() as project:
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
