"""What a client gets before it calls anything."""

import json
from typing import Any

import pytest
from mcp_types import Tool

from tests.unit.mcp.review_server import ERAS, ReviewServer

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
