"""The parts of a run that agents are shown."""

import pytest

from signoff.errors import UsageError
from signoff.mcp.replies import LONGEST_SHOWN, Part, part_of_run
from tests.unit.mcp.review_server import ReviewServer


@pytest.fixture
async def reviewed(server: ReviewServer) -> ReviewServer:
    """A run `one` with a finding that was fixed, waiting for the sign-off."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")
    return server


PARTS: list[tuple[Part, int | None, str]] = [
    ("findings", None, "fixed in round 2"),
    ("findings", 1, "A promised cure."),
    ("findings", 9, "no findings"),
    ("diff", None, "+Our tea warms you."),
    ("diff", 1, "# answers "),
    ("diff", 2, "nothing was changed"),
    ("text", None, "Our tea warms you."),
    ("text", 1, "Our tea cures colds."),
    ("plan", None, "limits: none"),
    ("spend", None, "4 calls"),
    ("request", None, "option: approve"),
    ("request", 1, "Sign off this result?"),
]


async def test_each_part_is_a_text(reviewed: ReviewServer) -> None:
    """Of the whole run, of one round, or of one request."""
    with reviewed.project() as project:
        texts = [part_of_run(project, "one", part, number) for part, number, _ in PARTS]

    missing = [part for part, text in zip(PARTS, texts, strict=True) if part[2] not in text]
    assert missing == []


async def test_a_request_of_another_run_is_not_shown_as_one_of_this(
    reviewed: ReviewServer,
) -> None:
    """An agent would answer or ask about the wrong thing."""
    async with reviewed.client() as client:
        await client.call("start", workflow="notice", name="two")
    await reviewed.drive("two")

    with reviewed.project() as project, pytest.raises(UsageError, match="belongs to run 'two'"):
        part_of_run(project, "one", "request", 2)


async def test_what_a_request_shows_is_cut(server: ReviewServer) -> None:
    """The page shows all of it."""
    words = "word " * LONGEST_SHOWN
    passes = "  - {step: review, json: {overall: PASS, issues: []}}\n"
    server.write("script.yaml", f"version: 1\nrules:\n  - {{step: draft, text: {words}}}\n{passes}")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")

    with server.project() as project:
        text = part_of_run(project, "one", "request", None)

    assert "more characters]" in text
    assert len(text) < LONGEST_SHOWN + 1_000
