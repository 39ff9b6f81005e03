"""An Ollama server that answers writers and reviewers of pairs by their prompts."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.agent_harness import Behavior, TextReply
from tests.stubs.model_server import Heard
from tests.stubs.ollama import OllamaServer

MODEL = "stub-small:1b"

Answers = Callable[[str], Behavior]


class PairServer(OllamaServer):
    """Answers by prompt; remembers what it was asked, and how much at once."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answers = lambda _prompt: TextReply("SHIP IT!")
        self.listing: tuple[int, Mapping[str, Any]] | None = None
        """What it answers instead of the list of its models."""
        self.most_at_once = 0
        self._at_once = 0

    async def start(self) -> None:
        await super().start()
        self._behaviors.append(TextReply(""))

    async def _behave(self, behavior: Behavior, heard: Heard, *streams: Any) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(0.01)  # so that calls that may overlap do
            await super()._behave(self.answer(self.question(heard).prompt), heard, *streams)
        finally:
            self._at_once -= 1

    def about(self, heard: Heard) -> tuple[int, Mapping[str, Any]]:
        is_listed = heard.path == "/api/tags"
        return self.listing if is_listed and self.listing else super().about(heard)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of all questions to a model."""
        return [heard.body for heard in self.heard if self.is_question(heard)]

    @property
    def written(self) -> int:
        """How often a writer was asked."""
        return sum(_is_for_writer(body["messages"][-1]["content"]) for body in self.asked)


def script(*turns: tuple[Any, Any]) -> Answers:
    """Returns a server's answers: for each turn what the writer gets, and the reviewer."""
    writes, reviews = [list(each) for each in zip(*turns, strict=True)]

    def answer(prompt: str) -> Behavior:
        replies = writes if _is_for_writer(prompt) else reviews
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return TextReply(reply) if isinstance(reply, str) else reply

    return answer


@contextmanager
def served() -> Iterator[PairServer]:
    """Serves in a thread of its own, for tests that wait for other processes."""
    server, loop = PairServer(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _is_for_writer(prompt: str) -> bool:
    return "Create a slogan for: " in prompt
