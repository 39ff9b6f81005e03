"""Under which addresses this server's pages are known, and what authenticators returned to them.

A passkey belongs to a host name. Its signature also names the origin, the address with the port,
and only ours counts: every other page of this machine could ask for a signature for `localhost`.
"""

from __future__ import annotations

import json

from fastapi import Request

from signoff.app.presence import Proof
from signoff.errors import SignatureRefused, UsageError
from signoff.web.views.frame import FormFields

LOCAL_NAME = "localhost"


def origins_of(request: Request) -> list[str]:
    """Returns the origins of this server's pages.

    The port is that of the socket: the header that names the host is the caller's own word.
    Browsers let pages of other machines use passkeys only over TLS, which a proxy adds.
    """
    _, port = request.scope["server"]
    hosts: tuple[str, ...] = request.app.state.hosts
    return [f"http://{LOCAL_NAME}:{port}", *(f"https://{each}" for each in hosts)]


def host_for_passkeys(request: Request) -> str:
    """Returns the host name that a page was opened under; raises `UsageError` for an address."""
    host, hosts = request.url.hostname or "", (LOCAL_NAME, *request.app.state.hosts)
    if host not in hosts:
        page = f"{origins_of(request)[0]}{request.url.path.removesuffix('/challenge')}"
        raise UsageError(f"passkeys work under a host name, not under {host}; open {page}")
    return host


def sent_proof(request: Request, form: FormFields, field: str) -> Proof | None:
    """Returns what an authenticator returned to a page; None if nothing was sent."""
    text = form.one(field)
    if not text:
        return None
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SignatureRefused("the reply of the authenticator is damaged") from error
    if not isinstance(reply, dict):
        raise SignatureRefused("the reply of the authenticator is damaged")
    return Proof(reply, origins_of(request))
