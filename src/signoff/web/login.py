"""Logging in by a link that works once, and logging out."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from signoff.web.access import SESSION_SECONDS, Access
from signoff.web.error_page import error_page
from signoff.web.guard import CALLER, LOGIN_PATH

router = APIRouter(include_in_schema=False)


@router.get(LOGIN_PATH)
def log_in(request: Request, key: str = "", to: str = "/") -> Response:
    """Exchanges the key of a login link for a session, and opens a page of this server."""
    access: Access = request.app.state.access
    secret = access.open_session(key)
    response = RedirectResponse(to if _is_own(to) else "/", HTTPStatus.SEE_OTHER)
    if secret is None and request.scope[CALLER] is not None:
        # A used link in the history of a browser that is still logged in.
        return response
    if secret is None:
        return Response(error_page(HTTPStatus.UNAUTHORIZED, ""), HTTPStatus.UNAUTHORIZED,
                        media_type="text/html")  # fmt: skip
    response.set_cookie(
        request.app.state.cookie,
        secret,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout")
def log_out(request: Request) -> Response:
    """Ends the session of this browser."""
    access: Access = request.app.state.access
    cookie: str = request.app.state.cookie
    access.close_session(request.cookies.get(cookie, ""))
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    response.delete_cookie(cookie, httponly=True, samesite="strict")
    return response


def _is_own(to: str) -> bool:
    """Tells whether an address is a path of this server: `//host` and `/\\host` are not."""
    return to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
