"""The one model this process keeps at hand, in a child of its own, asked one thing at a time.

Questions wait in line for one worker thread, so the event loop is never blocked, whichever
loop it is. To stop an answer the child is killed: nothing less ends native code that works
on a long prompt. The next question starts another, which takes half a second.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import IO, Any

from signoff.errors import AgentBadRequest, AgentError, AgentTransient
from signoff.runtime.owner import birth_of
from signoff.runtime.scratch import make_scratch_folder

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All a model needs to know of its surroundings; keys are not among it."""

_MOST_WORDS = 20_000
_ERROR = re.compile(r"[\d.]+ E (.+)")
"""How the library logs: a time, a letter for the weight, who says it, and what."""


@dataclass(frozen=True)
class Load:
    """What a child loads; questions for an equal one go to the same child."""

    path: str
    context: int
    """How many tokens prompt and answer may have together."""
    threads: int


@dataclass(frozen=True)
class LocalRequest:
    """One question, and who hears what is said."""

    load: Load
    body: dict[str, Any]
    """In the form of chat completions."""
    began: Callable[[dict[str, Any]], None]
    """Takes the process that answers, when the turn has come."""
    take: Callable[[dict[str, Any]], None]
    """Takes every piece of the answer."""


class Generation:
    """A question on its way: it waits in line, is answered, and can be ended at any time."""

    def __init__(self, desk: Desk, question: LocalRequest) -> None:
        self._desk = desk
        self._question = question
        self._lock = threading.Lock()
        self._ended = False
        self._child: Child | None = None

    def run(self) -> None:
        """Gets the answer; for the worker thread."""
        question = self._question
        with self._lock:
            if self._ended:
                return
            self._child = self._desk.child(question.load)
        question.began(self._child.process)
        try:
            self._child.ask(question.body, question.take)
        finally:
            with self._lock:
                # From here on it may be answering somebody else.
                self._child = None

    def end(self) -> None:
        """Sees to it that nothing of this is at work any more; returns when that is so."""
        with self._lock:
            self._ended = True
            if self._child is not None:
                self._child.end()


class Desk:
    """Where questions wait in line."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="signoff-local")
        self._child: Child | None = None

    def submit(self, question: LocalRequest) -> tuple[Generation, Future[None]]:
        """Puts a question at the end of the line."""
        turn = Generation(self, question)
        return turn, self._worker.submit(turn.run)

    def child(self, load: Load) -> Child:
        """Returns the child that has this loaded; there is one at a time, for memory's sake."""
        if self._child is None or self._child.load != load or not self._child.alive:
            self.close()
            try:
                self._child = Child(load)
            except OSError as error:
                raise AgentTransient(f"the local model cannot be started: {error}") from error
        return self._child

    def close(self) -> None:
        """Ends the child; for the worker thread, or when that is done."""
        if self._child is not None:
            self._child.close()
            self._child = None


@lru_cache(maxsize=1)
def desk() -> Desk:
    """Returns this process's desk."""
    made = Desk()
    atexit.register(made.close)
    return made


class Child:
    """A process with a model in it."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self._errors: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed by `close`
        self._heard = 0
        """How much of its errors belongs to questions that were answered."""
        self._place = str(make_scratch_folder())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "signoff.agents.local_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_surroundings(),
            start_new_session=True,
            text=True,
            encoding="utf-8",
        )
        self._send({**asdict(load), "place": self._place})

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    @property
    def process(self) -> dict[str, Any]:
        """Its number and birth, by which it is found again should we die first."""
        return {"pid": self._process.pid, "born": birth_of(self._process.pid) or ""}

    def ask(self, body: dict[str, Any], take: Callable[[dict[str, Any]], None]) -> None:
        """Asks, and returns when everything was said; raises an `AgentError` otherwise."""
        self._send(body)
        for message in self._messages():
            if "chunk" in message:
                take(message["chunk"])
            elif "end" in message:
                self._heard = os.fstat(self._errors.fileno()).st_size
                return
            else:
                raise self._fault(message)
        raise self._death()

    def end(self) -> None:
        """Kills it and waits until it is gone; harmless when it is."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def close(self) -> None:
        """Ends it and lets its pipes go; not while somebody waits for an answer."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            # What was still to be sent to it cannot be.
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]  # all three were asked for

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it was asked for
        # One that is gone is noticed when it does not answer.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None  # noqa: S101  # it was asked for
        for line in self._process.stdout:
            yield json.loads(line)

    def _fault(self, message: dict[str, Any]) -> AgentError:
        if message.get("while") == "loading":
            return AgentBadRequest(
                f"{self.load.path} cannot be loaded ({self._complaint() or message['raised']})"
            )
        return AgentBadRequest(f"the local model cannot be asked this: {message['raised']:.300}")

    def _death(self) -> AgentError:
        code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        words = self._complaint()
        return AgentTransient(
            f"the local model's process ended {how}{f': {words}' if words else ''}"
        )

    def _complaint(self) -> str:
        """Returns the line of its errors that says what was wrong: the first of the library's."""
        text = os.pread(self._errors.fileno(), _MOST_WORDS, self._heard).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [match[1] for line in lines if (match := _ERROR.match(line))]
        return (errors[:1] or lines[-1:] or [""])[0][:300]


def _surroundings() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The child finds the same packages as we do, however they came to be found.
    return {**kept, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
