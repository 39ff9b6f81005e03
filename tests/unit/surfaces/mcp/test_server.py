"""What a client gets before it calls anything."""

import json
from typing import Any

import pytest
from mcp_types import Tool

from tests.unit.surfaces.mcp.review_server import ERAS, FLOW, ReviewServer

CHARACTERS_PER_TOKEN = 3.5
"""An approximation on the safe side: current tokenizers need fewer tokens than this for JSON."""

DECIDING = ("approve", "reject", "decide", "signoff")


async def tools_of(server: ReviewServer, era: str = ERAS[0]) -> list[Tool]:
    async with server.client(era) as client:
        return (await client.sdk.list_tools()).tools


def on_the_wire(tools: list[Tool]) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in tools]


async def test_the_definitions_of_all_tools_take_few_tokens(server: ReviewServer) -> None:
    """Every conversation of every agent pays for them."""
    definitions = on_the_wire(await tools_of(server))

    text = json.dumps(definitions, separators=(",", ":"))
    assert len(definitions) <= 6
    assert len(text) / CHARACTERS_PER_TOKEN <= 1_500


async def test_no_tool_approves(server: ReviewServer) -> None:
    """Nothing is named so, and no parameter takes a decision."""
    tools = await tools_of(server)

    names = {each.name for each in tools}
    parameters = {name for each in tools for name in each.input_schema.get("properties", {})}
    assert names == {"start", "wait", "show", "answer", "request_signoff", "work"}
    assert not [each for each in parameters if any(word in each for word in DECIDING)]


async def test_clients_know_which_tools_only_read(server: ReviewServer) -> None:
    """They may ask their user before the others are called."""
    tools = await tools_of(server)

    hints = {each.name: each.annotations for each in tools}
    reads = {name for name, each in hints.items() if each is not None and each.read_only_hint}
    assert reads == {"wait", "show", "request_signoff"}
    assert all(
        each is not None and not each.destructive_hint
        for n, each in hints.items()
        if n not in reads
    )


@pytest.mark.parametrize("era", ERAS)
async def test_the_server_says_that_only_humans_approve(server: ReviewServer, era: str) -> None:
    """Most clients pass these instructions on to the model."""
    async with server.client(era) as client:
        instructions = client.sdk.instructions

    if era == "legacy":
        assert "Only humans approve" in (instructions or "")
    assert len(instructions or "") / CHARACTERS_PER_TOKEN <= 120


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("wait", {}, "wait: run: Field required"),
        (
            "wait",
            {"run": "one", "seconds": 9000},
            "wait: seconds: Input should be less than or equal to 600",
        ),
        (
            "wait",
            {"run": "one", "cursor": "soon"},
            "wait: cursor: Input should be a valid integer, unable to parse string as an integer",
        ),
        (
            "show",
            {"run": "one", "part": "money"},
            "show: part: Input should be 'findings', 'diff', 'text', 'plan', 'spend' or 'request'",
        ),
        (
            "start",
            {"options": "a.md", "pull": "maybe"},
            (
                "start: options: Input should be a valid dictionary; "
                "pull: Input should be a valid boolean, unable to interpret input"
            ),
        ),
        (
            "wait",
            {"rum": "one"},
            "unknown argument of wait 'rum'; valid names: run, cursor, seconds",
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("era", ERAS)
async def test_a_wrong_argument_is_named_with_what_is_valid(
    server: ReviewServer, era: str, tool: str, arguments: dict[str, Any], message: str
) -> None:
    """The validator's own text names classes of signoff and addresses of its documentation."""
    async with server.client(era) as client:
        assert await client.error(tool, **arguments) == message


async def test_a_misspelled_argument_starts_nothing(server: ReviewServer) -> None:
    """Ignored, it would start something else than was meant."""
    async with server.client() as client:
        await client.error("start", workflow="notice", limit={"usd": 1})

    with server.project() as project:
        assert project.store.rows() == []


async def test_a_long_value_is_cut(server: ReviewServer) -> None:
    """Whatever a model passes comes back into its context."""
    async with server.client() as client:
        message = await client.error("wait", run=["x" * 100_000])

    assert len(message) < 200


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


async def test_hostile_text_in_an_artifact_is_escaped_and_bounded(server: ReviewServer) -> None:
    """An artifact is written by a model, and a client may print it."""
    text = "\\u001b[2J\\u202e" + "x" * 300_000
    script = f'version: 1\nrules:\n  - {{step: draft, text: "{text}"}}\n'
    server.write("script.yaml", script + "  - {step: review, json: {overall: PASS, issues: []}}\n")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        shown = await client.call("show", run="one", part="text")
        news = await client.call("wait", run="one")

    assert shown["text"].startswith("\\u001b[2J\\u202exxx")
    assert (len(shown["text"]), shown["pages"] > 40) == (6_000, True)
    assert "\x1b" not in json.dumps(shown, ensure_ascii=False)
    assert len(json.dumps(news)) < 2_000
