"""The MCP server as a process, with a worker process that drives the runs."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.acceptance.cli_project import PROGRAM, CliProject, worker_for_server
from tests.acceptance.mcp_client import McpClient
from tests.unit.surfaces.mcp.review_server import CONFIG, FLOW, SCRIPT

NOISY = """
print("imported: this must not reach the client")
from signoff import Outcome, Question, StepDef, Workflow


async def ask(ctx):
    print("run: neither must this")
    await ctx.command(["echo", "nor this"], key="echo")
    return Outcome.OK, {"tone": (await ctx.wait(Question("Which?", answerable_by="agent"))).value}


WORKFLOW = Workflow("noisy", StepDef("ask", handler=ask, next={Outcome.OK: None}))
"""


@pytest.fixture
def served(project: CliProject) -> CliProject:
    """A project with a review flow that ends with a sign-off, and scripted agents."""
    assert project.signoff("init").returncode == 0
    project.write(".signoff/config.yaml", CONFIG)
    project.write(".signoff/flows/notice.yaml", FLOW)
    project.write("script.yaml", SCRIPT)
    return project


def wait_for(client: McpClient, run: str, status: str, cursor: int = 0) -> dict[str, Any]:
    """Waits as an agent does, until the run has a status."""
    news = client.call("wait", run=run, cursor=cursor)
    for _ in range(100):
        if news["status"] == status:
            break
        news = client.call("wait", run=run, cursor=news["cursor"])
    assert news["status"] == status
    return news


def test_a_killed_server_loses_nothing_and_the_handles_go_on(served: CliProject) -> None:
    """The worker drives the run; a later server follows it by the same name and cursor."""
    with McpClient(served) as client:
        started = client.call("start", workflow="notice", name="one")
        client.begin("wait", run="one", cursor=started["cursor"], seconds=50)
        client.kill()
    worker = worker_for_server(served.folder, served.environment)
    with worker, McpClient(served) as client:
        waiting = wait_for(client, "one", "waiting", started["cursor"])
        (asked,) = waiting["waits_for"]
        signed = served.signoff("approve", str(asked["request"]))
        ended = wait_for(client, "one", "completed", waiting["cursor"])

    assert signed.returncode == 0, signed.stderr
    assert ended["decisions"][0].startswith("approval: approve by ")
    assert served.json("show", "one")["spend"]["calls"] == 4


def test_nothing_but_the_protocol_reaches_the_client(served: CliProject) -> None:
    """A workflow that prints must not break the connection."""
    served.write(".signoff/flows/noisy.py", NOISY)
    worker = worker_for_server(served.folder, served.environment)
    with worker, McpClient(served) as client:
        client.call("start", workflow="noisy", name="one", pull=True)
        news = wait_for(client, "one", "waiting")
        (asked,) = news["waits_for"]
        client.call("answer", request=asked["request"], value="calm", digest=asked["digest"])
        wait_for(client, "one", "completed", news["cursor"])
        code = client.hang_up()

    assert code == 0


@pytest.mark.both_stores
def test_a_client_that_vanishes_in_a_call_leaves_no_server(served: CliProject) -> None:
    """The server ends with its client, whatever it was doing."""
    with McpClient(served) as client:
        client.call("start", workflow="notice", name="one", pull=True)
        client.begin("wait", run="one", cursor=1000, seconds=600)

        assert client.hang_up() == 0
    assert served.json("show", "one")["status"] == "waiting"


async def test_the_client_of_the_sdk_talks_to_the_process(served: CliProject) -> None:
    """It begins with the stateless protocol, as current clients do."""
    command = StdioServerParameters(
        command=PROGRAM, args=["mcp"], env=served.environment, cwd=served.folder
    )

    async with Client(command) as client:
        tools = (await client.list_tools()).tools
        version = client.session.protocol_version
        called = await client.call_tool("start", {"workflow": "nope"})

    assert len(tools) == 6
    assert version == "2026-07-28"
    assert called.is_error


def test_the_entry_is_written_where_the_client_looks(served: CliProject) -> None:
    """The user types one line and nothing else."""
    first = served.signoff("mcp", "install", "claude")
    again = served.signoff("mcp", "install", "claude")
    printed = served.signoff("mcp", "install", "codex", "--print")

    assert first.stdout == "wrote .mcp.json\n"
    assert again.stdout == "nothing to change in .mcp.json\n"
    assert "codex mcp add signoff" in printed.stdout
    assert not (served.folder / ".codex").exists()
