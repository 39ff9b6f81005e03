"""Requests to the outside world, as values.

An effect is what a handler asks of its context: an agent's answer, a process, a
file, a person. It is recorded before it starts and after it ends, and a recorded
reply is never asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple, NewType

from signoff.core.spend import Usage

EffectId = NewType("EffectId", str)
"""Scope path, key and ordinal within one step attempt: `critics[3]/ask#1`."""


def scope_of(identity: str) -> str:
    """Returns the fan-out item an effect belongs to; keys hold no brackets, so the last ends it."""
    end = identity.rfind("]")
    return "" if end < 0 else identity[: identity.index("/", end)]


class EffectKind(StrEnum):
    """The kinds of effect the engine knows."""

    ASK = "ask"
    COMMAND = "command"
    WRITE = "write"
    WAIT = "wait"
    PARK = "park"
    MAP = "map"
    NOW = "now"


class OnCrash(StrEnum):
    """What to do with an effect that was started and whose end is not known."""

    RERUN = "rerun"
    ASK = "ask"
    FAIL = "fail"


class ProductPrompt(str):
    """A prompt that signoff words itself, and what it is about.

    The material identifies the request: a later version may say the same in other words and
    still find the recorded answer. It holds JSON values.
    """

    __slots__ = ("material",)
    material: Any

    def __new__(cls, text: str, material: Any = ()) -> ProductPrompt:
        """Returns the text with its material; none where the key alone says which request it is."""
        prompt = super().__new__(cls, text)
        prompt.material = material
        return prompt


class Effect(NamedTuple):
    """One request: what kind, under which key, with which payload."""

    kind: EffectKind
    key: str
    payload: dict[str, Any]
    """Everything needed to perform it; JSON, and the same on every replay."""
    on_crash: OnCrash = OnCrash.RERUN
    timeout: float | None = None
    """Seconds after which it is stopped, when the performer has no limit of its own."""
    material: Any = None
    """What it is about, when signoff words the prompt; None makes every word count."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """What an agent is asked."""

    prompt: str
    system: str | None = None
    model: str | None = None
    schema: dict[str, Any] | None = None
    """JSON Schema the answer must fit."""
    workspace: str | None = None
    """Directory the agent may look at, and change when `edit` is set."""
    edit: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """Settings only one kind of agent understands."""
    files: dict[str, str] = field(default_factory=dict)
    """Texts by name, for a working copy of their own; an agent finds them in its workspace."""
    copied: bool = False
    """Whether the workspace is a copy made for this call alone; set by whoever made it."""
    about: dict[str, Any] = field(default_factory=dict)
    """The task in plain values, for whoever works it from outside; a prompt says the same."""

    def to_json(self) -> dict[str, Any]:
        """Returns only what is set, and the prompt; this is an ask's payload and identity."""
        values = {name: getattr(self, name) for name in _REQUEST_FIELDS}
        return {name: value for name, value in values.items() if value or name == "prompt"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answered."""

    text: str
    value: Any = None
    """The parsed answer when a schema was asked for."""
    usage: Usage | None = None
    """Tokens and money; None means the agent did not say."""
    session: str | None = None
    finish: str | None = None
    """Why the agent stopped, in its own words."""
    files: dict[str, str] = field(default_factory=dict)
    """Files it changed, with what happened to each."""
    agent: str | None = None
    """Who answered in the end, when a fallback stood in."""
    contents: dict[str, str] | None = None
    """What a working copy held in the end, by name, without files the agent deleted; None when
    there was no copy, as for a person, who answers with the text itself."""

    def to_json(self) -> dict[str, Any]:
        """Returns only what is set."""
        values = {name: getattr(self, name) for name in _REPLY_FIELDS}
        kept = {name: value for name, value in values.items() if value is not None}
        if self.usage is not None:
            kept["usage"] = self.usage.to_json()
        if not self.files:
            del kept["files"]
        return kept

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reply:
        """Reads what `to_json` wrote."""
        usage = data.get("usage")
        return cls(**{**data, "usage": Usage(**usage) if usage is not None else None})


_REQUEST_FIELDS = tuple(f.name for f in fields(AgentRequest))
_REPLY_FIELDS = tuple(f.name for f in fields(Reply))


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a program left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Written:
    """A file the run wrote."""

    path: str
    digest: str
