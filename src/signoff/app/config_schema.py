"""What a settings file may say, as models, and their complaints in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from signoff import plugins
from signoff.app.setting_layers import Layer, Rate, Value
from signoff.documents.mistakes import Path, mistakes_of
from signoff.documents.sections import LimitsSection, Section
from signoff.errors import Problem

UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
PRICE = "dollars per million tokens, as in {in: 3, out: 15}"
_RATE = re.compile(r"\s*(\d+)\s*/\s*([a-z]+)\s*")


class AgentSection(BaseModel):
    """One agent; what is not named here goes to its kind untouched."""

    model_config = ConfigDict(extra="allow")

    kind: str | None = Field(
        None, min_length=1, description="a kind of agent, or package.module:factory"
    )
    concurrency: int | None = Field(None, ge=1, description="a whole number from 1")
    rate: str | None = Field(None, description=f'as in "10/min"; units: {", ".join(UNITS)}')
    retries: int | None = Field(None, ge=0, description="a whole number from 0")
    fallback: str | None = Field(
        None, min_length=1, description="the name of the agent that answers when this one cannot"
    )
    price: dict[Literal["in", "out"], float] | None = Field(None, description=PRICE)

    @field_validator("price")
    @classmethod
    def _is_a_price(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is not None and not _complete(value):
            raise ValueError(value)
        return value

    @field_validator("rate")
    @classmethod
    def _is_a_rate(cls, value: str | None) -> str | None:
        if value is not None:
            parse_rate(value)
        return value


class ConfigFile(Section):
    """A whole settings file."""

    version: Literal[1] = Field(1, description="1")
    limits: LimitsSection = Field(default_factory=LimitsSection, description="limits by name")
    agents: dict[str, AgentSection] = Field(
        default_factory=dict, description="agents by name, each with its options"
    )
    roles: dict[str, str] = Field(default_factory=dict, description="an agent's name for each role")
    workflows: list[str] = Field(
        default_factory=list, description="a list of folders or module paths"
    )
    pass_env: list[str] = Field(
        default_factory=list, description="a list of environment variable names"
    )
    database: str = Field("", min_length=1, description="the path of a file")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="one of: debug, info, warning, error"
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_sections_say_nothing(cls, raw: Any) -> Any:
        """Lets `limits:` stand alone, as it does when everything below it is commented out."""
        if not isinstance(raw, dict):
            return raw
        said = {key: value for key, value in raw.items() if value is not None}
        if isinstance(said.get("agents"), dict):
            said["agents"] = {
                name: {"kind": name} if options in (None, {}) else options
                for name, options in said["agents"].items()
            }
        return said


def parse_rate(text: str) -> Rate:
    """Reads `10/min`; raises ValueError when it is none."""
    match = _RATE.fullmatch(text.lower())
    if match is None or match[2] not in UNITS or int(match[1]) < 1:
        raise ValueError(text)
    return Rate(int(match[1]), UNITS[match[2]])


def _complete(price: Mapping[str, float]) -> bool:
    return set(price) == {"in", "out"} and all(0 <= each < math.inf for each in price.values())


def check(
    raw: Mapping[str, Any],
    origin: Callable[[Path], str],
    problems: list[Problem],
    *,
    strict: bool,
) -> Layer:
    """Returns what was set, flat; adds every mistake to `problems`.

    `origin` says where a key stands. Strict is for files, where `"5"` is no number;
    variables and options are always texts.
    """
    form = _with_sections(raw)
    try:
        read = form.model_validate(dict(raw), strict=strict)
    except ValidationError as error:
        problems.extend(mistake.problem(origin) for mistake in mistakes_of(error, form))
        return {}
    return {
        ".".join(map(str, path)): Value(value, origin(path))
        for path, value in _leaves(read.model_dump(exclude_unset=True))
        if path != ("version",)
    }


def _with_sections(raw: Mapping[str, Any]) -> type[ConfigFile]:
    """Returns the form of a file, with the sections of notations as far as it has some."""
    others = raw.keys() - ConfigFile.model_fields.keys()
    sections: dict[str, Any] = {}
    for each in plugins.notations() if others else ():
        if each.settings is not None:
            section = plugins.load(each.settings.model)
            form = Field(default_factory=section, description=each.settings.help)
            sections[each.settings.name] = (section, form)
        if others <= sections.keys():
            break
    return create_model("ConfigFile", __base__=ConfigFile, **sections) if sections else ConfigFile


def _leaves(values: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in values.items():
        here = (*path, str(key))
        # Sections are two deep at most; what an agent's option holds is one value.
        depth = 2 if here[0] == "agents" else 1
        if isinstance(value, Mapping) and len(here) <= depth:
            yield from _leaves(value, here)
        else:
            yield here, value
