"""The small model itself: its pinned weights, and the library that runs it."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.local import LocalModel
from signoff.agents.weights import SMOLLM2, model_cache
from signoff.core.effects import AgentRequest, EffectId
from signoff.core.errors import AgentBadOutput
from signoff.runtime.owner import birth_of
from signoff.runtime.ports import Call
from tests.agent_harness import ask

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("small_model")]


SENTENCE = "Write one sentence about tea."
FRUITS = {
    "type": "object",
    "properties": {
        "fruits": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3},
        "kind": {"enum": ["sweet", "sour"]},
    },
    "required": ["fruits", "kind"],
    "additionalProperties": False,
}


def test_the_weights_are_the_pinned_ones() -> None:
    """Otherwise the other tests would prove something about another model."""
    assert model_cache(os.environ).is_intact(SMOLLM2)


async def test_it_answers_and_streams() -> None:
    """It is what new users without an account run first."""
    pieces: list[str] = []

    reply = await LocalModel().ask(AgentRequest(SENTENCE), call(emit=pieces.append))

    assert "tea" in reply.text.lower()
    assert (reply.finish, "".join(pieces)) == ("stop", reply.text)
    assert len(pieces) > 5
    usage = reply.usage
    assert usage is not None
    assert (usage.usd, usage.model) == (0.0, "smollm2-135m")
    assert (usage.tokens_in or 0) > 5
    assert (usage.tokens_out or 0) > 5


async def test_it_keeps_to_a_schema() -> None:
    """The grammar holds it to the form, so even a model this small fills a form."""
    reply = await ask(LocalModel(), "Name three fruits.", schema=FRUITS)

    assert set(reply.value) == {"fruits", "kind"}
    assert reply.value["kind"] in {"sweet", "sour"}


async def test_equal_questions_get_equal_answers() -> None:
    """Even with other requests in between: each has a process of its own."""
    agent = LocalModel(temperature=0.8)
    first = await ask(agent, SENTENCE)
    await ask(agent, "Write one sentence about rain.")
    again = await ask(agent, SENTENCE)

    other = await ask(agent, SENTENCE, options={"seed": 8})

    assert first.text == again.text
    assert other.text != first.text


async def test_it_stops_reading_a_long_prompt_when_cancelled() -> None:
    """Native code cannot be interrupted, so its process is killed."""
    started_pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(
        LocalModel().ask(
            AgentRequest("word " * 3500),
            call(started=lambda process: started_pid.set_result(process["pid"])),
        )
    )
    pid = await started_pid
    await asyncio.sleep(1.0)  # it has the weights in memory by now, and is at work

    asking.cancel()
    await asyncio.wait({asking})

    assert asking.cancelled()
    assert birth_of(pid) is None
    assert (await ask(LocalModel(), SENTENCE)).text


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="shows no sockets of a process")
async def test_no_other_process_can_use_it() -> None:
    """The library starts an HTTP server by itself, which must not be reachable."""
    pids: list[int] = []
    seen: list[set[str]] = []

    # The process ends with its answer, so it is looked at while a long one streams.
    def look(_piece: str) -> None:
        if not seen:
            seen.append(ports_of(pids[0]))

    with suppress(AgentBadOutput):  # cut off in the end
        await LocalModel().ask(
            AgentRequest("Tell a long story about tea."),
            call(started=lambda process: pids.append(process["pid"]), emit=look),
        )

    assert seen == [set()]


def call(**heard: Any) -> Call:
    return Call("run", EffectId("ask#1"), **heard)


def ports_of(pid: int) -> set[str]:
    """Returns the addresses at which a process listens for connections."""
    links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {link.removeprefix("socket:[").rstrip("]") for link in links if "socket" in link}
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {fields[1] for fields in lines if fields[3] == "0A" and fields[9] in sockets}
