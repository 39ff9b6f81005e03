"""Asking the human: in the best way a client has, and never taking the client's word for it."""

from typing import Any

import pytest
from mcp_types import ElicitRequestURLParams, ElicitResult

from signoff.app.answering import AnswerInput, record_answer
from tests.unit.mcp.review_server import ERAS, ReviewServer

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
async def waiting(server: ReviewServer) -> ReviewServer:
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
    waiting: ReviewServer, era: str
) -> None:
    """There the human sees everything, and is known."""
    dialog = Dialog("accept")
    async with waiting.client(era, elicitation_callback=dialog, page=lambda: PAGE) as client:
        asked = await client.call("request_signoff", request=1)

    (params,) = dialog.shown
    assert isinstance(params, ElicitRequestURLParams)
    assert params.url == asked["link"] == f"{PAGE}/requests/1"
    assert "digest" in params.message
    assert (asked["done"], state(waiting)) == (False, "open")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_form_is_a_notice_whatever_the_client_answers(
    waiting: ReviewServer, era: str, action: str
) -> None:
    """A client that accepts dialogs by itself must not approve anything."""
    dialog = Dialog(action, {"approve": True, "decision": "approve", "value": "approve"})
    async with waiting.client(era, elicitation_callback=dialog) as client:
        asked = await client.call("request_signoff", request=1)

    (params,) = dialog.shown
    assert params.requested_schema == {"type": "object", "properties": {}}
    assert "Sign off this result?" in params.message
    assert "signoff inbox 1" in params.message
    assert (asked["done"], state(waiting)) == (False, "open")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_dialogs_gets_the_link_as_text(
    waiting: ReviewServer, era: str
) -> None:
    """The agent passes it on."""
    async with waiting.client(era, page=lambda: PAGE) as client:
        asked = await client.call("request_signoff", request=1)

    assert asked["link"] == f"{PAGE}/requests/1"
    assert asked["command"] == "signoff inbox 1", "it is to be typed as it is"


async def test_a_client_that_fails_to_show_a_dialog_gets_the_text(waiting: ReviewServer) -> None:
    """Some offer dialogs and cannot show them, as without a terminal."""

    async def broken(_context: Any, _params: Any) -> ElicitResult:
        raise RuntimeError("no terminal")

    async with waiting.client(elicitation_callback=broken) as client:
        asked = await client.call("request_signoff", request=1)

    assert "inbox 1" in asked["command"]
    assert state(waiting) == "open"


async def test_what_is_decided_already_is_not_asked_again(waiting: ReviewServer) -> None:
    """The human has answered meanwhile."""
    with waiting.project() as project:
        record_answer(project, 1, AnswerInput("approve", by="ann"))
    dialog = Dialog("accept")

    async with waiting.client(elicitation_callback=dialog) as client:
        asked = await client.call("request_signoff", request=1)

    assert (asked["done"], dialog.shown) == (True, [])
