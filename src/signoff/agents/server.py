"""Where a model is asked: its address, the key it may see, and the way there."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from signoff.errors import AgentAuth, ConfigError

_PLAIN_HEADERS = frozenset(
    "accept accept-encoding connection content-length content-type host idempotency-key "
    "transfer-encoding user-agent".split()
)


@dataclass(frozen=True)
class Server:
    """One server as its client sees it; equal ones share a client."""

    address: str
    key: str | None = field(repr=False)
    vendors: bool
    """Whether this is the vendor's own address, which may see the vendor's own variables."""
    timeout: float
    connect_timeout: float

    @property
    def way(self) -> dict[str, Any]:
        """How the HTTP library gets there: past the proxies, when it runs on this machine."""
        host = urlsplit(self.address).hostname or ""
        if not _is_here(host):
            return {}
        place = f"[{host}]" if ":" in host else host
        # Some clients ask the environment themselves; a mount is stronger than what they find.
        return {"trust_env": False, "mounts": {f"all://{place}": None}}

    def guard(
        self, *, carries_key: Collection[str], own: Collection[str] = ()
    ) -> Callable[[Any], Awaitable[None]]:
        """Returns a hook that keeps what clients read in the environment from other addresses.

        Clients add keys, organisations and custom headers they find there, whoever is asked.
        Only headers of the protocol's own pass, and those that carry a key if there is one.
        """
        allowed = _PLAIN_HEADERS.union(own, carries_key if self.key else ())

        async def strip(request: Any) -> None:
            if not self.vendors:
                for name in [name for name in request.headers if name.lower() not in allowed]:
                    del request.headers[name]

        return strip


def checked_address(text: str) -> str:
    """Returns an address without a slash at its end; raises `ConfigError` when it is none."""
    if "@" in text:
        raise ConfigError(
            "base_url holds a name or password; put the key in an environment variable "
            "and name it with key_env"
        )
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"base_url {text!r} is no address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"base_url {text!r} is no address; it looks like http://localhost:8080")
    return text.rstrip("/")


def key_from(variable: str | None) -> str | None:
    """Returns the key a variable holds; raises `AgentAuth` when it holds none."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AgentAuth(f"there is no key in {variable}; set it and resume")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise AgentAuth(f"{variable} holds something that cannot be a key")
    return key


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
