"""What clients list: workflows as prompts, runs as resources."""

import json

import pytest
from mcp.shared.exceptions import MCPError

from tests.unit.mcp.review_server import ERAS, FLOW, ReviewServer


@pytest.mark.parametrize("era", ERAS)
async def test_each_installed_workflow_is_a_prompt(server: ReviewServer, era: str) -> None:
    """A user starts it from the client's own menu."""
    async with server.client(era) as client:
        server.write(".signoff/flows/poem.yaml", FLOW.replace("name: notice", "name: poem"))
        listed = {each.name for each in (await client.sdk.list_prompts()).prompts}
        prompt = await client.sdk.get_prompt("poem", {"task": "About tea."})

    text = prompt.messages[0].content.text  # type: ignore[union-attr]
    assert {"review", "notice", "poem", "code-review"} <= listed
    assert "start(workflow='poem')" in text
    assert text.endswith("The task: About tea.")


async def test_a_broken_workflow_hides_no_other(server: ReviewServer) -> None:
    """One bad file must not take all prompts from a client."""
    server.write(".signoff/flows/broken.yaml", "workflow: [")
    async with server.client() as client:
        listed = {each.name for each in (await client.sdk.list_prompts()).prompts}

    assert {"review", "notice"} <= listed


@pytest.mark.parametrize("era", ERAS)
async def test_runs_and_their_artifacts_are_resources(server: ReviewServer, era: str) -> None:
    """A user attaches them to a conversation."""
    async with server.client(era) as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        listed = [str(each.uri) for each in (await client.sdk.list_resources()).resources]
        texts = [
            (await client.sdk.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
            for uri in (listed[0], f"{listed[0]}/artifact", f"{listed[0]}/rounds/1")
        ]

    assert listed == ["signoff://runs/one"]
    assert json.loads(texts[0])["status"] == "waiting"
    assert texts[1] == "Our tea warms you.\n"
    assert "-Our tea cures colds." in texts[2]


async def test_a_project_without_a_home_lists_no_runs(server: ReviewServer) -> None:
    """A client lists resources when it connects, before anything was set up."""
    from shutil import rmtree

    rmtree(server.folder / ".signoff")
    async with server.client() as client:
        assert (await client.sdk.list_resources()).resources == []
        with pytest.raises(MCPError, match="signoff init"):
            await client.sdk.read_resource("signoff://runs/one")


async def test_hostile_text_in_an_artifact_is_escaped_and_bounded(server: ReviewServer) -> None:
    """An artifact is written by a model, and a client may print it."""
    text = "\\u001b[2J\\u202e" + "x" * 300_000
    script = f'version: 1\nrules:\n  - {{step: draft, text: "{text}"}}\n'
    server.write("script.yaml", script + "  - {step: review, json: {overall: PASS, issues: []}}\n")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        read = await client.sdk.read_resource("signoff://runs/one/artifact")
        shown = await client.call("show", run="one", part="text")
        news = await client.call("wait", run="one")

    artifact = read.contents[0].text  # type: ignore[union-attr]
    assert artifact.startswith("\\u001b[2J\\u202exxx")
    assert len(artifact) <= 200_000
    assert (len(shown["text"]), shown["pages"] > 40) == (6_000, True)
    assert "\x1b" not in json.dumps(shown, ensure_ascii=False)
    assert len(json.dumps(news)) < 2_000
