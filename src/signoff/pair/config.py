"""What a pair goes by: its values, declared once, and the layers that they come from.

Built-in values are overridden by the settings, those by the environment, and that by the call.
All mistakes of all layers are reported together, each with where its value comes from.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from signoff.agents.base import KnownAgent
from signoff.agents.http import parse_base_url
from signoff.agents.ollama import BASE_URL, OllamaModel, parse_ollama_host
from signoff.core.errors import ConfigError, Problem, UnknownName
from signoff.documents.home_folder import FOLDER, VARIABLE
from signoff.documents.mistakes import ADVICE, mistakes_of
from signoff.documents.named_texts import read_texts
from signoff.documents.sections import FileSection
from signoff.notation import CompileContext
from signoff.pair.session import ConfigurationError
from signoff.runtime.ports import Agent, Capabilities

if TYPE_CHECKING:
    from signoff.app.settings.settings import Settings


# The presets of pairs, as data: their defaults; the system prompts are in `presets.md`.


PHRASE_VERDICT = "phrase"
STRUCTURED_VERDICT = "structured"
VERDICTS = (PHRASE_VERDICT, STRUCTURED_VERDICT)

OLLAMA = "ollama"
"""The agent that gets the configuration of pairs: its server, model, temperature and tokens."""

# The reviewers' text names the phrase of `approval_phrase`, word for word: with any other one, no
# reply of theirs would approve.
_TEXTS = read_texts(Path(__file__).with_name("presets.md"))


@dataclass(frozen=True)
class PairPreset:
    """What a pair writes, and how it is asked for and reviewed."""

    name: str
    summary: str
    noun: str
    """What is written."""
    writer_system: str
    reviewer_system: str
    request: str
    """The writer's prompt; `{task}` is what the user wants."""
    review_request: str
    """How the reviewer's prompt begins; `{text}` is what was written."""
    feedback_heading: str
    """What introduces the remarks of the reviewers in the writer's prompt."""
    verdict: str
    """How reviewers decide unless the user chooses: by the phrase, or with an object."""
    agent: str = ""
    """The writer and the reviewer unless the user names some; empty for the project's default."""
    longest_task: int | None = None
    """Characters."""
    longest_text: int | None = None
    """Characters; a longer text is sent back to the writer once."""
    max_tokens: int | None = None
    """Tokens of an answer unless they are configured; None leaves that to the agent."""
    one_paragraph: bool = False
    """Whether only the first paragraph is the text: small models explain it in further ones."""


SLOGAN = PairPreset(
    name="slogan",
    summary="a slogan for a product",
    noun="slogan",
    writer_system=_TEXTS["slogan-writer"],
    reviewer_system=_TEXTS["slogan-reviewer"],
    request="Create a slogan for: {task}",
    review_request="Please review this slogan: {text}",
    feedback_heading="Previous feedback:",
    verdict=PHRASE_VERDICT,
    agent=OLLAMA,
    longest_task=500,
    longest_text=500,
    max_tokens=100,
    one_paragraph=True,
)

TEXT = PairPreset(
    name="text",
    summary="any short text, by a task that reaches the writer unchanged",
    noun="text",
    writer_system=_TEXTS["text-writer"],
    reviewer_system=_TEXTS["text-reviewer"],
    request="{task}",
    review_request="Please review this text: {text}",
    feedback_heading="Remarks of the reviewers about your previous version:",
    verdict=STRUCTURED_VERDICT,
)

PRESETS: Mapping[str, PairPreset] = {each.name: each for each in (SLOGAN, TEXT)}


C = TypeVar("C", bound="OllamaConfig")

DEFAULT_MODEL_NAME = "mistral:latest"
DEFAULT_MAX_TURNS = 5
DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 100
DEFAULT_OLLAMA_BASE_URL = "http://localhost:11434"
DEFAULT_REQUEST_TIMEOUT = 30
"""Seconds."""

SECTION = "pair"
SETTINGS = "settings"
"""The parameter of a run with everything that its pair goes by, complete and checked."""
WRITER = "writer"
SERVER_VALUES = ("temperature", "base_url", "request_timeout")
"""What only the Ollama server of the configuration gets."""
_AGENT_OPTIONS = {"model": "model_name", "base_url": "base_url", "timeout": "request_timeout"}


def _url(text: str) -> str:
    try:
        return parse_base_url(text)
    except ConfigError as error:
        raise PydanticCustomError(ADVICE, "{why}", {"why": str(error)}) from error


def _check(rule: str) -> str:
    try:
        parse_check(rule)
    except ValueError as error:
        raise PydanticCustomError(ADVICE, "{why}", {"why": str(error)}) from error
    return rule


AgentName = Annotated[str, Field(min_length=1, description="the name of an agent")]
Check = Annotated[str, AfterValidator(_check)]


class OllamaConfig(BaseModel):
    """Which model of which server writes and reviews, and how."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, protected_namespaces=())

    model_name: str = Field(DEFAULT_MODEL_NAME, min_length=1, description="the name of a model")
    max_turns: int = Field(
        DEFAULT_MAX_TURNS, ge=1, le=10, description="a whole number from 1 to 10"
    )
    temperature: float = Field(
        DEFAULT_TEMPERATURE, ge=0, le=2, allow_inf_nan=False, description="a number from 0 to 2"
    )
    max_tokens: int = Field(DEFAULT_MAX_TOKENS, ge=1, description="a whole number from 1")
    base_url: Annotated[str, AfterValidator(_url)] = Field(
        DEFAULT_OLLAMA_BASE_URL, description="a URL such as http://localhost:11434"
    )
    """With or without `/v1`."""
    request_timeout: float = Field(
        DEFAULT_REQUEST_TIMEOUT,
        ge=1,
        le=300,
        allow_inf_nan=False,
        description="seconds, from 1 to 300",
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options of a request to the native chat API."""
        return {"temperature": self.temperature, "num_predict": self.max_tokens}


ENVIRONMENT: Mapping[str, str] = {
    f"OLLAMA_{name.upper()}": name for name in OllamaConfig.model_fields
}
"""Environment variables, and the value that each one sets."""


class PairSection(FileSection, OllamaConfig):
    """What pairs use unless the environment or the call says otherwise: `pair:` in the settings."""

    writer: AgentName | None = None
    reviewers: list[AgentName] | None = Field(
        None, description="a list of agents, each AGENT or AGENT=SPECIALTY; [] for none"
    )
    checks: list[Check] = Field([], description="a list such as [words=8]")
    verdict: Literal["phrase", "structured"] | None = Field(
        None, description="one of: phrase, structured"
    )
    strict: bool = Field(False, description="true or false")


class PairConfig(PairSection):
    """All values of a pair, checked."""

    preset: Literal["slogan", "text"] = Field(description=f"one of: {', '.join(PRESETS)}")
    task: str = Field(description="a text")
    criteria: str = Field("", description="a text")

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


class Seat(BaseModel):
    """The writer or a reviewer: which agent is asked, and how."""

    name: str
    agent: str
    model: str | None = None
    specialty: str = ""
    """What a reviewer looks at, if not at everything."""
    options: Mapping[str, Any] = {}
    """Options of each request: temperature, tokens, server."""
    timeout: float | None = None
    takes_schema: bool = False
    is_check: bool = False
    """Whether a program or a function computes the review from the bare text."""


class Seats(BaseModel):
    """Who is asked in a pair."""

    writer: Seat
    reviewers: list[Seat]


class PairSettings(PairConfig):
    """Everything that a pair goes by, as its run records it in its parameters."""

    seats: Seats


class _SourcedValue(NamedTuple):
    """A value, and where it comes from."""

    value: Any
    origin: str


def get_ollama_config() -> OllamaConfig:
    """Returns the configuration of the Ollama server; a fresh value each time.

    It comes from the settings of the project around the current folder and the environment.
    """
    return resolve_ollama(project_context({})[1])


def project_context(
    agents: Mapping[str, Agent], home: str | Path | None = None
) -> tuple[Settings, CompileContext]:
    """Returns the settings of the project of a program, and what is known in it."""
    from signoff.app.runs.targets import compile_context
    from signoff.app.settings.home import expected_home
    from signoff.app.settings.settings import load_settings

    environment = dict(os.environ)
    if home is not None:
        folder = Path(home).expanduser().absolute()
        environment[VARIABLE] = str(folder if folder.name == FOLDER else folder / FOLDER)
    where = expected_home(Path.cwd(), environment)
    try:
        settings = load_settings(where, environment)
    except ConfigError as error:
        raise ConfigurationError([Problem("settings", str(error))]) from error
    return settings, compile_context(where, settings, agents=agents)


def resolve_ollama(context: CompileContext) -> OllamaConfig:
    """Returns the configuration of the Ollama server in a project."""
    layers = _layers(context, {})
    own = {name: each for name, each in layers.items() if name in OllamaConfig.model_fields}
    return _validated(OllamaConfig, own)


def resolve_settings(
    preset: str, params: Mapping[str, Any], context: CompileContext
) -> dict[str, Any]:
    """Returns the settings of a pair as data; raises `ConfigurationError` with all mistakes."""
    # None means that the caller left it open, as optional arguments of Python functions do, so it
    # must not hide a value of the settings.
    arguments = {name: value for name, value in params.items() if value is not None}
    layers = _layers(context, arguments)
    config = _validated(PairConfig, {"preset": _SourcedValue(preset, "preset"), **layers})
    seating = _SeatPlan(config, {*layers}, {*arguments}, context)
    if problems := list(seating.problems()):
        raise ConfigurationError(problems)
    chosen = {
        **config.model_dump(),
        "verdict": config.verdict or PRESETS[preset].verdict,
        "writer": seating.writer,
        "reviewers": seating.reviewers,
        "seats": seating.seats().model_dump(),
    }
    # Where no Ollama server is asked, its model would be recorded and describe nothing.
    if OLLAMA not in seating.agents:
        chosen["model_name"] = arguments.get("model_name")
    return chosen


def may_ask_another(preset: str, params: Mapping[str, Any], context: CompileContext) -> bool:
    """Whether a pair would ask the Ollama server although no one has chosen it."""
    chosen = chosen_options(params, context)
    return PRESETS[preset].agent == OLLAMA and not {WRITER, "base_url", "model_name"} & chosen


def chosen_options(params: Mapping[str, Any], context: CompileContext) -> set[str]:
    """Returns the names of the options that the call, the settings or the environment set."""
    return {*_layers(context, params)}


def _layers(context: CompileContext, arguments: Mapping[str, Any]) -> dict[str, _SourcedValue]:
    """Returns the values that are set anywhere, the strongest of each."""
    values: dict[str, _SourcedValue] = {}
    # The variable belongs to another program. One that cannot be read here is that program's
    # matter, and a better source may follow.
    with suppress(ConfigError, ValueError):
        if host := os.environ.get("OLLAMA_HOST"):
            values["base_url"] = _SourcedValue(parse_ollama_host(host), "environment OLLAMA_HOST")
    # What is set for the agent of that name holds for pairs too, unless they have their own.
    agent = context.agents.get(OLLAMA)
    for option, name in _AGENT_OPTIONS.items():
        if agent is not None and agent.options.get(option) is not None:
            values[name] = _SourcedValue(agent.options[option], f"agents.{OLLAMA}.{option}")
    for name, value in context.settings.get(SECTION, {}).items():
        if value is not None:
            values[name] = _SourcedValue(value, f"{SECTION}.{name}")
    for variable, name in ENVIRONMENT.items():
        # An empty variable counts as unset, because containers pass on variables that nobody has
        # set.
        if text := os.environ.get(variable, "").strip():
            values[name] = _SourcedValue(text, f"environment {variable}")
    return values | {name: _SourcedValue(value, name) for name, value in arguments.items()}


def _validated(model: type[C], values: Mapping[str, _SourcedValue]) -> C:
    try:
        return model.model_validate({name: each.value for name, each in values.items()})
    except ValidationError as error:
        # An argument is its own origin, and the mistake names it already.
        origins = {name: each.origin for name, each in values.items() if each.origin != name}
        problems = [
            each.problem(lambda path: origins.get(str(path[0]), "") if path else "")
            for each in mistakes_of(error, model)
        ]
        raise ConfigurationError(problems) from error


class _SeatPlan:
    """Chooses the agents of a pair and what each one is sent."""

    def __init__(
        self, config: PairConfig, configured: set[str], arguments: set[str], context: CompileContext
    ) -> None:
        self._config = config
        self._configured = configured
        self._arguments = arguments
        self._context = context
        self.writer = config.writer or PRESETS[config.preset].agent or context.default_agent
        # Checks add to the reviewer; only an empty list stands for none.
        self.reviewers = [self.writer] if config.reviewers is None else config.reviewers
        parts = [each.partition("=") for each in self.reviewers]
        self._reviewers = [(agent.strip(), specialty.strip()) for agent, _, specialty in parts]
        self.agents = list(dict.fromkeys([self.writer, *(agent for agent, _ in self._reviewers)]))

    def problems(self) -> Iterator[Problem]:
        """Yields what is wrong with the choice of agents."""
        if not self.writer:
            yield Problem("writer", "no agent is named", "name one, and a reviewer")
            return
        if not (self.reviewers or self._config.checks):
            yield Problem("reviewers", "nothing would review the text", "name one, or a check")
        names = self._context.agent_names
        for agent in self.agents:
            if names is not None and agent not in names:
                yield Problem("agents", str(UnknownName("agent", agent, names)))
        yield from self._unable_reviewers()
        for name in SERVER_VALUES if OLLAMA not in self.agents else ():
            # Only what this call asks for is refused: the same settings may serve other pairs that
            # do use the server.
            if name in self._arguments:
                yield Problem(name, f"is only for {OLLAMA}", "set it for the agent instead")
        if "model_name" in self._arguments and len(self.agents) > 1:
            what = f"is ambiguous: the agents are {', '.join(self.agents)}"
            yield Problem("model_name", what, "set the model of each agent in the settings")

    def _unable_reviewers(self) -> Iterator[Problem]:
        for agent in dict.fromkeys(agent for agent, _ in self._reviewers):
            known = self._context.agents.get(agent)
            if isinstance(known, KnownAgent) and not known.capabilities.judges:
                remedy = "it can write a sentence or two; name another, or let only checks review"
                yield Problem("reviewers", f"{agent!r} is too small a model to review", remedy)

    def seats(self) -> Seats:
        """Returns the writer and the reviewers, each under a name of its own."""
        earlier: Counter[str] = Counter()
        reviewers = []
        for agent, specialty in self._reviewers:
            name = specialty or agent
            earlier[name] += 1
            # The writer is told who asks for what, so two reviewers must not have one name.
            numbered = f"{name} {earlier[name]}" if earlier[name] > 1 else name
            reviewers.append(self._seat(numbered, agent, specialty))
        return Seats(writer=self._seat(WRITER, self.writer), reviewers=reviewers)

    def _seat(self, name: str, agent: str, specialty: str = "") -> Seat:
        config, uses_server = self._config, agent == OLLAMA
        known = self._context.agents.get(agent)
        # The server has its options whether or not the caller knows an agent of that name.
        unknown = OllamaModel.capabilities if uses_server else Capabilities()
        can = known.capabilities if isinstance(known, KnownAgent) else unknown
        # A slogan needs few tokens and a text needs many, so the built-in number counts only for
        # the preset that it was chosen for.
        tokens = PRESETS[config.preset].max_tokens
        tokens = config.max_tokens if "max_tokens" in self._configured else tokens
        options: dict[str, Any] = (
            {can.length_option: tokens} if can.length_option and tokens else {}
        )
        if uses_server:
            options |= {BASE_URL: config.base_url, "temperature": config.temperature}
        return Seat(
            name=name,
            agent=agent,
            model=config.model_name if uses_server or "model_name" in self._arguments else None,
            specialty=specialty,
            options=options,
            timeout=config.request_timeout if uses_server else None,
            takes_schema=can.json_schema,
            is_check=can.deterministic,
        )


# Checks that work beside the reviewers, or without one: pure functions of a text.


TextCheck: TypeAlias = Callable[[str], str]
"""Returns what is wrong with a text; empty if nothing."""


def parse_check(rule: str) -> TextCheck:
    """Returns the check that a rule such as `words=8` names; raises `ValueError` for any other."""
    name, separator, value = (part.strip() for part in rule.partition("="))
    if name not in _KINDS or not separator or not value:
        valid = ", ".join(f"{kind}={example}" for kind, (_, example) in _KINDS.items())
        raise ValueError(f"{rule!r} is not a check (valid: {valid})")
    make, _ = _KINDS[name]
    return make(value)


def _at_most(noun: str, count: Callable[[str], int]) -> Callable[[str], TextCheck]:
    def make(value: str) -> TextCheck:
        if not value.isascii() or not value.isdigit() or int(value) < 1:
            raise ValueError(f"{noun}s={value}: must be a whole number from 1")
        most = int(value)

        def problem(text: str) -> str:
            number = count(text)
            plural = "" if most == 1 else "s"
            return f"It has {number} {noun}s; use at most {most} {noun}{plural}." * (number > most)

        return problem

    return make


def _contains(value: str) -> TextCheck:
    found = _finder(value)
    return lambda text: "" if found(text) else f'It does not contain "{value}"; add it.'


def _avoids(value: str) -> TextCheck:
    found = _finder(value)
    return lambda text: f'It contains "{value}"; leave it out.' if found(text) else ""


def _finder(value: str) -> Callable[[str], bool]:
    """Returns a search for whole words, in any case and with any blanks between them."""
    # Whole words only: a slogan with "waterproof" does not contain "water".
    words = r"\s+".join(map(re.escape, value.casefold().split()))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)")
    return lambda text: pattern.search(text.casefold()) is not None


_KINDS: Mapping[str, tuple[Callable[[str], TextCheck], str]] = {
    "words": (_at_most("word", lambda text: len(text.split())), "8"),
    "characters": (_at_most("character", len), "60"),
    "lines": (_at_most("line", lambda text: len(text.splitlines())), "1"),
    "contains": (_contains, "water"),
    "avoids": (_avoids, "amazing"),
}
