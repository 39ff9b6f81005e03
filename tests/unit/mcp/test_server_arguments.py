"""Arguments that do not fit are reported in words that a model can act on."""

from typing import Any

import pytest

from tests.unit.mcp.review_server import ERAS, ReviewServer


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("wait", {}, "wait: run is missing; it is a text (From start)"),
        (
            "wait",
            {"run": "one", "seconds": 9000},
            "wait: seconds must be a number from 0 to 600, not 9000",
        ),
        (
            "wait",
            {"run": "one", "cursor": "soon"},
            'wait: cursor must be a whole number of at least 0, not "soon"',
        ),
        (
            "show",
            {"run": "one", "part": "money"},
            'show: part must be one of findings, diff, text, plan, spend, request, not "money"',
        ),
        (
            "start",
            {"options": "a.md", "pull": "maybe"},
            'start: options must be an object, not "a.md"; pull must be true or false, not "maybe"',
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
