import logging
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.requests import Approval, Question
from signoff.runtime.environment import Secrets
from signoff.runtime.owner import birth_of
from signoff.views import notifications as module
from signoff.views.notifications import LONGEST_TEXT, MOST_REQUESTS, Notifier
from signoff.views.queued import ObserverSetup, QueuedObserver, close_observers
from tests.patience import wait_until
from tests.unit.runtime.engine_fixture import EngineFixture, one_step
from tests.unit.views.webhook_server import WebhookServer

Work = tuple[Outcome, dict[str, Any]]
HOSTILE = 'Ship "it"?\n\x1b[2J\u202e$(touch evil)\ud83d'


async def ask(ctx: StepContext) -> Work:
    await ctx.wait(Question(HOSTILE))
    return Outcome.OK, {}


async def end(ctx: StepContext) -> Work:
    return Outcome.OK, {}


class Watched:
    """An engine whose runs are watched by a notifier."""

    def __init__(self, folder: Path, bench: EngineFixture) -> None:
        self.folder, self.bench = folder, bench
        self.secrets = Secrets()

    def notifier(self, *targets: Mapping[str, Any], **options: Any) -> QueuedObserver:
        """Starts one, as a process of its own would, with time for a busy machine."""
        setup = ObserverSetup(
            open_store=self.bench.store.reopen,
            folder=self.folder,
            clock=self.bench.clock,
            secrets=self.secrets,
            answer_commands=lambda item, _form: [f"answer {item.id}"],
        )
        return QueuedObserver(
            "notify", Notifier(setup, targets=targets, **{"close_seconds": 60, **options})
        )

    async def drive(
        self, handler: Callable[[StepContext], Any], *targets: Mapping[str, Any], **options: Any
    ) -> None:
        """Drives the run to its end or its next wait; all notifications are sent then."""
        notifier = self.notifier(*targets, **options)
        await self.bench.restart(observers=[notifier])
        await self.bench.start(one_step(handler))
        close_observers([notifier], 60)


@pytest.fixture
def watched(tmp_path: Path, bench: EngineFixture) -> Watched:
    return Watched(tmp_path, bench)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)


def every(url: str) -> dict[str, Any]:
    return {"on": ["waiting", "ended", "parked"], "webhook": url}


async def test_a_wait_is_announced_with_what_is_asked_and_how_to_answer(watched: Watched) -> None:
    """The approver can decide from the message alone."""
    with WebhookServer() as server:
        await watched.drive(ask, every(server.url))

    (found,) = server.documents
    (request,) = found["requests"]
    assert (found["event"], found["status"]) == ("waiting", "waiting")
    assert (found["run"], found["workflow"], found["more_requests"]) == ("run", "flow", 0)
    # The database cannot store half a character.
    assert request["text"] == HOSTILE.replace("\ud83d", "\ufffd")
    assert request["commands"] == [f"answer {request['number']}"]
    assert (request["kind"], request["step"]) == ("question", "work")
    assert b"\x1b" not in server.bodies[0]


async def test_only_what_was_asked_for_is_sent(watched: Watched) -> None:
    """`on: [ended]` is for those who do not answer requests."""
    with WebhookServer() as server:
        await watched.drive(ask, {"on": ["ended", "parked"], "webhook": server.url})

    assert server.bodies == []


async def test_a_parked_run_is_announced_with_its_time(watched: Watched) -> None:
    """Nothing happens until then."""

    async def sleep(ctx: StepContext) -> Work:
        await ctx.park(timedelta(hours=1))
        return Outcome.OK, {}

    with WebhookServer() as server:
        await watched.drive(sleep, every(server.url))

    (found,) = server.documents
    assert found["event"] == "parked"
    assert found["due_at"].endswith("Z")


async def test_attempts_are_repeated_and_the_id_stays(watched: Watched) -> None:
    """The receiver may have got a document whose answer was lost."""
    with WebhookServer(lambda number: 500 if number < 3 else 200) as server:
        await watched.drive(end, every(server.url))

    assert len(server.documents) == 3
    assert len({each["id"] for each in server.documents}) == 1


async def test_an_answered_wait_is_not_announced(watched: Watched) -> None:
    """The notification of a request that is closed sends people to nothing."""
    with WebhookServer() as server:
        notifier = watched.notifier(every(server.url))
        await watched.bench.start(one_step(ask))
        watched.bench.answer("yes")
        await watched.bench.restart(observers=[notifier])
        await watched.bench.resume(one_step(ask))
        close_observers([notifier], 60)

    assert [each["event"] for each in server.documents] == ["ended"]


async def test_secrets_are_hidden_and_long_texts_cut(watched: Watched) -> None:
    """A question may quote a key, or a whole book."""
    watched.secrets = Secrets((("API_KEY", "sk-12345678"),))

    async def curious(ctx: StepContext) -> Work:
        await ctx.wait(Approval(f"sk-12345678 {'x' * 100_000}"))
        return Outcome.OK, {}

    with WebhookServer() as server:
        await watched.drive(curious, every(server.url))

    text = server.documents[0]["requests"][0]["text"]
    assert b"sk-12345678" not in server.bodies[0]
    assert "[hidden: API_KEY]" in text
    assert len(text) < LONGEST_TEXT + 50


async def test_of_a_thousand_requests_the_rest_is_counted(watched: Watched) -> None:
    """Receivers refuse documents of megabytes."""

    async def item(ctx: StepContext, number: int) -> str:
        return str((await ctx.wait(Question(f"Number {number}?"))).value)

    async def many(ctx: StepContext) -> Work:
        await ctx.map(list(range(MOST_REQUESTS + 7)), item)
        return Outcome.OK, {}

    with WebhookServer() as server:
        await watched.drive(many, every(server.url))

    (found,) = server.documents
    assert len(found["requests"]) == MOST_REQUESTS
    assert found["more_requests"] == 7


async def test_the_end_waits_a_bounded_time_for_what_fails_forever(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing program, and webhooks that answer 500 or not at all: the shell comes back."""
    with WebhookServer(lambda _number: 500) as broken, WebhookServer(lambda _number: 0) as silent:
        targets = [
            {"on": ["ended"], "command": ["no-such-program"]},
            every(broken.url),
            every(silent.url),
        ]
        notifier = watched.notifier(*targets, close_seconds=0.5)
        await watched.bench.restart(observers=[notifier])
        await watched.bench.start(one_step(end))
        # The second attempt means that the failure of the first is known.
        wait_until(lambda: len(broken.bodies) > 1 and silent.bodies, "the attempts")
        close_observers([notifier], 60)

    warned = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert [each.partition(":")[0] for each in warned] == [
        "program 'no-such-program' did not get a notification",
        "webhook 127.0.0.1 did not get a notification",
        "webhook 127.0.0.1 did not get a notification",
    ]
    assert "it answered 500" in warned[1]
    assert "very-secret" not in caplog.text


async def test_a_program_that_hangs_is_killed_with_its_children(
    watched: Watched, tmp_path: Path
) -> None:
    """Nothing that a command has started outlives it."""
    pids = tmp_path / "pids"
    hang = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "sleeps = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "child = subprocess.Popen(sleeps)\n"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}\\n')\n"
        "time.sleep(600)\n"
    )
    target = {"on": ["ended"], "command": [sys.executable, "-c", hang, str(pids)]}
    notifier = watched.notifier(target, close_seconds=0.5)
    await watched.bench.restart(observers=[notifier])
    await watched.bench.start(one_step(end))
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "its start")

    close_observers([notifier], 60)

    for pid in map(int, pids.read_text().split()):
        wait_until(partial(_has_ended, pid), f"the end of {pid}")


def _has_ended(pid: int) -> bool:
    return birth_of(pid) is None


async def test_a_target_that_cannot_be_used_is_off_and_the_others_are_not(
    watched: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that is missing in one shell must not silence everything."""
    monkeypatch.delenv("HOOK_SECRET", raising=False)

    with WebhookServer() as server:
        signed = {**every(server.url), "secret_env": "HOOK_SECRET"}
        await watched.drive(end, signed, {"on": ["ended"], "webhook": server.url})

    assert len(server.bodies) == 1
    assert "notify[0] is off: the variable HOOK_SECRET is not set" in caplog.text


async def test_an_address_that_cannot_be_used_stops_nothing(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a client raises, the documents after it are sent."""
    with WebhookServer() as server:
        odd = every(f"http://{'x' * 70}.example/")
        await watched.drive(end, odd, every(server.url))

    assert len(server.bodies) == 1
    assert "did not get a notification" in caplog.text


async def test_what_waits_behind_a_document_that_hangs_is_counted(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """The user reads how much a target has missed."""
    with WebhookServer(lambda _number: 0) as server:
        notifier = watched.notifier(every(server.url), close_seconds=0.5)
        await watched.bench.restart(observers=[notifier])
        for name in ("a", "b", "c"):
            await watched.bench.engine.start(one_step(end), {}, name=name)
        close_observers([notifier], 60)

    assert "webhook 127.0.0.1 did not get 3 notifications" in caplog.text
