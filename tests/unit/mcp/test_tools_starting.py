"""Starting runs: by name, in the background, once."""

import pytest

from tests.unit.mcp.review_server import FLOW, ReviewServer


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
