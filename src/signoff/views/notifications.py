"""Sends notifications: after their event is durable, and never in a run's way.

All deliveries are tasks of one event loop in a thread of its own. Each target has a queue, so a
program that hangs delays no webhook. Failed attempts are repeated with growing pauses, for a
limited time. What a process could not deliver before it ended is not sent by another one: the
inbox and `signoff runs` have what waits.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import hmac
import http.client
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from signoff._version import __version__
from signoff.core import events as ev
from signoff.core.amounts import cut, timestamp
from signoff.core.codec import decode
from signoff.core.digest import text_digest
from signoff.core.errors import CommandFailed, ConfigError
from signoff.core.events import RunStopped
from signoff.core.outcome import Status
from signoff.core.requests import options_of
from signoff.runtime.environment import command_environment
from signoff.runtime.error_text import describe_error
from signoff.runtime.handlers import on_thread
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.process import kill_family, run_process
from signoff.runtime.store_port import InboxItem, RunRow, Store
from signoff.views.queued import ObserverSetup

# The JSON document of a notification: what happened to a run, and how to answer it.


LONGEST_TEXT = 4000
"""Characters of a text from outside; receivers limit the size of what they accept."""

MOST_REQUESTS = 50
"""A fan-out may open a thousand; the rest are only counted."""


class NotifyOn(StrEnum):
    """What a notification can be about."""

    WAITING = "waiting"
    PARKED = "parked"
    ENDED = "ended"


_EVENTS = {
    Status.WAITING: NotifyOn.WAITING,
    Status.PARKED: NotifyOn.PARKED,
    # The others are not news: it still runs, or will soon, or its user has just stopped it.
    Status.RUNNING: None,
    Status.QUEUED: None,
    Status.INTERRUPTED: None,
}


def event_of(status: Status) -> NotifyOn | None:
    """Returns what a stop is called in a notification; None if it is not worth one."""
    return _EVENTS.get(status, NotifyOn.ENDED)


def document(
    row: RunRow, seq: int, stop: RunStopped, store: Store, setup: ObserverSetup
) -> dict[str, Any] | None:
    """Returns the document of a stop, which a commit of a run has recorded.

    The run may have continued since: None for a wait that is over, because it was answered.
    """
    event = event_of(stop.status)
    items = store.items(row.name) if event is NotifyOn.WAITING else []
    if event is NotifyOn.WAITING and not items:
        return None
    # The same whichever process sends it; the time tells the run from an earlier one of its name.
    identity = text_digest(f"{row.name}/{row.created_at!r}/{seq}")[:32]
    found: dict[str, Any] = setup.secrets.hide_in(
        {
            "id": identity,
            "event": event,
            "run": row.name,
            "workflow": row.workflow,
            "status": stop.status.value,
            "reason": cut(stop.reason, LONGEST_TEXT),
            "at": _time(stop.at),
            "due_at": _time(stop.due_at),
            "requests": [_request(item, store, setup) for item in items[:MOST_REQUESTS]],
            "more_requests": max(0, len(items) - MOST_REQUESTS),
        }
    )
    return found


def _request(item: InboxItem, store: Store, setup: ObserverSetup) -> dict[str, Any]:
    form: Mapping[str, Any] = decode(item.form, store.blob)
    return {
        "number": item.id,
        "step": item.step,
        "kind": item.kind.value,
        "text": cut(item.prompt, LONGEST_TEXT),
        "options": [cut(str(option["label"]), LONGEST_TEXT) for option in options_of(form)],
        "deadline": _time(item.deadline),
        "commands": list(setup.answer_commands(item, form)),
    }


def _time(at: float | None) -> str | None:
    return None if at is None else timestamp(at)


# Where notifications go: a program or a webhook. A target makes one attempt at a time.


PROGRAM_SECONDS = 30.0
GRACE_SECONDS = 0.5
"""How long a program that is stopped may take to end by itself."""
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


@dataclass
class NotificationTarget:
    """Where documents of some events go."""

    name: str
    """For messages; without anything secret."""
    on: frozenset[NotifyOn]
    send: Callable[[str], Awaitable[None]]
    """Makes one attempt at a document; raises `DeliveryFailed`."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lets documents wait for those before them."""
    missed: int = 0
    """How many documents it did not get, or not yet."""
    problem: str = "it took too long"
    """Why the last attempt failed."""
    programs: set[int] = field(default_factory=set)
    """What it has started and what has not ended, by process id."""


def build_target(settings: Mapping[str, Any], pass_env: Sequence[str] = ()) -> NotificationTarget:
    """Returns the target of one entry of `notify`; raises `ConfigError` if it cannot be used."""
    on = frozenset(map(NotifyOn, settings["on"]))
    if argv := settings.get("command"):
        programs: set[int] = set()
        send = partial(run_program, argv, pass_env, programs=programs)
        return NotificationTarget(f"program {argv[0]!r}", on, send, programs=programs)
    url, variable = settings["webhook"], settings.get("secret_env")
    secret = os.environ.get(variable, "") if variable else ""
    if variable and not secret:
        # Receivers refuse what is not signed, or worse, do not.
        raise ConfigError(f"the variable {variable} is not set, so nothing can be signed")
    # The path and the query of a webhook often contain its key.
    name = f"webhook {urlsplit(url).hostname}"
    return NotificationTarget(name, on, partial(call_webhook, url, secret))


async def run_program(
    argv: Sequence[str], pass_env: Sequence[str], body: str, programs: set[int] | None = None
) -> None:
    """Gives a document to a program; its exit code says whether it has taken it."""
    running = programs if programs is not None else set()
    try:
        result = await run_process(
            argv,
            stdin=body,
            env=command_environment(pass_env, {}),
            seconds=PROGRAM_SECONDS,
            grace_seconds=GRACE_SECONDS,
            started=lambda process: running.add(process["pid"]),
        )
    except asyncio.CancelledError:
        # It has ended. After any other end of this call, such as that of the interpreter, it may
        # not have, and `close` still has to know it.
        running.clear()
        raise
    except CommandFailed as error:
        running.clear()
        raise DeliveryFailed(str(error), final=True) from error
    running.clear()
    if result.code != 0:
        raise DeliveryFailed(f"it exited with {result.code}: {_first_line(result.stderr)}")


async def call_webhook(url: str, secret: str, body: str) -> None:
    """Posts a document, signed if there is a secret; only an answer of 2xx counts."""
    data = body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": f"signoff/{__version__}"}
    if secret:
        digest = hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
        headers[SIGNATURE] = f"sha256={digest}"
    try:
        # In a thread that can be abandoned: a server may send its answer byte by byte.
        async with asyncio.timeout(2 * WEBHOOK_SECONDS):
            await on_thread(partial(_post, url, data, headers))
    except TimeoutError as error:
        raise DeliveryFailed("it did not answer in time") from error


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


TRY_SECONDS = 60.0
"""How long attempts at one delivery are repeated, while there is other work to wait for."""

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0

CLOSE_SECONDS = 6.0
"""How long the end of the program waits for deliveries; less than observers have in all."""

STOP_SECONDS = 1.0
"""How long it waits for what it had to stop."""

PART_FOR_DELIVERIES = 0.8
"""The part of that time after which deliveries are given up, so programs can still end."""

log = logging.getLogger("signoff")


async def _deliver(target: NotificationTarget, body: str) -> None:
    target.missed += 1
    async with target.turn:
        target.missed -= await _is_taken(target, body)


async def _is_taken(target: NotificationTarget, body: str) -> bool:
    """Makes attempts until one succeeds, or it is time to give up."""
    until, pause = time.monotonic() + TRY_SECONDS, FIRST_PAUSE_SECONDS
    while True:
        try:
            await target.send(body)
        except DeliveryFailed as error:
            target.problem = str(error)
            if error.final or time.monotonic() + pause > until:
                return False
        except Exception as error:  # noqa: BLE001  # a target must not stop those after it
            target.problem = describe_error(error)
            return False
        else:
            return True
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE_SECONDS, pause * 2)


async def _give_up() -> None:
    """Ends all deliveries, with the programs that they have started."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Notifier:
    """An observer that notifies the targets of the settings."""

    def __init__(
        self,
        setup: ObserverSetup,
        *,
        targets: Sequence[Mapping[str, Any]],
        pass_env: Sequence[str] = (),
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._setup = setup
        self._close_seconds = close_seconds
        self._targets = list(_usable(targets, pass_env))
        self._deliveries: list[Future[None]] = []
        """Those that may be under way."""
        self._store: Store | None = None
        self._loop = asyncio.new_event_loop()
        # A daemon: a target that hangs must not keep the program from exiting.
        self._thread = threading.Thread(target=self._run_loop, daemon=True)
        self._thread.start()
        # Whatever ends this program, no program that it has started stays behind.
        atexit.register(self._stop)

    def notice(self, notice: Notice) -> None:
        """Notes the stops of runs."""
        if not isinstance(notice, Recorded):
            return
        for event in notice.events:
            if isinstance(event, ev.RunStopped):
                self._send(notice.run, notice.seq, event)

    def close(self) -> None:
        """Waits for deliveries, and gives up those that take too long."""
        wait(self._deliveries, PART_FOR_DELIVERIES * self._close_seconds)
        self._stop()
        atexit.unregister(self._stop)
        for each in self._targets:
            if each.missed:
                many = f"{each.missed} notifications" if each.missed > 1 else "a notification"
                log.warning("%s did not get %s: %s", each.name, many, each.problem)
        if self._store is not None:
            self._store.close()

    def _send(self, run: str, seq: int, stop: ev.RunStopped) -> None:
        """Queues a stop for every target that wants it."""
        wanting = [each for each in self._targets if event_of(stop.status) in each.on]
        if not wanting:
            return
        # Opened in the observer's thread, where it is used.
        store = self._store = self._store or self._setup.open_store()
        found = document(store.row(run), seq, stop, store, self._setup)
        self._deliveries = [each for each in self._deliveries if not each.done()]
        for each in wanting if found is not None else ():
            delivery = _deliver(each, json.dumps(found))
            self._deliveries.append(asyncio.run_coroutine_threadsafe(delivery, self._loop))

    def _stop(self) -> None:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_give_up(), self._loop).result(STOP_SECONDS)
        # While the interpreter ends, it starts no threads, which a polite end of programs needs.
        for each in self._targets:
            for pid in each.programs:
                kill_family(pid)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)

    def _run_loop(self) -> None:
        with closing(self._loop):
            self._loop.run_forever()


def _usable(
    targets: Sequence[Mapping[str, Any]], pass_env: Sequence[str]
) -> Iterator[NotificationTarget]:
    for number, each in enumerate(targets):
        try:
            yield build_target(each, pass_env)
        except ConfigError as error:
            log.warning("notify[%d] is off: %s", number, error)
