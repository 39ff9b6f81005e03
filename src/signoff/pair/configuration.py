"""Resolves the configuration of a pair: built-in values, settings, environment, arguments.

Each layer overrides single values of the one before. All mistakes of all layers are reported
together, each with where its value comes from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from signoff.agents.base import KnownAgent
from signoff.agents.ollama import BASE_URL, OllamaModel, parse_ollama_host
from signoff.documents.mistakes import ADVICE, mistakes_of
from signoff.errors import ConfigError, Problem, UnknownName
from signoff.notation import CompileContext
from signoff.pair.errors import ConfigurationError
from signoff.pair.ollama_config import ENVIRONMENT, OllamaConfig
from signoff.pair.presets import OLLAMA, PRESETS
from signoff.pair.settings import SEATS, WRITER, Seat
from signoff.pair.settings_section import (
    AgentName,
    Candidates,
    Checks,
    Keep,
    Reviewers,
    Similarity,
    Strict,
    Verdict,
)
from signoff.review.similarity import ALIKE
from signoff.runtime.ports import Capabilities

C = TypeVar("C", bound=OllamaConfig)

SECTION = "pair"
SERVER_VALUES = ("temperature", "base_url", "request_timeout")
"""What only the Ollama server of the configuration gets."""


_AGENT_OPTIONS = {"model": "model_name", "base_url": "base_url", "timeout": "request_timeout"}


class PairConfig(OllamaConfig):
    """All values of a pair, checked."""

    model_config = ConfigDict(protected_namespaces=())

    preset: Literal["slogan", "text"] = Field(description=f"one of: {', '.join(PRESETS)}")
    task: str = Field(description="a text")
    criteria: str = Field("", description="a text")
    writer: AgentName | None = None
    reviewers: Reviewers | None = None
    checks: Checks = Field(default_factory=list)
    verdict: Verdict | None = None
    strict: Strict = False
    candidates: Candidates = 1
    keep: Keep = "last"
    similarity: Similarity = ALIKE

    @field_validator("reviewers", "checks", mode="before")
    @classmethod
    def _list_from_text(cls, value: Any) -> Any:
        # `signoff run -i` has only texts.
        if not isinstance(value, str):
            return value
        return [each.strip() for each in value.split(",")] if value.strip() else []

    @field_validator("task")
    @classmethod
    def _is_a_task(cls, task: str, info: ValidationInfo) -> str:
        preset = PRESETS.get(info.data.get("preset", ""))
        longest = preset.longest_task if preset is not None else None
        length = len(task.strip())
        if length == 0:
            raise PydanticCustomError(ADVICE, "say what to write")
        if longest is not None and length > longest:
            why = f"it has {length:,} characters; use 1 to {longest}"
            raise PydanticCustomError(ADVICE, "{why}", {"why": why})
        return task.strip()


class HasOptions(Protocol):
    """An agent's settings."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of its kind."""


class _Given(NamedTuple):
    """A value, and where it comes from."""

    value: Any
    origin: str


def get_ollama_config() -> OllamaConfig:
    """Returns the configuration of the Ollama server; a fresh value each time.

    It comes from the settings of the project around the current folder and the environment.
    """
    from signoff.app.home import find_home
    from signoff.app.settings import load_settings
    from signoff.app.trust import check_trust

    home = find_home(Path.cwd(), os.environ)
    settings = load_settings(home, os.environ)
    if home is not None:
        check_trust(home, settings)
    return resolve_ollama(settings.sections, settings.agents.get(OLLAMA))


def resolve_ollama(
    sections: Mapping[str, Mapping[str, Any]], agent: HasOptions | None
) -> OllamaConfig:
    """Returns the configuration of the Ollama server; `agent` is the one of that name."""
    layers = _layers(sections, agent, {})
    given = {name: each for name, each in layers.items() if name in OllamaConfig.model_fields}
    return _validated(OllamaConfig, given)


def resolve_settings(
    preset: str, params: Mapping[str, Any], context: CompileContext
) -> dict[str, Any]:
    """Returns the settings of a pair as data; raises `ConfigurationError` with all mistakes."""
    given = {name: value for name, value in params.items() if value is not None}
    layers = _layers(context.settings, context.agents.get(OLLAMA), given)
    config = _validated(PairConfig, {"preset": _Given(preset, "preset"), **layers})
    seats = _Seats(config, {*layers}, {*given}, context)
    if problems := list(seats.problems()):
        raise ConfigurationError(problems)
    chosen = config.model_dump()
    chosen["verdict"] = config.verdict or PRESETS[preset].verdict
    chosen["writer"] = seats.writer
    chosen["reviewers"] = seats.reviewers
    if not seats.use_server:
        chosen |= dict.fromkeys((*SERVER_VALUES, "model_name"))
        chosen["model_name"] = given.get("model_name")
    writer, *reviewers = (seat.to_json() for seat in seats.seats())
    return {**chosen, SEATS: {WRITER: writer, "reviewers": reviewers}}


def may_ask_another(preset: str, params: Mapping[str, Any], context: CompileContext) -> bool:
    """Whether a pair would ask the Ollama server although no one has chosen it."""
    chosen = chosen_options(params, context)
    return PRESETS[preset].agent == OLLAMA and not {WRITER, "base_url", "model_name"} & chosen


def chosen_options(params: Mapping[str, Any], context: CompileContext) -> set[str]:
    """Returns the names of the options that the call, the settings or the environment set."""
    return {*_layers(context.settings, context.agents.get(OLLAMA), params)}


def _layers(
    sections: Mapping[str, Mapping[str, Any]], agent: HasOptions | None, given: Mapping[str, Any]
) -> dict[str, _Given]:
    values: dict[str, _Given] = {}
    with suppress(ConfigError, ValueError):
        if host := os.environ.get("OLLAMA_HOST"):
            values["base_url"] = _Given(parse_ollama_host(host), "environment OLLAMA_HOST")
    # What is set for the agent of that name holds for pairs too, unless they have their own.
    for option, name in _AGENT_OPTIONS.items():
        if agent is not None and agent.options.get(option) is not None:
            values[name] = _Given(agent.options[option], f"agents.{OLLAMA}.{option}")
    for name, value in sections.get(SECTION, {}).items():
        if value is not None:
            values[name] = _Given(value, f"{SECTION}.{name}")
    for variable, name in ENVIRONMENT.items():
        if text := os.environ.get(variable, "").strip():
            values[name] = _Given(text, f"environment {variable}")
    return values | {name: _Given(value, name) for name, value in given.items()}


def _validated(model: type[C], given: Mapping[str, _Given]) -> C:
    try:
        return model.model_validate({name: each.value for name, each in given.items()})
    except ValidationError as error:
        # An argument is its own origin, and the mistake names it already.
        origins = {name: each.origin for name, each in given.items() if each.origin != name}
        mistakes = mistakes_of(error, model)
        problems = [
            each.problem(lambda path: origins.get(str(path[0]), "") if path else "")
            for each in mistakes
        ]
        raise ConfigurationError(problems) from error


class _Seats:
    """Chooses the agents of a pair and what each one is sent."""

    def __init__(
        self, config: PairConfig, configured: set[str], given: set[str], context: CompileContext
    ) -> None:
        self._config = config
        self._configured = configured
        self._given = given
        self._context = context
        preset = PRESETS[config.preset]
        self.writer = config.writer or preset.agent or context.default_agent
        # Checks add to the reviewer; only an empty list stands for none.
        self.reviewers = [self.writer] if config.reviewers is None else config.reviewers
        parts = [each.partition("=") for each in self.reviewers]
        self._reviewers = [(agent.strip(), specialty.strip()) for agent, _, specialty in parts]
        self._agents = [self.writer, *(agent for agent, _ in self._reviewers)]

    @property
    def use_server(self) -> bool:
        """Whether the Ollama server of the configuration is asked at all."""
        return OLLAMA in self._agents

    def problems(self) -> Iterator[Problem]:
        """Yields what is wrong with the choice of agents."""
        if not self.writer:
            yield Problem("writer", "no agent is named", "name one, and a reviewer")
            return
        if not (self.reviewers or self._config.checks):
            yield Problem("reviewers", "nothing would review the text", "name one, or a check")
        names = self._context.agent_names
        for agent in dict.fromkeys(self._agents):
            if names is not None and agent not in names:
                yield Problem("agents", str(UnknownName("agent", agent, names)))
        yield from self._unable_reviewers()
        for name in SERVER_VALUES if not self.use_server else ():
            if name in self._given:
                yield Problem(name, f"is only for {OLLAMA}", "set it for the agent instead")
        if "model_name" in self._given and len(set(self._agents)) > 1:
            what = f"is ambiguous: the agents are {', '.join(dict.fromkeys(self._agents))}"
            yield Problem("model_name", what, "set the model of each agent in the settings")

    def _unable_reviewers(self) -> Iterator[Problem]:
        for agent in dict.fromkeys(agent for agent, _ in self._reviewers):
            known = self._context.agents.get(agent)
            if isinstance(known, KnownAgent) and not known.capabilities.judges:
                remedy = "it can write a sentence or two; name another, or let only checks review"
                yield Problem("reviewers", f"{agent!r} is too small a model to review", remedy)

    def seats(self) -> Iterator[Seat]:
        """Yields the writer, then the reviewers."""
        yield self._seat(WRITER, self.writer)
        names = _distinct([specialty or agent for agent, specialty in self._reviewers])
        for name, (agent, specialty) in zip(names, self._reviewers, strict=True):
            yield self._seat(name, agent, specialty)

    def _seat(self, name: str, agent: str, specialty: str = "") -> Seat:
        config = self._config
        known = self._context.agents.get(agent)
        uses_server = agent == OLLAMA
        # The server has its options whether or not the caller knows an agent of that name.
        unknown = OllamaModel.capabilities if uses_server else Capabilities()
        can = known.capabilities if isinstance(known, KnownAgent) else unknown
        model = config.model_name if uses_server or "model_name" in self._given else None
        return Seat(
            name=name,
            agent=agent,
            model=model,
            specialty=specialty,
            options=self._options(uses_server, can.length_option),
            timeout=config.request_timeout if uses_server else None,
            takes_schema=can.json_schema,
            takes_seed=can.seeds,
            is_check=can.deterministic,
        )

    def _options(self, uses_server: bool, length_option: str) -> dict[str, Any]:
        """Returns the options of each request to an agent."""
        config, preset = self._config, PRESETS[self._config.preset]
        tokens = config.max_tokens if "max_tokens" in self._configured else preset.max_tokens
        limit = {length_option: tokens} if length_option and tokens is not None else {}
        if not uses_server:
            return limit
        return {BASE_URL: config.base_url, "temperature": config.temperature, **limit}


def _distinct(names: Sequence[str]) -> list[str]:
    """Returns the names, numbered where two are alike."""
    counts: dict[str, int] = {}
    distinct = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        distinct.append(f"{name} {counts[name]}" if counts[name] > 1 else name)
    return distinct
