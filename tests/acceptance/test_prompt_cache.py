"""Critics that share a cached prompt: one goes first, and the bill shows what the cache saved."""

import asyncio
import json
import time
from collections.abc import Iterable

import pytest

from signoff.core.spend import Usage
from tests.acceptance.cli_project import CliProject
from tests.acceptance.flow_project import passing_critique
from tests.agent_harness import TextReply, TruncatedReply
from tests.stubs.anthropic import MIN_CACHED_TOKENS, AnthropicServer
from tests.stubs.model_server import Heard
from tests.unit.agents.programs import program

FLOW = """
goal: {goal}
constraints:
  inline: {{clear: It is clear., short: It is short., "true": It is true.}}
workflow:
  - {{step: generate, name: draft}}
  - {{step: critique, name: review}}
  - {{step: adjudicate, name: judge, agent: policy}}
"""
SETTINGS = """
agents:
  claude:
    kind: anthropic
    model: stub-large
    base_url: {url}
    key_env: STUB_KEY
    price: {{in: 10, out: 100, cached: 1, cache_write: 20}}
"""
INPUT, OUTPUT = 1000, 100
"""The tokens of each call, apart from what is cached."""


class TimedServer(AnthropicServer):
    """Notes when it begins each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[float] = []

    def stream(self, heard: Heard, says: TextReply | TruncatedReply) -> Iterable[str]:
        self.begun.append(time.time())
        yield from super().stream(heard, says)


async def test_one_critic_fills_the_cache_before_the_others_start(project: CliProject) -> None:
    """If all were sent at once, each of them would pay for the artifact in full."""
    project.write("flow.yaml", FLOW.format(goal="Write about the sea. " * 300))
    async with TimedServer() as server:
        project.write(".signoff/config.yaml", SETTINGS.format(url=server.url))
        usage = Usage(INPUT, OUTPUT)
        review = TextReply(passing_critique(), usage)
        await server.set_behaviors(TextReply("The sea is wide.\n", usage), review)
        run = ("run", "flow.yaml", "--name", "one")
        done = await asyncio.to_thread(project.signoff, *run, STUB_KEY="sk-0123456789")
    events = project.json("logs", "one")
    (_, ledger), text = project.json("show", "one")["ledger"], project.signoff("show", "one").stdout

    assert done.returncode == 0, done.stderr
    asked = [each for each in events if each["e"] == "effect_started" and each["kind"] == "ask"]
    first, *others = [each["at"] for each in asked if each["id"].startswith("critics")]
    first_answer = server.begun[1]
    assert first < first_answer
    assert [first_answer < each for each in others] == [True, True]
    written = ledger["tokens_in"] - 3 * INPUT - ledger["tokens_cached"]
    assert written > MIN_CACHED_TOKENS
    assert ledger["tokens_cached"] == 2 * written
    dollars = (3 * INPUT * 10 + written * 20 + 2 * written * 1 + 3 * OUTPUT * 100) / 1_000_000
    assert ledger["usd"] == pytest.approx(dollars)
    assert f"{ledger['tokens_in']:,} in ({2 * written:,} cached) · {3 * OUTPUT} out" in text


CRITIC = """\
import pathlib
folder, kind = pathlib.Path({folder!r}), {kind!r}
if "status" in sys.argv or "--version" in sys.argv:
    sys.exit(print('{{"loggedIn": true}} 9.9.9'))
text = {review!r} if "You review an artifact" in prompt else "The sea is wide."
if "You review an artifact" in prompt:
    (folder / f"{{os.getpid()}}.{{(folder / 'begun').exists()}}").touch()
    if kind == "claude":
        (folder / "begun").touch()
        say(type="stream_event", event={{"type": "message_start"}})
    while len(list(folder.glob("[0-9]*"))) < 3:
        time.sleep(0.01)
if kind == "claude":
    say(type="result", result=text, usage={{"input_tokens": 1, "output_tokens": 1}})
else:
    say(type="item.completed", item={{"type": "agent_message", "text": text}})
    say(type="turn.completed", usage={{"input_tokens": 1, "output_tokens": 1}})
"""


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_critics_never_wait_for_a_whole_first_answer(project: CliProject, kind: str) -> None:
    """One tells that it begins to answer; codex prints whole answers, so all start at once."""
    met = project.folder / "met"
    met.mkdir()
    body = CRITIC.format(folder=str(met), kind=kind, review=passing_critique())
    path = program(project.folder / "bin", kind, body)
    settings = {"version": 1, "agents": {kind: {"kind": kind, "path": path, "timeout": 30}}}
    project.write(".signoff/config.yaml", json.dumps(settings))
    project.write("flow.yaml", FLOW.format(goal="Write about the sea."))

    done = project.signoff("run", "flow.yaml", "--agent", kind, OPENAI_API_KEY="sk-0123456789")

    assert done.returncode == 0, done.stderr
    knew = sorted(each.suffix for each in met.glob("[0-9]*"))
    assert knew == [".False", ".True", ".True"] or kind == "codex"
