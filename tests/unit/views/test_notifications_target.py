import asyncio
import hashlib
import hmac
import os
import socket
import sys
from pathlib import Path

import pytest

from signoff.core.errors import ConfigError
from signoff.runtime.process import descendants
from signoff.views import notifications as module
from signoff.views.notifications import (
    DeliveryFailed,
    build_target,
    call_webhook,
    run_program,
)
from tests.unit.views.webhook_server import WebhookServer

BODY = '{"id": "1", "text": "\\u001b[2J"}'


async def test_a_program_gets_the_document_on_its_standard_input(tmp_path: Path) -> None:
    """No shell is involved, so no text can become a command."""
    copy = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    file = tmp_path / "got; touch evil"

    await run_program([sys.executable, "-c", copy, str(file)], (), BODY)

    assert file.read_text() == BODY


async def test_a_program_gets_only_ordinary_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notifier needs no keys of models; `pass_env` names what it does need."""
    monkeypatch.setenv("SOME_API_KEY", "sk-12345678")
    monkeypatch.setenv("CHANNEL", "builds")
    show = "import os, sys; open(sys.argv[1], 'w').write(repr(sorted(os.environ)))"
    file = tmp_path / "names"

    await run_program([sys.executable, "-c", show, str(file)], ["CHANNEL"], BODY)

    assert "'CHANNEL'" in file.read_text()
    assert "SOME_API_KEY" not in file.read_text()


async def test_a_missing_program_is_not_tried_again() -> None:
    """It will not appear within a minute."""
    with pytest.raises(DeliveryFailed, match="was not found") as failed:
        await run_program(["no-such-program"], (), BODY)

    assert failed.value.final


async def test_a_program_that_fails_is_tried_again() -> None:
    """Its own server may be down for a moment."""
    fail = "import sys; sys.exit('no network\\nmore')"

    with pytest.raises(DeliveryFailed, match=r"it exited with 1: no network$") as failed:
        await run_program([sys.executable, "-c", fail], (), BODY)

    assert not failed.value.final


async def test_a_program_that_does_not_read_its_input_is_fine() -> None:
    """`true` is a program too, and a large document would block it."""
    await run_program([sys.executable, "-c", "pass"], (), "x" * 1_000_000)


async def test_a_program_that_is_just_starting_is_stopped_too() -> None:
    """On a busy machine it runs before it is known, and would outlive the command."""
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    # Programs of other tests may still be there, such as the one that evaluates expressions.
    others = {each.pid for each in descendants(os.getpid())}
    sending = asyncio.create_task(run_program(argv, (), BODY))
    await asyncio.sleep(0)  # Now it begins to start the program.

    sending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sending
    assert {each.pid for each in descendants(os.getpid())} <= others


async def test_a_webhook_gets_the_document_signed() -> None:
    """The receiver can check that it comes from someone who knows the secret."""
    with WebhookServer() as server:
        await call_webhook(server.url, "s3cret", BODY)

    expected = hmac.new(b"s3cret", BODY.encode(), hashlib.sha256).hexdigest()
    assert server.bodies == [BODY.encode()]
    assert server.headers[0]["X-Signoff-Signature"] == f"sha256={expected}"
    assert server.headers[0]["Content-Type"] == "application/json"


async def test_without_a_secret_nothing_is_signed() -> None:
    """An empty signature would look like one."""
    with WebhookServer() as server:
        await call_webhook(server.url, "", BODY)

    assert "X-Signoff-Signature" not in server.headers[0]


@pytest.mark.parametrize(
    ("status", "final"), [(500, False), (503, False), (429, False), (404, True), (410, True)]
)
async def test_an_answer_says_whether_another_attempt_helps(status: int, final: bool) -> None:
    """A server that is down comes back; an address that is wrong stays wrong."""
    with (
        WebhookServer(lambda _number: status) as server,
        pytest.raises(DeliveryFailed, match=f"answered {status}") as failed,
    ):
        await call_webhook(server.url, "", BODY)

    assert failed.value.final is final


async def test_a_redirect_is_not_followed() -> None:
    """The document would go to a host that the settings do not name."""
    with WebhookServer() as other, WebhookServer(lambda _number: 302) as server:
        server.redirect_to = other.url
        with pytest.raises(DeliveryFailed, match="answered 302") as failed:
            await call_webhook(server.url, "", BODY)

    assert failed.value.final
    assert other.bodies == []
    assert server.methods == ["POST"]


async def test_an_unreachable_webhook_is_tried_again() -> None:
    """Nothing listens there at the moment."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        with pytest.raises(DeliveryFailed, match="refused") as failed:
            await call_webhook(f"http://127.0.0.1:{port}/", "", BODY)

    assert not failed.value.final


async def test_a_webhook_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not keep the documents after this one waiting."""
    monkeypatch.setattr(module, "WEBHOOK_SECONDS", 0.05)
    with WebhookServer(lambda _number: 0) as server, pytest.raises(DeliveryFailed, match="time"):
        await call_webhook(server.url, "", BODY)


def test_names_of_targets_show_nothing_secret() -> None:
    """The key of a webhook is often in its path, and warnings are copied into tickets."""
    webhook = build_target({"on": [], "webhook": "https://hooks.example/T0/secret?x=1"})
    program = build_target({"on": [], "command": ["notify", "--key", "secret"]})

    assert (webhook.name, program.name) == ("webhook hooks.example", "program 'notify'")


def test_nothing_is_sent_unsigned_by_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable may be missing in a cron job."""
    monkeypatch.delenv("HOOK_SECRET", raising=False)

    with pytest.raises(ConfigError, match="HOOK_SECRET is not set"):
        build_target({"on": ["ended"], "webhook": "http://x/", "secret_env": "HOOK_SECRET"})
