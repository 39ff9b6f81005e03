"""A real model on this machine, without any account: small, free, and always the same.

Its weights are fetched once (`signoff models pull`); `signoff[local]` brings what runs them.
It writes a sentence or two and keeps to a JSON schema, but it judges nothing: give it small
writing jobs and let checks judge. Equal questions get equal answers, by a fixed seed; ask
with `options={"seed": ...}` for another one. With `vary` every call of a run has a seed
of its own, always the same one, so that a second try is another text.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

from signoff.agents.answer import (
    ModelAnswer,
    StreamedText,
    judge,
    replace_lone_surrogates,
    token_count,
)
from signoff.agents.base import Health
from signoff.agents.local_process import Load, LocalRequest, desk
from signoff.agents.options import positive_seconds
from signoff.agents.weights import SMOLLM2, ModelCache, State, Weights, model_cache
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import (
    AgentBadRequest,
    AgentError,
    AgentTimeout,
    AgentTransient,
    ConfigError,
    ModelMissing,
)
from signoff.remedies import Install, PullModel, Remedy
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.ports import Call, Capabilities

EXTRA = "local"
"""What brings the program that runs models."""

SEED = 1
TEMPERATURE = 0.2
"""Low: a model this small loses its thread when it is given more freedom."""

CONTEXT = 4096
"""Tokens; reading takes time that grows with their square, minutes beyond this."""

MAX_TOKENS = 512

MOST_THREADS = 4
"""A model this small gains nothing from more."""

_OPTIONS = frozenset(
    "frequency_penalty max_tokens min_p presence_penalty repeat_penalty seed stop temperature "
    "top_k top_p".split()
)

_FREE = Usage(usd=0.0)
"""What a call cost that never said how many tokens it took."""


class LocalModel:
    """A small model in a process beside this one, asked one thing at a time."""

    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        free=True,
        model_family="smollm",
    )

    def __init__(
        self,
        *,
        model: str = SMOLLM2.name,
        context: int = CONTEXT,
        max_tokens: int = MAX_TOKENS,
        temperature: float = TEMPERATURE,
        seed: int = SEED,
        threads: int | None = None,
        timeout: float = 600.0,
        vary: bool = False,
    ) -> None:
        """Takes a name of `signoff models list`, or the path of a .gguf file of one's own."""
        self._model = model
        self._context = _whole("context", context)
        self._threads = None if threads is None else _whole("threads", threads)
        self._timeout = positive_seconds("timeout", timeout)
        self._vary = vary
        self._options = {
            "max_tokens": _whole("max_tokens", max_tokens),
            "temperature": _number("temperature", temperature),
            "seed": _whole("seed", seed, least=0),
        }

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, or raises one of the `AgentError` family."""
        name = request.model or self._model
        body = self._body(request)
        if self._vary and "seed" not in request.options:
            body["seed"] += _place(call)
        load = Load(str(self._file(name)), self._context, self._threads or _half_the_cores())
        try:
            answer = await self._answer(load, body, _LocalReply(name, call.emit), call)
        except (AgentTimeout, AgentTransient) as error:
            raise with_usage(error, _FREE) from error.__cause__
        return judge(answer, request.schema)

    async def health(self) -> Health:
        """Looks whether what runs the model, and the model, are there."""
        try:
            path = self._file(self._model)
        except AgentError as error:
            steps: list[Remedy] = [Install(EXTRA)] if find_spec("xllamacpp") is None else []
            weights = _cache().catalogue.get(self._model)
            if weights is not None and _cache().state(weights) is not State.READY:
                steps.append(PullModel(weights.name))
            return Health(ready=False, detail=str(error), remedies=tuple(steps))
        known = _cache().catalogue.get(self._model)
        detail = f"{known.name}, {known.summary}" if known else str(path)
        return Health(ready=True, detail=detail)

    async def models(self) -> list[str]:
        """Returns the models that are on this machine."""
        return _ready(_cache())

    async def _answer(
        self, load: Load, body: dict[str, Any], said: _LocalReply, call: Call
    ) -> ModelAnswer:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as clock:

                def begin(process: dict[str, Any]) -> None:
                    if not asked.done():
                        call.started(process)
                        # Waiting in line is nobody's fault: the clock runs from here.
                        clock.reschedule(loop.time() + self._timeout)

                turn, answered = desk().submit(
                    LocalRequest(load, body, _on(loop, begin), _on(loop, said.take))
                )
                asked = asyncio.wrap_future(answered)
                try:
                    await asked
                finally:
                    if asked.cancelled():
                        turn.end()
        except TimeoutError:
            raise AgentTimeout(
                f"the local model gave no answer within {self._timeout:g} seconds and was stopped; "
                "ask for less, or raise timeout"
            ) from None
        return said.answer()

    def _file(self, name: str) -> Path:
        """Returns the weights; raises `AgentBadRequest` with the remedy when they are no use."""
        if find_spec("xllamacpp") is None:
            raise AgentBadRequest("what runs local models is not installed", remedy=Install(EXTRA))
        cache = _cache()
        weights = cache.catalogue.get(name)
        if weights is not None:
            return _in_cache(cache, weights)
        # Only the settings name files: a request may come from a workflow of somebody else.
        if name == self._model and name.endswith(".gguf"):
            path = Path(name).expanduser()
            if path.is_file():
                return path
            raise AgentBadRequest(f"there is no file {path} (model: in the settings)")
        raise ModelMissing(
            f"there is no local model {name!r}", model=name, available=cache.catalogue
        )

    def _body(self, request: AgentRequest) -> dict[str, Any]:
        if request.edit:
            raise AgentBadRequest(
                "a local model answers in words and cannot edit files; "
                "ask a command-line agent (claude, codex, gemini)"
            )
        wrong = sorted(set(request.options) - _OPTIONS)
        if wrong:
            known = ", ".join(sorted(_OPTIONS))
            raise AgentBadRequest(f"a local model has no option {wrong[0]!r} (options: {known})")
        body = {
            "messages": _messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._options,
            **request.options,
        }
        if request.schema is not None:
            named = {"name": "answer", "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body


class _LocalReply:
    """What the model says, put together from its pieces."""

    def __init__(self, model: str, emit: Callable[[str], None]) -> None:
        self._model = model
        self._text = StreamedText(emit)
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> None:
        """Takes the next piece."""
        self._error = chunk.get("error") or self._error
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            self._text.add((choice.get("delta") or {}).get("content"))
            self._finish = choice.get("finish_reason") or self._finish

    def answer(self) -> ModelAnswer:
        """Returns it all; raises what the model's runner complained about."""
        if self._error is not None:
            raise _refusal(self._error)
        usage = Usage(
            token_count(self._usage.get("prompt_tokens")),
            token_count(self._usage.get("completion_tokens")),
            usd=0.0,
            model=self._model,
        )
        cut_off = self._finish != "stop"
        return ModelAnswer(self._text.text, self._finish, cut_off=cut_off, usage=usage)


def _place(call: Call) -> int:
    """Returns a number for where in its run a call stands; the name of the run is not in it."""
    place = (call.step, call.visit, call.step_attempt, call.effect, call.attempt)
    return crc32(repr(place).encode()) >> 1


def _on(
    loop: asyncio.AbstractEventLoop, take: Callable[[dict[str, Any]], None]
) -> Callable[[dict[str, Any]], None]:
    """Returns a way to have something taken on the loop's own thread."""

    def hand_over(thing: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(take, thing)

    return hand_over


def _messages(request: AgentRequest) -> list[dict[str, str]]:
    system = [{"role": "system", "content": replace_lone_surrogates(request.system or "")}]
    user = {"role": "user", "content": replace_lone_surrogates(request.prompt)}
    return [*(system if request.system else ()), user]


def _refusal(error: dict[str, Any]) -> AgentError:
    message = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        return AgentBadRequest(
            f"the prompt has {error.get('n_prompt_tokens')} tokens and the local model reads at "
            f"most {error.get('n_ctx')}; send less, or raise context in the settings"
        )
    code = error.get("code")
    asked_wrong = isinstance(code, int) and 400 <= code < 500
    kind = AgentBadRequest if asked_wrong else AgentTransient
    return kind(f"the local model could not answer: {message:.300}")


def _in_cache(cache: ModelCache, weights: Weights) -> Path:
    state = cache.state(weights)
    if state is State.READY:
        return cache.path(weights)
    wrong = "damaged" if state is State.DAMAGED else "not on this machine"
    problem = f"the weights of {weights.name} are {wrong}"
    pull = PullModel(weights.name)
    raise ModelMissing(problem, model=weights.name, available=_ready(cache), remedy=pull)


def _ready(cache: ModelCache) -> list[str]:
    return [name for name, each in cache.catalogue.items() if cache.state(each) is State.READY]


def _cache() -> ModelCache:
    return model_cache(os.environ)


def _half_the_cores() -> int:
    """Returns how many threads do well beside other work: they wait for each other, busily."""
    return min(MOST_THREADS, max(1, (os.cpu_count() or 1) // 2))


def _whole(name: str, value: int, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}; it is a whole number of at least {least}")
    return value


def _number(name: str, value: float) -> float:
    right = isinstance(value, int | float) and not isinstance(value, bool)
    if not right or not 0 <= value < math.inf:
        raise ConfigError(f"{name} is {value!r}; it is a number of at least 0")
    return float(value)
