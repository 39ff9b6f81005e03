"""A real model on this machine, without an account: small, free and deterministic.

Its weights are downloaded once (`signoff models pull`); `signoff[local]` installs the runner.
The model writes a sentence or two and follows a JSON schema, but it cannot judge: give it
small writing tasks and let checks judge. The seed is fixed, so equal requests get equal
answers; use `options={"seed": ...}` for another answer. With `vary` each call of a run has
its own fixed seed, so that a retry gives another text.

Loading it takes half a second. It runs as a program, because only a process can be ended while
native code reads a long prompt, and because its crash must not end a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

from signoff.agents.answer import (
    ChatCompletion,
    ModelAnswer,
    chat_messages,
    judge,
    refuse_edits,
)
from signoff.agents.base import Health, non_negative, positive_seconds, whole_number
from signoff.agents.headless import MAX_OUTPUT_BYTES, Job, LineSplitter, run_program
from signoff.agents.weights import CATALOG, SMOLLM2, ModelCache, State, model_cache
from signoff.core.effects import AgentRequest, CommandResult, Reply
from signoff.core.errors import (
    AgentBadRequest,
    AgentError,
    AgentTimeout,
    AgentTransient,
    ModelMissing,
)
from signoff.core.remedies import Install, PullModel, Remedy
from signoff.core.spend import Usage
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.environment import program_environment
from signoff.runtime.owner import scratch_folder
from signoff.runtime.ports import Call, Capabilities

EXTRA = "local"
"""The extra that installs the runner."""

SEED = 1
TEMPERATURE = 0.2
"""Low, because a model this small loses its thread at higher temperatures."""

CONTEXT = 4096
"""Tokens. The time to read a prompt grows with their square: minutes beyond this."""

MAX_TOKENS = 512

MAX_THREADS = 4
"""A model this small gains nothing from more."""

_OPTIONS = frozenset(
    "frequency_penalty max_tokens min_p presence_penalty repeat_penalty seed stop temperature "
    "top_k top_p".split()
)

_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What native code needs besides the variables that every program gets."""

_ERROR = re.compile(r"[\d.]+ E (.+)")
"""The library's log format: time, a letter for the level, and the message."""

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

_FREE = Usage(usd=0.0)
"""The usage of a failed call, whose token count is unknown."""


@dataclass(kw_only=True, eq=False)
class LocalModel:
    """A small model; each request loads it in a process of its own, one at a time."""

    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        free=True,
        length_option="max_tokens",
        provider="llama.cpp",
        chat=True,
        judges=False,
    )

    model: str = SMOLLM2.name
    """A model of `signoff models list`, or the path of a .gguf file."""
    context: int = CONTEXT
    """The size of the context window in tokens."""
    max_tokens: int = MAX_TOKENS
    temperature: float = TEMPERATURE
    seed: int = SEED
    threads: int | None = None
    timeout: float = 600.0
    vary: bool = False
    """Whether each call of a run has its own seed."""

    def __post_init__(self) -> None:
        if self.model not in CATALOG:
            # A file of the user's own may hold a model of any size.
            self.capabilities = replace(self.capabilities, judges=True)
        whole_number("context", self.context)
        whole_number("max_tokens", self.max_tokens)
        whole_number("seed", self.seed, minimum=0)
        non_negative("temperature", self.temperature)
        positive_seconds("timeout", self.timeout)
        if self.threads is not None:
            whole_number("threads", self.threads)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the answer; raises an `AgentError` when there is none."""
        name = request.model or self.model
        body = self._body(request)
        if self.vary and "seed" not in request.options:
            body["seed"] += _seed_offset(call)
        path = self._weights_file(name)
        try:
            answer = await self._answer(name, path, body, call)
        except (AgentTimeout, AgentTransient) as error:
            raise with_usage(error, _FREE) from error.__cause__
        return judge(answer, request.schema)

    async def health(self) -> Health:
        """Checks that the runner and the weights are installed."""
        cache = _cache()
        weights = cache.catalog.get(self.model)
        try:
            path = self._weights_file(self.model)
        except AgentError as error:
            remedies: list[Remedy] = [Install(EXTRA)] if find_spec("xllamacpp") is None else []
            if weights is not None and cache.state(weights) is not State.READY:
                remedies.append(PullModel(weights.name))
            return Health(ready=False, detail=str(error), remedies=tuple(remedies))
        detail = f"{weights.name}, {weights.summary}" if weights else str(path)
        return Health(ready=True, detail=detail)

    async def models(self) -> list[str]:
        """Returns the models on this machine."""
        return _ready_models(_cache())

    async def _answer(
        self, model: str, path: Path, body: dict[str, Any], call: Call
    ) -> ModelAnswer:
        completion = ChatCompletion(model, call.emit)
        raised: dict[str, Any] = {}
        failures: list[AgentError] = []

        def read(line: str) -> None:
            message = json.loads(line)
            chunk = message.get("chunk", {})
            if "raised" in message or chunk.get("error"):
                raised.update(message)
                failures.append(_failure(message))
            else:
                # The runner's ids and file names differ from call to call and between machines.
                completion.add({**chunk, "id": None, "model": None})

        # The time in the queue does not count: the limit of the program starts with it.
        async with _turn():
            result = await self._run(path, body, call, read)
        log = _log_of(result.stderr)
        if raised.get("while") == "loading":
            # The library raises the same text for every file; its log has the cause.
            raise AgentBadRequest(f"{path} cannot be loaded ({log or raised['raised']})")
        if failures:
            raise failures[-1]
        if result.code != 0:
            cause = f"by signal {-result.code}" if result.code < 0 else f"with code {result.code}"
            raise AgentTransient(f"the local model's process ended {cause}{log and f': {log}'}")
        return replace(completion.answer(usd=0.0), cut_off=completion.finish != "stop")

    async def _run(
        self, path: Path, body: dict[str, Any], call: Call, read: Callable[[str], None]
    ) -> CommandResult:
        with scratch_folder() as scratch:
            load = {
                "path": str(path),
                "context": self.context,
                # Half the cores: threads of the runner busy-wait, which would slow other work.
                "threads": self.threads or min(MAX_THREADS, max(1, (os.cpu_count() or 1) // 2)),
                "folder": str(scratch),
                "parent": os.getpid(),
                "body": body,
            }
            argv = [sys.executable, "-P", "-m", "signoff.agents.local_child"]
            stdin = json.dumps(load)
            # The child must find the same packages, whatever put them on this process's path.
            packages = os.pathsep.join(path for path in sys.path if path)
            environment = program_environment(_LIBRARY_PATHS, {"PYTHONPATH": packages})
            job = Job(argv, str(Path.cwd()), environment, self.timeout, stdin)
            try:
                return await run_program(
                    job, call, LineSplitter(read, MAX_OUTPUT_BYTES).add, lambda _chunk: None
                )
            except AgentTimeout:
                raise AgentTimeout(
                    f"the local model gave no answer within {self.timeout:g} seconds and was "
                    "stopped; ask for less, or raise timeout"
                ) from None

    def _weights_file(self, name: str) -> Path:
        """Returns the path of the weights; raises `AgentBadRequest` when they are unusable."""
        if find_spec("xllamacpp") is None:
            message = "the runner for local models is not installed"
            raise AgentBadRequest(message, remedy=Install(EXTRA))
        cache = _cache()
        weights = cache.catalog.get(name)
        if weights is not None:
            state = cache.state(weights)
            if state is State.READY:
                return cache.path(weights)
            problem = "damaged" if state is State.DAMAGED else "not on this machine"
            raise ModelMissing(
                f"the weights of {name} are {problem}",
                model=name,
                available=_ready_models(cache),
                remedy=PullModel(name),
            )
        # Only the settings may name a file: a request may come from someone else's workflow.
        if name == self.model and name.endswith(".gguf"):
            path = Path(name).expanduser()
            if path.is_file():
                return path
            raise AgentBadRequest(f"{path} does not exist (model: in the settings)")
        raise ModelMissing(f"unknown local model {name!r}", model=name, available=cache.catalog)

    def _body(self, request: AgentRequest) -> dict[str, Any]:
        refuse_edits(request, "a local model")
        unknown = sorted(set(request.options) - _OPTIONS)
        if unknown:
            valid = ", ".join(sorted(_OPTIONS))
            raise AgentBadRequest(f"a local model has no option {unknown[0]!r} (options: {valid})")
        system = replace_lone_surrogates(request.system or "")
        body = {
            "messages": chat_messages(system, replace_lone_surrogates(request.prompt)),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            **request.options,
        }
        if request.schema is not None:
            named = {"name": "answer", "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body


def _seed_offset(call: Call) -> int:
    """Returns a number for the call's position in its run, independent of the run's name."""
    position = (call.step, call.visit, call.step_attempt, call.effect, call.attempt)
    return crc32(repr(position).encode()) >> 1


def _failure(message: dict[str, Any]) -> AgentError:
    """Returns the error that the child reports: what the library raised, or has answered."""
    if "raised" in message:
        reason = message["raised"]
        return AgentBadRequest(f"the local model does not accept the request: {reason:.300}")
    error = message["chunk"]["error"]
    if error.get("type") == "exceed_context_size_error":
        return AgentBadRequest(
            f"the prompt has {error.get('n_prompt_tokens')} tokens and the local model reads at "
            f"most {error.get('n_ctx')}; send less, or raise context: in the settings"
        )
    code = error.get("code")
    is_client_error = isinstance(code, int) and 400 <= code < 500
    kind = AgentBadRequest if is_client_error else AgentTransient
    return kind(f"the local model could not answer: {error.get('message', error)!s:.300}")


def _log_of(output: str) -> str:
    """Returns the library's first error, or the last line of what it printed."""
    lines = output.strip().splitlines()
    errors = [match[1] for line in lines if (match := _ERROR.match(line))]
    return (errors[:1] or lines[-1:] or [""])[0].strip()[:300]


def _turn() -> asyncio.Lock:
    """Returns what lets one request of this event loop at a time load the model.

    Two at once would take the memory of two, and neither would be faster.
    """
    loop = asyncio.get_running_loop()
    return _turns.setdefault(loop, asyncio.Lock())


def _ready_models(cache: ModelCache) -> list[str]:
    return [name for name, each in cache.catalog.items() if cache.state(each) is State.READY]


def _cache() -> ModelCache:
    return model_cache(os.environ)
