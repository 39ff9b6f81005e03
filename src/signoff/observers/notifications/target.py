"""Where notifications go: a program or a webhook. A target makes one attempt at a time."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit

from signoff._version import __version__
from signoff.errors import CommandFailed, ConfigError
from signoff.runtime.environment import command_environment
from signoff.runtime.handlers import on_thread
from signoff.runtime.process import kill_family, run_process

PROGRAM_SECONDS = 30.0
START_SECONDS = 5.0
"""How long the start of a program may take on a busy machine."""
WEBHOOK_SECONDS = 10.0

SIGNATURE = "X-Signoff-Signature"

_AGAIN = frozenset({408, 425, 429})
"""Answers of a webhook that ask for another attempt; any other 4xx is a refusal."""


class DeliveryFailed(Exception):  # noqa: N818  # named for what it says
    """An attempt did not succeed."""

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.final = final
        """Whether another attempt now would fail as well."""


class NotificationTarget(Protocol):
    """Receives notifications."""

    name: str
    """For messages; without anything secret."""

    async def send(self, body: str) -> None:
        """Delivers one document; raises `DeliveryFailed`."""
        ...

    def stop(self) -> None:
        """Ends what it has started; not called from the thread that sends."""
        ...


class ProgramTarget:
    """Gives documents to a program, on its standard input."""

    def __init__(self, argv: Sequence[str], pass_env: Sequence[str] = ()) -> None:
        self.name = f"program {argv[0]!r}"
        self._argv = tuple(argv)
        self._pass_env = tuple(pass_env)
        self._pid: int | None = None
        """The program, while it runs."""
        self._is_settled = threading.Event()
        """Not set while the program starts: it may run already, but its number is not known."""
        self._is_settled.set()

    async def send(self, body: str) -> None:
        """Runs the program; its exit code says whether it has taken the document."""
        self._is_settled.clear()
        try:
            result = await run_process(
                self._argv,
                stdin=body,
                env=command_environment(self._pass_env, {}),
                seconds=PROGRAM_SECONDS,
                started=self._started,
            )
        except CommandFailed as error:
            raise DeliveryFailed(str(error), final=True) from error
        finally:
            self._pid = None
            self._is_settled.set()
        if result.code != 0:
            raise DeliveryFailed(f"it exited with {result.code}: {_first_line(result.stderr)}")

    def stop(self) -> None:
        """Kills the program and everything it has started; waits for one that is starting."""
        self._is_settled.wait(START_SECONDS)
        if (pid := self._pid) is not None:
            kill_family(pid)

    def _started(self, process: Mapping[str, Any]) -> None:
        self._pid = process["pid"]
        self._is_settled.set()


class WebhookTarget:
    """Posts documents to a URL, signed if there is a secret."""

    def __init__(self, url: str, secret: str = "") -> None:
        # The path and the query of a webhook often contain its key.
        self.name = f"webhook {urlsplit(url).hostname}"
        self._url = url
        self._secret = secret.encode()

    async def send(self, body: str) -> None:
        """Posts one document; only an answer of 2xx counts."""
        data = body.encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"signoff/{__version__}"}
        if self._secret:
            digest = hmac.new(self._secret, data, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        try:
            # In a thread that can be abandoned: a server may send its answer byte by byte.
            async with asyncio.timeout(2 * WEBHOOK_SECONDS):
                await on_thread(partial(_post, self._url, data, headers))
        except TimeoutError as error:
            raise DeliveryFailed("it did not answer in time") from error

    def stop(self) -> None:
        """Does nothing: its requests end with the program."""


def build_target(settings: Mapping[str, Any], pass_env: Sequence[str] = ()) -> NotificationTarget:
    """Returns the target of one entry of `notify`; raises `ConfigError` if it cannot be used."""
    if settings.get("command"):
        return ProgramTarget(settings["command"], pass_env)
    variable = settings.get("secret_env")
    secret = os.environ.get(variable, "") if variable else ""
    if variable and not secret:
        # Receivers refuse what is not signed, or worse, do not.
        raise ConfigError(f"the variable {variable} is not set, so nothing can be signed")
    return WebhookTarget(settings["webhook"], secret)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they would send the document to a host that the settings don't name."""

    def redirect_request(self, *_redirect: Any) -> None:
        return None


def _post(url: str, data: bytes, headers: Mapping[str, str]) -> None:
    request = urllib.request.Request(url, data, dict(headers), method="POST")  # noqa: S310  # checked with the settings
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=WEBHOOK_SECONDS) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()
        refused = 300 <= error.code < 500 and error.code not in _AGAIN  # ranges of HTTP
        raise DeliveryFailed(f"it answered {error.code}", final=refused) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DeliveryFailed(str(reason) or type(error).__name__) from error


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200] or "no message"
