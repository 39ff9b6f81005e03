"""Requests to the outside world, as values.

An effect is what a handler requests from its context: an agent's answer, a process, a file, a
human's decision. It is recorded before it starts and after it ends, and an effect with a recorded
reply is never performed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple, NewType

from signoff.core.errors import UsageError
from signoff.core.spend import Usage

EffectId = NewType("EffectId", str)
"""Scope path, key and ordinal within one step attempt: `critics[3]/ask#1`."""


def scope_of(identity: str) -> str:
    """Returns the fan-out item an effect belongs to; keys hold no brackets, so the last ends it."""
    # An item is `key[index]`, followed by a slash and the effect or the next item inside it.
    end = identity.rfind("]")
    return "" if end < 0 else identity[: identity.index("/", end)]


def effect_key(scope: str, key: str) -> str:
    """Returns the scope and key of an effect; raises `UsageError` for a key it cannot have."""
    # Brackets mark fan-out items in an identity, and "!" the engine's own requests.
    if not key or key.startswith("!") or "[" in key or "]" in key:
        raise UsageError(
            f"an effect's key must be a text without brackets that does not begin with '!', "
            f"not {key!r}"
        )
    return f"{scope}/{key}" if scope else key


class EffectKind(StrEnum):
    """The kinds of effect the engine knows."""

    ASK = "ask"
    COMMAND = "command"
    WRITE = "write"
    READ = "read"
    REPLACE = "replace"
    """Puts files back into the project, each checked by its digest."""
    WAIT = "wait"
    PARK = "park"
    MAP = "map"
    NOW = "now"


class OnCrash(StrEnum):
    """What to do with an effect that was started before a crash and may or may not have ended."""

    RERUN = "rerun"
    ASK = "ask"
    FAIL = "fail"


class ProductPrompt(str):
    """A prompt that signoff words itself, with its material: the JSON values it is about.

    The material identifies the request, so a later version may word the prompt, its system prompt
    and its schema differently and still find the recorded answer.
    """

    __slots__ = ("material", "schema", "shared", "stated", "system")
    material: Any
    system: str | None
    schema: dict[str, Any] | None
    stated: dict[str, Any] | None
    """The schema of an answer whose form the prompt states in words."""
    shared: int

    def __new__(
        cls,
        text: str,
        material: Any = (),
        *,
        system: str | None = None,
        schema: dict[str, Any] | None = None,
        stated: dict[str, Any] | None = None,
        shared: int = 0,
    ) -> ProductPrompt:
        """Returns the text with its material; none if the key alone identifies the request.

        Other prompts of the same step begin with the same `shared` characters.
        """
        prompt = super().__new__(cls, text)
        prompt.material, prompt.system, prompt.schema = material, system, schema
        prompt.stated, prompt.shared = stated, shared
        return prompt


class Effect(NamedTuple):
    """One request: what kind, under which key, with which payload."""

    kind: EffectKind
    key: str
    payload: dict[str, Any]
    """Everything needed to perform it; JSON, and the same on every replay."""
    on_crash: OnCrash = OnCrash.RERUN
    timeout: float | None = None
    """Seconds after which it is stopped, if the performer has no limit of its own."""
    material: Any = None
    """What it is about, if signoff words the prompt; with None every character of it counts."""
    own_schema: bool = False
    """Whether the schema is signoff's wording as well, not the user's."""
    stated: dict[str, Any] | None = None
    """The schema of an answer whose form the prompt states in words."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request to an agent."""

    prompt: str
    system: str | None = None
    model: str | None = None
    schema: dict[str, Any] | None = None
    """JSON Schema that the answer must match."""
    workspace: str | None = None
    """Directory the agent may read, and change if `edit` is set."""
    edit: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """Settings that only one kind of agent understands."""
    files: dict[str, str] = field(default_factory=dict)
    """Texts by name; the agent finds them as files in a working copy, its workspace."""
    copied: bool = False
    """Whether the workspace is a copy for this call alone."""
    about: dict[str, Any] = field(default_factory=dict)
    """The task in plain values, for an outside worker; the prompt says the same in words."""
    shared: int = 0
    """How many characters at the start of the prompt other requests have too, for prompt caches."""

    stated: dict[str, Any] | None = None
    """The schema of an answer whose form the prompt states in words: another agent may answer than
    the prompt was worded for, and its model can perhaps be held to a schema."""

    def held(self, *, json_schema: bool) -> AgentRequest:
        """Returns the request for an agent whose model can, or cannot, be held to a schema."""
        if not json_schema or self.schema or not self.stated:
            return self
        return replace(self, schema=self.stated)

    def to_json(self) -> dict[str, Any]:
        """Returns only what is set, and the prompt; this is an ask's payload and identity."""
        values = {e.name: getattr(self, e.name) for e in fields(self) if e.name != "stated"}
        # Leaving out empty values keeps the identity of old requests when a field is added.
        return {name: value for name, value in values.items() if value or name == "prompt"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answered."""

    text: str
    value: Any = None
    """The parsed answer, if the request had a schema."""
    usage: Usage | None = None
    """Tokens and money; None if the agent did not report them."""
    session: str | None = None
    finish: str | None = None
    """Why the agent stopped, in its own words."""
    files: dict[str, str] = field(default_factory=dict)
    """Files it changed, with what happened to each."""
    agent: str | None = None
    """The agent that answered, if it was a fallback."""
    contents: dict[str, str] | None = None
    """The files of the working copy after the call, by name; None if there was no copy, as for a
    human, who answers with the text itself."""
    by: str | None = None
    """The human who answered, if one did in the agent's place."""

    def to_json(self) -> dict[str, Any]:
        """Returns only what is set."""
        values = {name: getattr(self, name) for name in _REPLY_FIELDS}
        data = {name: value for name, value in values.items() if value is not None}
        if self.usage is not None:
            data["usage"] = self.usage.to_json()
        if not self.files:
            del data["files"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reply:
        """Reads what `to_json` wrote."""
        usage = data.get("usage")
        return cls(**{**data, "usage": Usage(**usage) if usage is not None else None})


_REPLY_FIELDS = tuple(f.name for f in fields(Reply))


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a program."""

    code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file the run wrote."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file of the run directory, as it was when the run read it."""

    path: str
    text: str
    digest: str
    """The sha256 of the file."""
