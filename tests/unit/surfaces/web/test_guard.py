"""Each kind of refusal; `test_guard_attacks.py` has the long list."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.app.settings.project import Project
from signoff.core.outcome import Status
from signoff.surfaces.web.access import Access, AccessScope, cookie_name
from signoff.surfaces.web.guard import RequestGuard
from signoff.surfaces.web.server import create_app
from tests.store_suite.journal_writer import new_request, start_run
from tests.tables import table
from tests.unit.surfaces.web.conftest import project_in, session_of
from tests.unit.surfaces.web.event_reader import scope_of

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


# Hostile requests, each of which is refused and changes nothing.
#
# Every one is sent with a valid session or token, unless it is about that, so that only the flaw it
# names can be the reason for the refusal.


OWN = "127.0.0.1:8717"
ANSWER = "/api/v1/inbox/1/answer"
BODY = b'{"digest": "shown1234567", "value": true}'
REFUSED = range(400, 500)


class Attack(NamedTuple):
    """A request and what is wrong with it."""

    method: str = "POST"
    path: str = ANSWER
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = BODY
    repeats: int = 1
    """How often the body is sent, as one long one."""
    credential: str = "session"


def with_headers(*pairs: tuple[str, str], **others: Any) -> Attack:
    return Attack(headers=pairs, **others)


HOSTS = [
    "", "[::1].evil", "[::1]evil:8717", "[localhost]",
    "evil.example", "evil.example:8717", "127.0.0.1.evil.example", "localhost.evil.example",
    "evil.example#localhost", "evil.example/localhost", "localhost@evil.example",
    "user@localhost", "localhost:pw@127.0.0.1", "127.0.0.2", "0.0.0.0:8717", "[::]:8717",
    "[::ffff:127.0.0.1]:8717", "2130706433", "0x7f.1", "127.1", "localhost.", "localhost:8717:1",
    "localhost:x", "localhost ", "localhost, evil.example", "l\u043ecalhost", "127.0.0.1%00.evil",
    "127.0.0.1\\@evil.example", "169.254.169.254", "signoff.local",
]  # fmt: skip

ORIGINS = [
    "null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:3000",
    "http://localhost:8717", "http://127.0.0.1:8717.evil.example", "file://", "chrome-extension://x",
    "http://127.0.0.1:8717@evil.example", "http://evil.example/?127.0.0.1:8717",
    "http://evil.example#127.0.0.1:8717", "https://127.0.0.1:87170", "about:blank", "*",
    "http://[::1]:8717", "moz-extension://127.0.0.1",
]  # fmt: skip

SITES = ["cross-site", "same-site", "SAME-ORIGIN, cross-site", "unknown", "null", "none; x"]

PATHS = [
    "/x/../api/v1/inbox/1/answer", "/static/../api/v1/inbox/1/answer", "//api/v1/inbox/1/answer",
    "/static/..%2f..%2fapi/v1/inbox/1/answer", "/static/%2e%2e/api/v1/inbox/1/answer",
    "/login/../api/v1/inbox/1/answer", "/./api/v1/inbox/1/answer", "/api//v1/inbox/1/answer",
    "/api/v1/inbox/1/answer/.", "/api/v1/inbox/1/answer/..", "/api/v1/inbox%2f1/answer",
    "/api\\v1\\inbox\\1\\answer", "/api/v1/inbox/1%5canswer", "/api/v1/inbox/1/answer%00",
    "/api/v1/inbox/1/answer%00.css", "/static/%2e%2e%2fapi", "/api/v1/inbox/%c0%ae%c0%ae/answer",
    "/api/v1/inbox/1/answer%0d%0aX:y", "/API/V1/inbox/1/answer", "/api/v1/inbox/1/answer/",
    "/login%2f..%2fapi/v1/inbox/1/answer", "/static/..;/api/v1/inbox/1/answer",
    "/static/%252e%252e/api/v1/inbox/1/answer", "/api/v1/inbox/1/%61nswer%2f",
]  # fmt: skip

METHODS = ["TRACE", "CONNECT", "OPTIONS", "PROPFIND", "post", "GETX", "QUERY"]

TOKENS = [
    "", "x", "signoff-", "signoff-" + "A" * 43, "Bearer", "' OR 1=1 --", "\u00e9", "A" * 5000,
    "signoff-\x00", "null",
]  # fmt: skip


SITE = ("sec-fetch-site", "same-origin")
HOST = ("host", OWN)
OWN_ORIGIN = ("origin", f"http://{OWN}")
OVERRIDES = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]
LENGTHS = ["52428800", "-1", "1e9", "0x10", "9" * 30, "\u0663"]
CREDENTIALS = ["none", "foreign", "twice", "read", "operate", "agent", "link"]


def from_elsewhere() -> Iterator[Attack]:
    """Sent to another name, or by another page."""
    yield from (with_headers(("host", host), SITE) for host in HOSTS)
    yield with_headers(HOST, ("host", "evil.example"), SITE)
    yield from (with_headers(HOST, ("origin", origin)) for origin in ORIGINS)
    yield from (with_headers(HOST, ("origin", origin), SITE) for origin in ORIGINS)
    yield from (with_headers(HOST, OWN_ORIGIN, ("sec-fetch-site", value)) for value in SITES)
    yield with_headers(HOST, OWN_ORIGIN, ("origin", "http://evil.example"))
    # A cookie alone says nothing about the page that sends it.
    yield with_headers(HOST)


def in_disguise() -> Iterator[Attack]:
    """Paths, methods and lengths that mean something else than they say."""
    yield from (with_headers(HOST, SITE, path=path) for path in PATHS)
    yield from (with_headers(HOST, SITE, method=method) for method in METHODS)
    yield from (with_headers(HOST, SITE, (name, "POST"), method="GET") for name in OVERRIDES)
    yield with_headers(HOST, SITE, method="GET", path=f"{ANSWER}?_method=POST")
    yield from (with_headers(HOST, SITE, ("content-length", length)) for length in LENGTHS)
    yield with_headers(HOST, SITE, body=b"x" * 65536, repeats=800)


def by_strangers() -> Iterator[Attack]:
    """Without what is needed to decide."""
    texts = [
        *(f"Bearer {token}" for token in TOKENS),
        "Basic x",
        "bearer: x",
        "Digest x",
        "Token x",
    ]
    yield from (with_headers(HOST, SITE, ("authorization", text)) for text in texts)
    yield from (with_headers(HOST, SITE, credential=each) for each in CREDENTIALS)


ATTACKS = [*from_elsewhere(), *in_disguise(), *by_strangers()]


def credentials_of(access: Access, session: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Headers of callers by kind."""
    name, _, secret = session.partition("=")
    read = access.new_token("reader", AccessScope.READ)
    operate = access.new_token("operator", AccessScope.OPERATE)
    agent = access.new_token("agent", AccessScope.OPERATE, agent=True)
    return {
        "session": (("cookie", session),),
        "none": (),
        "foreign": (("cookie", f"signoff-0123456789ab={secret}"),),
        "twice": (("cookie", f"{session}; {name}=other"),),
        "read": (("authorization", f"Bearer {read}"),),
        "operate": (("authorization", f"Bearer {operate}"),),
        "agent": (("authorization", f"Bearer {agent}"),),
        "link": (("cookie", f"{name}={access.new_link('ann')}"),),
    }


def open_request(project: Project) -> None:
    """Has a run wait for an approval."""
    form = '{"kind":"approval","prompt":"Ship it?","options":[],"shown":{}}'
    item = new_request(kind="approval", form=form, digest="shown1234567")
    start_run(project.store, "first").append(status=Status.WAITING, release=True, opened=[item])


async def send(app: ASGIApp, attack: Attack, credential: tuple[tuple[str, str], ...]) -> int:
    """Sends a request byte for byte; a client library would correct it."""
    path, _, query = attack.path.partition("?")
    pairs = [*attack.headers, *credential, ("content-type", "application/json")]
    scope = scope_of(attack.method, path, query, pairs)
    sent: list[Message] = []
    parts = [attack.body] * attack.repeats

    async def receive() -> Message:
        body = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": body, "more_body": bool(parts)}

    async def answer(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, answer)
    return int(sent[0]["status"])


def state(project: Project, access: Access) -> object:
    """Everything that a request could change."""
    store = project.store
    every = [item for run in store.rows() for item in store.items(run.name)]
    return store.news(None), store.rows(), every, access.tokens()


@table("attack", ATTACKS)
async def test_a_hostile_request_is_refused_and_changes_nothing(
    tmp_path: Path, attack: Attack
) -> None:
    """Each of these has been used against a server on someone's own machine."""
    with project_in(tmp_path) as project, closing(Access.of(project.home)) as access:
        open_request(project)
        credentials = credentials_of(access, session_of(project, access))
        before = state(project, access)

        status = await send(create_app(project, access), attack, credentials[attack.credential])

        assert status in REFUSED
        assert state(project, access) == before


async def test_the_same_request_without_a_flaw_is_accepted(
    app: ASGIApp, project: Project, access: Access, session: str
) -> None:
    """Otherwise the attacks above would be refused for the wrong reason."""
    open_request(project)
    good = with_headers(("host", OWN), ("origin", f"http://{OWN}"))._replace(
        body=b'{"digest": "shown1234567", "value": true, "resume": false}'
    )

    assert await send(app, good, credentials_of(access, session)["session"]) == 200
    assert project.store.item(1).answered_by == "ann"


def test_there_are_at_least_a_hundred() -> None:
    """The list must not shrink unnoticed."""
    assert len(ATTACKS) >= 100
