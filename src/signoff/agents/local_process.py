"""The loaded local model: one child process that handles one request at a time.

Requests are queued for one worker thread, so no event loop is ever blocked. To stop an
answer the child is killed: nothing less ends native code that works on a long prompt. The
next request starts another child, which takes half a second.
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

_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The variables that a model needs; keys are not among them."""

_MAX_ERROR_BYTES = 20_000
_ERROR = re.compile(r"[\d.]+ E (.+)")
"""The library's log format: time, a letter for the level, and the message."""


OnMessage = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class LoadOptions:
    """What a child loads; requests with equal options share a child."""

    path: str
    context: int
    """How many tokens prompt and answer may have together."""
    threads: int


@dataclass(eq=False)
class LocalRequest:
    """One request, and the callbacks for its progress."""

    load: LoadOptions
    body: dict[str, Any]
    """In the format of chat completions."""
    on_start: OnMessage
    """Gets the process that answers, when the request leaves the queue."""
    on_chunk: OnMessage
    """Gets every chunk of the answer."""
    cancelled: bool = False


class ModelQueue:
    """Queues requests for one child process."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="signoff-local")
        self._child: ModelProcess | None = None
        self._lock = threading.Lock()
        self._running: LocalRequest | None = None
        """The request that the child is working on."""

    def submit(self, request: LocalRequest) -> Future[None]:
        """Adds a request to the end of the queue."""
        return self._worker.submit(self._run, request)

    def cancel(self, request: LocalRequest) -> None:
        """Stops a request; returns when nothing of it is running any more."""
        with self._lock:
            request.cancelled = True
            # The child may already be working for the next request in the queue.
            if self._running is request and self._child is not None:
                self._child.end()

    def close(self) -> None:
        """Ends the child; called by the worker thread, or after it has ended."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _run(self, request: LocalRequest) -> None:
        # The lock makes the check and the start one step: a request is either cancelled before
        # it reaches the child, or `cancel` finds it running and ends the child.
        with self._lock:
            if request.cancelled:
                return
            child = self._start_child(request.load)
            self._running = request
        request.on_start(child.process)
        try:
            child.ask(request.body, request.on_chunk)
        finally:
            with self._lock:
                self._running = None

    def _start_child(self, load: LoadOptions) -> ModelProcess:
        """Returns the child with these options; only one exists at a time, to save memory."""
        if self._child is None or self._child.load != load or not self._child.alive:
            self.close()
            try:
                self._child = ModelProcess(load)
            except OSError as error:
                raise AgentTransient(f"the local model cannot be started: {error}") from error
        return self._child


@lru_cache(maxsize=1)
def model_queue() -> ModelQueue:
    """Returns the queue of this process."""
    queue = ModelQueue()
    atexit.register(queue.close)
    return queue


class ModelProcess:
    """A child process with a loaded model."""

    def __init__(self, load: LoadOptions) -> None:
        self.load = load
        self._errors: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed by `close`
        self._errors_start = 0
        """Where the error output of the current request starts."""
        self._folder = str(make_scratch_folder())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "signoff.agents.local_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            start_new_session=True,
            text=True,
            encoding="utf-8",
        )
        self._send({**asdict(load), "folder": self._folder})

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def process(self) -> dict[str, Any]:
        """Its pid and start time, by which it is found again if this process dies first."""
        return {"pid": self._process.pid, "born": birth_of(self._process.pid) or ""}

    def ask(self, body: dict[str, Any], on_chunk: OnMessage) -> None:
        """Returns when the answer is complete; raises an `AgentError` otherwise."""
        self._send(body)
        for message in self._messages():
            if "chunk" in message:
                on_chunk(message["chunk"])
            elif "end" in message:
                self._errors_start = os.fstat(self._errors.fileno()).st_size
                return
            else:
                raise self._reported_error(message)
        raise self._exit_error()

    def end(self) -> None:
        """Kills the process and waits for its end; harmless when it has ended."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Kills the process and closes its pipes; not while a request is running."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            # Closing flushes unsent input, which fails because the process is gone.
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]  # Popen opened all of them

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101  # Popen opened it
        # A process that has ended is noticed when its answer is missing.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None  # noqa: S101  # Popen opened it
        for line in self._process.stdout:
            yield json.loads(line)

    def _reported_error(self, message: dict[str, Any]) -> AgentError:
        reason = message["raised"]
        if message.get("while") == "loading":
            # The library raises the same text for every file; its log has the cause.
            return AgentBadRequest(f"{self.load.path} cannot be loaded ({self._log() or reason})")
        return AgentBadRequest(f"the local model does not accept the request: {reason:.300}")

    def _exit_error(self) -> AgentError:
        code = self._process.wait()
        cause = f"by signal {-code}" if code < 0 else f"with code {code}"
        log = self._log()
        return AgentTransient(f"the local model's process ended {cause}{log and f': {log}'}")

    def _log(self) -> str:
        """Returns the library's first error for the request, or the last line of its output."""
        output = os.pread(self._errors.fileno(), _MAX_ERROR_BYTES, self._errors_start)
        lines = output.decode("utf-8", "replace").strip().splitlines()
        errors = [match[1] for line in lines if (match := _ERROR.match(line))]
        return (errors[:1] or lines[-1:] or [""])[0].strip()[:300]


def _environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # The child must find the same packages, whatever put them on this process's path.
    return {**inherited, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
