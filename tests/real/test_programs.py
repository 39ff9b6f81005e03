"""The vendors' real programs, each talking to a stub of its API on this machine."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
)
from signoff.runtime.owner import birth_of
from tests.patience import PATIENCE_SECONDS, until
from tests.real.vendors import CODEX, KEY, Vendor
from tests.stubs.vendors import responses
from tests.stubs.vendors.server import Fail, Hang, Say, Turn, VendorStub
from tests.unit.agents.programs import Watcher

pytestmark = [pytest.mark.real, pytest.mark.slow]

Serve = Callable[[Turn], VendorStub]

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["pass", "fail"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


async def test_it_answers(vendor: Vendor, serve: Serve, home: Path) -> None:
    """This covers arguments, prompt, key, stream, result and tokens."""
    stub, watcher = serve(Say("Hello there.")), Watcher()

    reply = await vendor.agent(stub.url, home).ask(
        AgentRequest("Greet the moon.", system="Be brief."), watcher.call
    )

    asked = [heard for heard in stub.heard if stub.wants(heard)]
    assert reply.text == "Hello there."
    assert reply.usage is not None
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (12, 7)
    assert reply.session
    assert "".join(watcher.displayed).strip() == "Hello there."
    # That claude begins to answer is known before its answer is complete.
    assert (watcher.displayed[0] == "") is (vendor.name == "claude")
    assert len(asked) == 1
    assert "Greet the moon." in json.dumps(asked[0].body)
    assert "Be brief." in json.dumps(asked[0].body)
    assert vendor.model in json.dumps([asked[0].path, asked[0].body.get("model")])
    assert KEY in json.dumps(dict(asked[0].headers))


async def test_a_structured_answer_fits(vendor: Vendor, serve: Serve, home: Path) -> None:
    """With the vendor's own support for schemas, if it has one."""
    stub = serve(vendor.structured({"verdict": "pass"}))

    reply = await vendor.agent(stub.url, home).ask(
        AgentRequest("Judge.", schema=SCHEMA), Watcher().call
    )

    assert reply.value == {"verdict": "pass"}


async def test_it_edits_a_file_in_its_workspace(
    vendor: Vendor, serve: Serve, home: Path, place: Path
) -> None:
    """The change is recorded as a diff."""
    stub = serve(vendor.write(place / "new.txt", "hello\n"))

    reply = await vendor.agent(stub.url, home).ask(
        AgentRequest("Write.", workspace=str(place), edit=True), Watcher().call
    )

    assert (place / "new.txt").read_text() == "hello\n"
    assert list(reply.files) == ["new.txt"]
    assert reply.files["new.txt"].endswith("+hello\n")


async def test_it_may_not_edit_elsewhere(
    vendor: Vendor, serve: Serve, home: Path, place: Path
) -> None:
    """The program refuses by its own rules, which is reported although its exit code is 0."""
    elsewhere = place.parent / "elsewhere.txt"
    stub = serve(vendor.write(elsewhere, "hello\n"))

    with pytest.raises(AgentRefused, match=f"{vendor.name} was denied") as raised:
        await vendor.agent(stub.url, home).ask(
            AgentRequest("Write.", workspace=str(place), edit=True), Watcher().call
        )

    assert not elsewhere.exists()
    assert raised.value.usage.tokens_in  # type: ignore[attr-defined]  # set by agents.answer


async def test_it_may_not_edit_files_without_permission(
    vendor: Vendor, serve: Serve, home: Path, place: Path
) -> None:
    """A reviewer must not change what it reviews."""
    stub = serve(vendor.write(place / "new.txt", "hello\n"))

    with pytest.raises(AgentRefused):
        await vendor.agent(stub.url, home).ask(
            AgentRequest("Look.", workspace=str(place)), Watcher().call
        )

    assert not (place / "new.txt").exists()


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (401, "that key is not known here", AgentAuth),
        (429, "too many at once", AgentTransient),
        (500, "broken", AgentTransient),
        (404, "this model was not found", AgentBadRequest),
    ],
)
async def test_a_refusal_raises_the_error_of_the_role_that_must_act(
    vendor: Vendor, serve: Serve, home: Path, status: int, words: str, kind: type[AgentError]
) -> None:
    """The error comes soon, although some programs would retry for minutes."""
    stub = serve(vendor.refusal(status, words))
    began = time.monotonic()

    with pytest.raises(AgentError) as raised:
        await vendor.agent(stub.url, home).ask(AgentRequest("Hi."), Watcher().call)

    assert type(raised.value) is kind
    assert time.monotonic() - began < PATIENCE_SECONDS


async def test_a_cancelled_call_leaves_no_process_and_shows_no_secret(
    vendor: Vendor, serve: Serve, home: Path
) -> None:
    """Every user of a machine can list processes with their arguments."""
    stub, watcher = serve(Hang()), Watcher()
    asked = asyncio.create_task(
        vendor.agent(stub.url, home).ask(AgentRequest("a private matter"), watcher.call)
    )
    await until(lambda: any(map(stub.wants, stub.heard)), "the request of the program")
    pid = watcher.processes[0]["pid"]
    arguments = _arguments(pid)

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert vendor.name in arguments
    assert KEY not in arguments
    assert "a private matter" not in arguments
    assert birth_of(pid) is None


async def test_it_is_found_and_ready(vendor: Vendor, home: Path) -> None:
    """`doctor` reports the version."""
    health = await vendor.agent("http://127.0.0.1:9", home).health()

    assert health.ready, health
    assert health.detail.startswith(f"{vendor.name} ")


@pytest.mark.parametrize("vendor", [CODEX], indirect=True, ids=["codex"])
async def test_an_exhausted_plan_is_recognized(vendor: Vendor, serve: Serve, home: Path) -> None:
    """The run is parked until the stated time."""
    until = int(time.time()) + 7200
    body = responses.failure("usage_limit_reached", "used up", plan_type="plus", resets_at=until)
    stub = serve(Fail(429, body))

    with pytest.raises(AgentQuota) as raised:
        await vendor.agent(stub.url, home).ask(AgentRequest("Hi."), Watcher().call)

    assert raised.value.until is not None
    assert abs(raised.value.until.timestamp() - until) < 120


def _arguments(pid: int) -> str:
    place = Path(f"/proc/{pid}/cmdline")
    return place.read_bytes().replace(b"\0", b" ").decode() if place.exists() else ""
