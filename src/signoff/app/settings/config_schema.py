"""The schema of settings: checks what one file, the environment or the command line sets.

It is loaded only if there is something to check: pydantic takes longer to load than most commands
need for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Literal, Self, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from signoff import plugins
from signoff.core.errors import Problem
from signoff.documents.mistakes import ADVICE, Path, line_of, mistakes_of
from signoff.documents.sections import LimitsSection, Section
from signoff.documents.yaml_text import Document, newer_version
from signoff.runtime.ports import AgentLimits

VERSION = 1
"""The newest version of settings files that this program reads."""

PRICE = "dollars per million tokens, as in {in: 3, out: 15}"


_TYPES = get_type_hints(AgentLimits)
_LIMITS: dict[str, Any] = {
    each.name: (_TYPES[each.name], Field(None, **each.metadata)) for each in fields(AgentLimits)
}


class AgentSection(create_model("AgentLimits", **_LIMITS)):  # type: ignore[misc]  # made above
    """One agent; options that are not listed here are passed to its kind unchanged."""

    model_config = ConfigDict(extra="allow")

    kind: str | None = Field(
        None, min_length=1, description="a kind of agent, or package.module:factory"
    )
    fallback: str | None = Field(
        None, min_length=1, description="the name of the agent that answers when this one cannot"
    )
    price: dict[Literal["in", "out", "cached", "cache_write"], float] | None = Field(
        None, description=PRICE
    )

    @field_validator("price")
    @classmethod
    def _is_a_price(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is None:
            return None
        # Half a price would make a call look cheaper than it is, and infinity would end every run
        # at its first call.
        if not {"in", "out"} <= set(value) or not all(0 <= n < math.inf for n in value.values()):
            raise ValueError(value)
        return value


class ObserverSection(BaseModel):
    """One observer; its other options are passed to it unchanged."""

    model_config = ConfigDict(extra="allow")

    kind: str | None = Field(
        None, min_length=1, description="the name of an observer, or package.module:factory"
    )


class NotifySection(Section):
    """One program or webhook that is notified when a run stops."""

    on: list[Literal["waiting", "ended", "parked"]] = Field(
        min_length=1, description="a list of: waiting, ended, parked"
    )
    command: list[str] | None = Field(
        None, min_length=1, description="a list: the program, then its arguments"
    )
    webhook: str | None = Field(
        None,
        pattern=r"^https?://[^/@?#\s]+([/?#]\S*)?$",
        description="an address that begins with https:// or http://, without a user",
    )
    secret_env: str | None = Field(
        None, min_length=1, description="the name of an environment variable, for a webhook"
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.command is None) == (self.webhook is None):
            raise PydanticCustomError(ADVICE, "give it either a command or a webhook")
        if self.secret_env is not None and self.webhook is None:
            raise PydanticCustomError(ADVICE, "secret_env is for a webhook")
        return self


class ApprovalsSection(Section):
    """What an approval needs."""

    presence: Literal["declared", "required"] = Field(
        "declared", description="one of: declared, required"
    )


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
    database: str = Field(
        "",
        min_length=1,
        description="the path of a file, or a URL such as postgresql://user@host/name",
    )
    dispatch: str = Field("", description="temporal://HOST:PORT/NAMESPACE")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="one of: debug, info, warning, error"
    )

    log_format: Literal["text", "json"] = Field("text", description="on stderr: text or json")
    log_file: str = Field("", min_length=1, description="the path of a file")
    log_content: bool = Field(False, description="true or false")
    notify: list[NotifySection] = Field(
        default_factory=list, description="a list of commands and webhooks, each with `on`"
    )
    observe: dict[str, ObserverSection] = Field(
        default_factory=dict, description="observers by name, each with its options"
    )

    approvals: ApprovalsSection = Field(
        default_factory=ApprovalsSection, description="what an approval needs"
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_sections_say_nothing(cls, raw: Any) -> Any:
        """Ignores empty sections, such as `limits:` with all its lines commented out."""
        if not isinstance(raw, dict):
            return raw
        values = {key: value for key, value in raw.items() if value is not None}
        for section in ("agents", "observe"):
            if isinstance(values.get(section), dict):
                values[section] = {
                    name: {"kind": name} if options in (None, {}) else options
                    for name, options in values[section].items()
                }
        return values


Leaves = dict[tuple[str, ...], Any]
"""Single settings, by the keys that lead to each."""


def check_file(document: Document, problems: list[Problem]) -> Leaves:
    """Returns the settings of a file; adds every mistake to `problems`, with its line."""
    if document.content is None:
        return {}
    if not isinstance(document.content, dict):
        what = "is not a mapping of `key: value` settings"
        problems.append(Problem(f"{document.name}:1", what))
        return {}
    newer = newer_version(document, VERSION)
    if newer is not None:
        # Its other keys may be valid in that version, so nothing else is reported.
        problems.append(newer)
        return {}
    mistakes: list[Problem] = []
    leaves = check(document.content, document.at, mistakes, strict=True)
    problems.extend(sorted(mistakes, key=line_of))
    return leaves


def check(
    raw: Mapping[str, Any],
    origin: Callable[[Path], str],
    problems: list[Problem],
    *,
    strict: bool,
) -> Leaves:
    """Returns every single setting; adds every mistake to `problems`.

    `origin` returns where a key was set. `strict` is for files, where `"5"` is not a number;
    environment variables and options are always text.
    """
    form = _with_sections(raw)
    try:
        read = form.model_validate(dict(raw), strict=strict)
    except ValidationError as error:
        problems.extend(mistake.problem(origin) for mistake in mistakes_of(error, form))
        return {}
    # Only what is written counts: a default that a file does not mention must not replace the value
    # of a lower layer.
    leaves = dict(_leaves(read, read.model_dump(exclude_unset=True, by_alias=True)))
    leaves.pop(("version",), None)
    return leaves


def _with_sections(raw: Mapping[str, Any]) -> type[ConfigFile]:
    """Returns the model of a file, with the sections of the notations that it uses."""
    # Loading a notation takes a while, and most files have no section of one.
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


_NAMED = (("agents",), ("roles",), ("observe",))
"""Mappings of names that the user chooses."""


def _leaves(
    model: Any, values: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields every single setting; `values` are those of `model`, as they are in the file.

    Sections, agents, roles and observers have settings inside. Any other mapping is one value,
    which a file of higher precedence replaces as a whole.
    """
    inner = _inner(model)
    for key, value in values.items():
        here = (*path, key)
        if isinstance(inner.get(key), BaseModel) or here in _NAMED:
            yield from _leaves(inner[key], value, here)
        else:
            yield here, value


def _inner(model: Any) -> Mapping[str, Any]:
    """Returns what a section, or the mapping of agents, consists of, by key."""
    if not isinstance(model, BaseModel):
        return dict(model)
    fields = {field.alias or name: name for name, field in type(model).model_fields.items()}
    return {key: getattr(model, name) for key, name in fields.items()}
