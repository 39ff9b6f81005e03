"""Checks every request before anything else sees it, and adds the security headers.

A local server can be reached by every web page in the user's browser and by every user of the
machine. So a request must name a host that is listed (a page can make its own name resolve to
this machine), must not come from another site, must have a plain path, a bounded body, and a
session or a token, even for reading. It is plain ASGI, so that no kind of connection bypasses
it, and it knows nothing about routes, so that no route can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.app.runs.next_commands import next_commands
from signoff.core.remedies import CreateToken, OpenPage, Remedy
from signoff.surfaces.web.access import SESSION_SECONDS, Access, AccessScope, Caller
from signoff.surfaces.web.problems import problem, problem_response

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_BODY_BYTES = 4 << 20
"""The largest body of a request: enough for a long text handed in by a human."""
LOGIN_PATH = "/login"
STATIC_PATH = "/static/"
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
# Some programs behind a proxy obey these headers, so that a GET could act as a POST.
OVERRIDES = frozenset({"x-http-method-override", "x-http-method", "x-method-override"})
OWN_SITE = frozenset({"same-origin", "none"})
"""`same-site` is not enough: every port of this machine is the same site."""

CALLER = "signoff.caller"
"""The key of a request's scope that has its `Caller`."""
CHECK = "signoff.check"
"""The key of the `CallerCheck` of a request, for those that last."""

SECURITY_HEADERS: Sequence[tuple[bytes, bytes]] = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        # Not `no-referrer`: browsers then send `Origin: null` with the forms of this very page.
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
    }.items()
)

_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
_UNUSUAL_PATH = re.compile(r"//|\\|[\x00-\x1f\x7f]|/\.{1,2}(?:/|$)")
_ENCODED_SEPARATOR = re.compile(rb"%(?:2f|5c|00)", re.IGNORECASE)


class CallerCheck(NamedTuple):
    """Finds out who sent a request; equal for requests with the same secret."""

    find: Callable[[str], Caller | None]
    secret: str

    def __call__(self) -> Caller | None:
        """Returns the caller; None if the secret is missing, wrong, expired or revoked."""
        return self.find(self.secret) if self.secret else None


class RefusedRequest(NamedTuple):
    """Why a request is not passed on."""

    status: HTTPStatus
    kind: str
    detail: str
    remedies: tuple[Remedy, ...] = ()

    @property
    def message(self) -> str:
        """What is wrong and what to do, for people."""
        return "; ".join([self.detail, *next_commands(self.remedies)])

    def response(self, path: str) -> Response:
        """Returns the answer to a request that is not passed on."""
        document = problem(self.status, self.kind, self.message, remedies=self.remedies)
        return problem_response(path, document)


class RequestGuard:
    """The outermost application: it answers what it refuses, and passes on the rest."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        cookie: str,
        hosts: Collection[str] = (),
        most_body_bytes: int = MOST_BODY_BYTES,
    ) -> None:
        """`hosts` are names, besides those of this machine, under which it may be reached."""
        # A body need not say how long it is, so it is counted while it is read.
        self._app = RequestBodyLimitMiddleware(app, most_body_bytes)
        self._access = access
        self._cookie = cookie
        self._hosts = frozenset(each.lower() for each in (*LOOPBACK, *hosts))
        self._most = most_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no web sockets here, so there is nothing to pass on.
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        answer = self._app if refusal is None else refusal.response(scope["path"])
        await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> RefusedRequest | None:
        """Returns why a request is refused; notes its caller in the scope."""
        headers = Headers(scope=scope)
        # The host comes first: a page that makes its own name resolve to this machine has the same
        # origin as ours, and must not even learn whether a session is valid.
        found = (
            _check_host(headers, self._hosts)
            or _check_request_line(scope, headers)
            or _check_site(scope, headers)
            or _check_length(headers, self._most)
        )
        if found is not None:
            return found
        check = scope[CHECK] = self._check(headers)
        caller = scope[CALLER] = check()
        # What a browser needs before it is logged in; nothing there is about the project.
        path: str = scope["path"]
        is_open = path == LOGIN_PATH or path.startswith(STATIC_PATH)
        if caller is None and not is_open:
            return _unknown_caller(headers, self._cookie)
        if caller is not None and scope["method"] not in SAFE_METHODS:
            # Routes ask for what they need; this holds even where one forgets to.
            return missing_scope(caller, AccessScope.OPERATE)
        return None

    def _check(self, headers: Headers) -> CallerCheck:
        scheme, _, token = _one(headers, "authorization").partition(" ")
        if scheme:
            # A wrong token is an error even next to a valid session.
            secret = token.strip() if scheme.lower() == "bearer" else ""
            return CallerCheck(self._access.token, secret)
        return CallerCheck(self._access.session, _cookie_value(headers, self._cookie))


def _unknown_caller(headers: Headers, cookie: str) -> RefusedRequest:
    """Returns the refusal of a request without a valid session or token."""
    kind = "NotLoggedIn"
    remedies: tuple[Remedy, ...] = (CreateToken(), OpenPage())
    scheme, _, token = _one(headers, "authorization").partition(" ")
    if scheme and (scheme.lower() != "bearer" or not token.strip()):
        what = "the Authorization header must be 'Bearer TOKEN'"
    elif scheme:
        # A revoked token is deleted, so it cannot be told from one that never existed.
        kind, remedies = "UnknownToken", (CreateToken(),)
        what = "this token is not valid: it was revoked, or it is of another project"
    elif _cookie_value(headers, cookie):
        days = round(SESSION_SECONDS / 86400)
        what = f"this session has ended: you logged out, or it is older than {days} days"
    else:
        what = "this needs a bearer token, or a browser that is logged in"
    return RefusedRequest(HTTPStatus.UNAUTHORIZED, kind, what, remedies)


def missing_scope(caller: Caller, scope: AccessScope) -> RefusedRequest | None:
    """Returns the refusal of a caller that lacks a scope."""
    if caller.scope >= scope:
        return None
    if caller.agent and scope is AccessScope.DECIDE:
        what = (
            f"{caller.name!r} is the token of an agent, and agents never decide; "
            "ask a human to decide on the page or the command line"
        )
        return RefusedRequest(HTTPStatus.FORBIDDEN, "ScopeMissing", what)
    what = (
        f"this needs a token with the scope {scope.word!r}; "
        f"{caller.name!r} has only {caller.scope.word!r}"
    )
    remedy = CreateToken(scope.word)
    return RefusedRequest(HTTPStatus.FORBIDDEN, "ScopeMissing", what, (remedy,))


def _one(headers: Headers, name: str) -> str:
    """Returns a header; one that was sent twice with different values matches nothing."""
    # Programs disagree about which of two counts, and another one may have checked the other.
    values = set(headers.getlist(name))
    return values.pop() if len(values) == 1 else "\0" if values else ""


def _check_host(headers: Headers, hosts: Collection[str]) -> RefusedRequest | None:
    if _host_name(_one(headers, "host")) in hosts:
        return None
    what = "this server does not answer to this host name"
    return RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, "UnknownHost", what)


def _host_name(host: str) -> str | None:
    """Returns the name in a Host header, without its port; None if it is none."""
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found else None


def _check_request_line(scope: Scope, headers: Headers) -> RefusedRequest | None:
    if scope["method"] not in METHODS or any(map(headers.getlist, OVERRIDES)):
        return RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", "unknown method")
    raw: bytes = scope.get("raw_path") or b""
    try:
        path = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        path = "\0"
    # Refused rather than rewritten: nothing that sends such a path means well.
    if not path.startswith("/") or _UNUSUAL_PATH.search(path) or _ENCODED_SEPARATOR.search(raw):
        return RefusedRequest(
            HTTPStatus.BAD_REQUEST, "UnusualPath", "the path is not in its plain form"
        )
    return None


def _check_site(scope: Scope, headers: Headers) -> RefusedRequest | None:
    """Refuses what another web page sends, except that it may link here."""
    site, origin = _one(headers, "sec-fetch-site"), _one(headers, "origin")
    other = RefusedRequest(
        HTTPStatus.FORBIDDEN, "OtherSite", "the request comes from another web site"
    )
    if scope["method"] in SAFE_METHODS:
        # A link in a chat leads to a sign-off; frames, scripts and pictures from there are attacks.
        link = _one(headers, "sec-fetch-mode") == "navigate"
        top = _one(headers, "sec-fetch-dest") in ("document", "")
        return other if site and site not in OWN_SITE and not (link and top) else None
    if site and site not in OWN_SITE:
        return other
    if origin and urlsplit(origin).netloc.lower() != _one(headers, "host").lower():
        return other
    if not site and not origin and not _one(headers, "authorization"):
        # Every browser sends one of them; without, a cookie says nothing about who asks.
        return other
    return None


def _check_length(headers: Headers, most: int) -> RefusedRequest | None:
    length = _one(headers, "content-length")
    if not length:
        return None
    # Python reads more numbers than servers do, such as -1 or digits of other scripts.
    if not length.isascii() or not length.isdigit():
        return RefusedRequest(
            HTTPStatus.BAD_REQUEST, "BadRequest", "the length of the body is unclear"
        )
    if int(length) <= most:
        return None
    what = f"the body is larger than {most >> 20} MB"
    return RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "BodyTooLarge", what)


def _cookie_value(headers: Headers, name: str) -> str:
    """Returns a cookie; one that was sent twice with different values matches nothing."""
    parts = ";".join(headers.getlist("cookie")).split(";")
    pairs = (part.strip().partition("=") for part in parts)
    values = {value for key, _, value in pairs if key == name}
    return values.pop() if len(values) == 1 else ""


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            # A route may have set a stricter policy for what it sends; that one must stay.
            own = list(message.get("headers", ()))
            names = {name.lower() for name, _ in own}
            extra = [pair for pair in SECURITY_HEADERS if pair[0] not in names]
            if b"cache-control" not in names:
                extra.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*own, *extra]}
        await send(message)

    return guarded
