"""Entity tags: a client that has the current document gets a short answer instead of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

_KEPT = ("etag", "cache-control", "vary")


class TaggedRoute(APIRoute):
    """A route whose documents have a tag, computed from their content."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the handler, which answers with 304 if nothing has changed."""
        answer = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await answer(request)
            if (
                request.method != "GET"
                or response.status_code != HTTPStatus.OK
                or isinstance(response, StreamingResponse)
            ):
                return response
            tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
            response.headers["etag"] = tag
            # Kept by the client, but shown only after asking whether it is still current.
            response.headers["cache-control"] = "private, no-cache"
            if not _matches(request.headers.get("if-none-match", ""), tag):
                return response
            kept = {name: value for name in _KEPT if (value := response.headers.get(name))}
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=kept)

        return tagged


def _matches(header: str, tag: str) -> bool:
    # A server that compresses an answer may have made the tag a weak one.
    tags = {each.strip().removeprefix("W/") for each in header.split(",")}
    return tag in tags or "*" in tags
