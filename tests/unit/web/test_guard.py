"""Each kind of refusal; `test_guard_attacks.py` has the long list."""

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.app.project import Project
from signoff.web.access import Access, AccessScope, cookie_name
from signoff.web.guard import RequestGuard

BASE = "http://127.0.0.1:8717"


async def test_reading_needs_a_session_too(stranger: httpx.AsyncClient) -> None:
    """Other users of the machine can connect as well."""
    page, document = await stranger.get("/"), await stranger.get("/api/v1/runs")

    assert (page.status_code, document.status_code) == (401, 401)
    assert "login link" in page.text
    assert document.json()["kind"] == "NotLoggedIn"
    assert document.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("headers", "kind", "words"),
    [
        ({}, "NotLoggedIn", "needs a bearer token"),
        ({"authorization": "Basic eA=="}, "NotLoggedIn", "must be 'Bearer TOKEN'"),
        ({"authorization": "Bearer "}, "NotLoggedIn", "must be 'Bearer TOKEN'"),
        ({"authorization": "Bearer signoff-x"}, "UnknownToken", "it was revoked"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/api/v1/runs", "/mcp"])
async def test_a_program_that_is_not_let_in_learns_why_and_what_to_do(
    stranger: httpx.AsyncClient, path: str, headers: dict[str, str], kind: str, words: str
) -> None:
    """The token may have been revoked by someone else, long ago."""
    refused = (await stranger.get(path, headers=headers)).json()

    assert (refused["status"], refused["kind"]) == (401, kind)
    assert words in refused["detail"]
    assert "create_token" in [each["kind"] for each in refused["remedies"]]


async def test_a_session_that_has_ended_is_refused_as_such(
    project: Project, stranger: httpx.AsyncClient
) -> None:
    """A browser that was logged in last month should not be told to send a token."""
    stranger.headers["cookie"] = f"{cookie_name(project.home)}=gone"

    refused = await stranger.get("/api/v1/runs")

    assert refused.status_code == 401
    assert "session has ended" in refused.json()["detail"]


async def test_every_answer_has_the_security_headers(
    browser: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    """One page without them is enough to frame it or to run a script in it."""
    for answer in (
        await browser.get("/api/v1/runs"),
        await browser.get("/static/favicon.svg"),
        await browser.get("/missing"),
        await stranger.get("/"),
        await stranger.get("/", headers={"host": "evil.example"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "cache-control" in answer.headers


async def test_a_body_without_a_length_is_cut_off_too(access: Access) -> None:
    """A chunked body does not say how long it is."""
    read: list[int] = []

    async def greedy(scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            read.append(len(message["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    guard = RequestGuard(greedy, access, cookie="c", most_body_bytes=1000)
    token = access.new_token("script", AccessScope.DECIDE)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 400, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "raw_path": b"/", "headers": headers}
    await guard(scope, receive, send)

    assert sum(read) <= 1000
    assert [each.get("status") for each in sent] == [413, None]


async def test_a_web_socket_is_refused(app: ASGIApp) -> None:
    """The guard sees every kind of connection, and there are no web sockets here."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    await app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_link_from_another_site_may_lead_here_but_not_load_anything(
    browser: httpx.AsyncClient,
) -> None:
    """A sign-off is often linked from a chat; a picture or a script from there is an attack."""
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}

    assert (await browser.get("/api/v1/runs", headers=link)).status_code == 200
    frame = await browser.get("/api/v1/runs", headers={**link, "sec-fetch-dest": "iframe"})
    script = await browser.get("/api/v1/runs", headers={**link, "sec-fetch-mode": "no-cors"})
    assert (frame.status_code, script.status_code) == (403, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8717", "[::1]:8717", "LOCALHOST:1"])
async def test_the_names_of_this_machine_are_welcome(browser: httpx.AsyncClient, host: str) -> None:
    """People type any of them."""
    assert (await browser.get("/api/v1/runs", headers={"host": host})).status_code == 200
