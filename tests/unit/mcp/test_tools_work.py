"""Handed-out work: taken, submitted and checked."""

from tests.unit.mcp.review_server import ReviewServer


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
