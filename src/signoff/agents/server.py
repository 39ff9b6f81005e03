"""A model server: its address, the key it may get, and how to connect to it."""

from __future__ import annotations

import ipaddress
import os
import ssl
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
    """One server; equal servers share a client."""

    address: str
    key: str | None = field(repr=False)
    is_vendor: bool
    """Whether this is the vendor's own server, which may get the vendor's own variables."""
    timeout: float
    connect_timeout: float

    def http_options(
        self, *, key_headers: Collection[str], headers: Collection[str] = ()
    ) -> dict[str, Any]:
        """Returns the options of the HTTP client.

        `key_headers` carry the key and `headers` belong to the protocol; other headers are
        sent to the vendor's own server only.
        """
        return {
            # A redirect could send the prompt and the key to another server.
            "follow_redirects": False,
            "event_hooks": {"request": [self._header_filter(key_headers, headers)]},
            **self.local_options,
        }

    def sdk_options(self, sdk: Any, **headers: Collection[str]) -> dict[str, Any]:
        """Returns the options of a client of the SDKs that OpenAI and Anthropic share."""
        return {
            # The client insists on a key; without one the header is removed before sending.
            "api_key": self.key or "none",
            "base_url": self.address,
            "max_retries": 0,
            "default_headers": {"Connection": "close"},
            "http_client": sdk.DefaultAsyncHttpxClient(
                base_url=self.address,
                timeout=sdk.Timeout(self.timeout, connect=self.connect_timeout, pool=None),
                **self.http_options(**headers),
            ),
        }

    @property
    def local_options(self) -> dict[str, Any]:
        """Options of the HTTP client for servers on this machine; proxies cannot reach them."""
        address = urlsplit(self.address)
        host = address.hostname or ""
        if not _is_loopback(host):
            return {}
        host = f"[{host}]" if ":" in host else host
        # Some clients read the environment themselves; a mount overrides what they find.
        options: dict[str, Any] = {"trust_env": False, "mounts": {f"all://{host}": None}}
        if address.scheme == "http":
            # Certificates that are not needed take longer to load than all the rest. An empty
            # context trusts none.
            options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return options

    def _header_filter(
        self, key_headers: Collection[str], headers: Collection[str]
    ) -> Callable[[Any], Awaitable[None]]:
        """Returns a hook that removes headers which clients take from the environment.

        Clients add keys, organizations and custom headers they find there, whatever server
        they call. Only the vendor's own server may get them.
        """
        allowed = _PLAIN_HEADERS.union(headers, key_headers if self.key else ())

        async def strip(request: Any) -> None:
            if not self.is_vendor:
                for name in [name for name in request.headers if name.lower() not in allowed]:
                    del request.headers[name]

        return strip


def parse_base_url(text: str) -> str:
    """Returns a base URL without a trailing slash; raises `ConfigError` when it is invalid."""
    if "@" in text:
        raise ConfigError(
            "base_url contains a name or password; put the key in an environment variable "
            "and name it with key_env"
        )
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"base_url {text!r} is not a URL: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"base_url {text!r} is not a URL such as http://localhost:8080")
    return text.rstrip("/")


def read_key(variable: str | None) -> str | None:
    """Returns the key in an environment variable; raises `AgentAuth` when there is none."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AgentAuth(f"{variable} holds no key; set it and resume")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise AgentAuth(f"{variable} does not hold a valid key")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
