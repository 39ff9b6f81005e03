"""Reads a model's answer and checks it before it counts: complete, not empty, valid for its schema.

A failed check carries the cost of the call, which was billed all the same. Structured answers are
parsed strictly: syntax slips are repaired and nothing more. An answer that was cut off is never
repaired: half a critique must not become a pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadOutput, AgentBadRequest, AgentTransient
from signoff.core.spend import Usage, amount_of
from signoff.documents import bounded
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.documents.lenient_json import NotJson, load, strip_code_fence
from signoff.runtime.effect_errors import with_usage


def as_dict(value: object) -> dict[str, Any]:
    """Returns a JSON object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Returns a JSON array, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Returns a JSON string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def token_count(count: object) -> int | None:
    """Returns a reported token count; servers that do not count send nothing, or 0."""
    return cached_count(count) or None


def cached_count(count: object) -> int | None:
    """Returns a reported count of cached tokens; 0 means that nothing was cached."""
    amount = amount_of(count)
    return int(amount) if amount is not None and amount == int(amount) else None


def sum_of_counts(counts: Iterable[object]) -> int | None:
    """Returns the sum of those counts that are reported; None if one of them is impossible."""
    numbers = [cached_count(count) for count in counts if count is not None]
    return None if None in numbers else sum(filter(None, numbers))


MAX_PROBLEMS = 20
"""How many schema problems of an answer are reported."""

_STRICT_KEYWORDS = frozenset(
    "$defs $ref additionalProperties anyOf const description enum items properties required "
    "title type".split()
)
"""What OpenAI accepts in a schema that it enforces."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Returns the JSON value of an answer, validated against its schema.

    Raises `AgentBadOutput` with a message that the agent can act on.
    """
    body = strip_code_fence(text)
    if not body:
        raise AgentBadOutput("the answer is empty")
    try:
        value = load(body)
    except NotJson as error:
        raise AgentBadOutput(f"the answer cannot be parsed: {error}", answer=text) from error
    try:
        problems = bounded.schema_errors(value, dict(schema))
    except (bounded.OutOfBounds, bounded.EvaluationFailed) as error:
        problems = [([], f"the patterns of the schema cannot be checked: {error}")]
    if problems:
        listed = "; ".join(
            f"{'/'.join(map(str, path)) or 'the answer'}: {message}"
            for path, message in problems[:MAX_PROBLEMS]
        )
        raise AgentBadOutput(f"the answer does not match its schema: {listed}", answer=text)
    return value


def with_schema(prompt: str, schema: Mapping[str, Any] | None) -> str:
    """Returns a prompt that asks for the schema, for agents that cannot enforce one."""
    if schema is None:
        return prompt
    return (
        f"{prompt}\n\nAnswer with a single JSON value that matches this JSON Schema, and with "
        f"nothing else:\n{json.dumps(dict(schema), indent=1)}"
    )


def is_strict(schema: Any) -> bool:
    """Returns whether a schema uses only what OpenAI's strict mode accepts."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    # One unsupported keyword anywhere makes the vendor refuse the whole request.
    if set(schema) - _STRICT_KEYWORDS:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", [])) != set(properties):
            return False
    inner = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    return is_strict([*inner, schema.get("items")])


MAX_CHARACTERS = 16_000_000
"""A longer answer is an error: it must not fill the memory."""


_CUT_OFF = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""What servers report when a model reached a limit before it had finished."""


@dataclass(frozen=True)
class ModelAnswer:
    """A model's answer, before any check."""

    text: str = ""
    finish: str | None = None
    """Why the model stopped, as the provider reports it."""
    cut_off: bool = False
    """Whether the model was stopped before it had finished."""
    declined: str = ""
    """Why the model refused to answer, if it did."""
    usage: Usage | None = None
    session: str | None = None
    may_be_silent: bool = False
    """Whether the work is in edited files, so that the text may be empty."""


def judge(answer: ModelAnswer, schema: Mapping[str, Any] | None) -> Reply:
    """Returns an answer as a reply; raises `AgentBadOutput` when it fails a check."""
    try:
        value = _parse(answer, schema)
    except AgentBadOutput as error:
        # It was billed like any other answer. Without its cost, the limits would believe that it
        # was free.
        raise with_usage(error, answer.usage) from error.__cause__
    return Reply(answer.text, value, answer.usage, answer.session, answer.finish)


def refuse_edits(request: AgentRequest, label: str) -> None:
    """Raises `AgentBadRequest` when a request wants files edited, which a bare model cannot do."""
    if request.edit:
        raise AgentBadRequest(
            f"{label} cannot edit files; use an agent that can, such as claude, codex or gemini"
        )


class StreamedAnswer:
    """An answer that arrives in pieces, each shown live; a subclass reads its server's format."""

    def __init__(self, model: str, emit: Callable[[str], None]) -> None:
        self.model = model
        self.session: str | None = None
        self.finish: str | None = None
        """Why the model stopped; None as long as the end is missing."""
        self.declined = ""
        self.usage = Usage()
        self._emit = emit
        self._pieces: list[str] = []
        self._room = MAX_CHARACTERS

    def add_text(self, piece: str | None) -> None:
        """Adds the next piece; raises `AgentBadOutput` when the answer grows too long."""
        if not piece:
            return
        self._room -= len(piece)
        if self._room < 0:
            raise AgentBadOutput(f"the answer is longer than {MAX_CHARACTERS:,} characters")
        self._pieces.append(piece)
        self._emit(piece)

    def answer(self, usd: float | None = None) -> ModelAnswer:
        """Returns the answer, which cost `usd` if that is known.

        Raises `AgentTransient` when its end is missing: half an answer may look complete.
        """
        if self.finish is None:
            raise AgentTransient("the answer broke off before its end")
        text = replace_lone_surrogates("".join(self._pieces))
        usage = replace(self.usage, usd=usd, model=self.model)
        cut_off = self.finish in _CUT_OFF
        return ModelAnswer(text, self.finish, cut_off, self.declined, usage, self.session)


def _parse(answer: ModelAnswer, schema: Mapping[str, Any] | None) -> Any:
    # The order matters: a refusal, or the first half of an answer, may happen to be valid JSON.
    if answer.declined:
        raise AgentBadOutput(f"the model refused to answer: {answer.declined:.300}")
    if answer.cut_off:
        raise AgentBadOutput(
            f"the answer was cut off ({answer.finish}); allow more tokens, or ask for less",
            partial=answer.text,
        )
    if not answer.text.strip():
        if answer.may_be_silent and schema is None:
            return None
        raise AgentBadOutput("the answer is empty")
    return None if schema is None else parse_answer(answer.text, schema)


class ChatCompletion(StreamedAnswer):
    """Collects a completion from its chunks."""

    cost: object = None
    """The cost that the server reports; its unit depends on the server."""

    def add(self, chunk: dict[str, Any]) -> None:
        """Adds a chunk."""
        self.session = chunk.get("id") or self.session
        self.model = chunk.get("model") or self.model
        if usage := chunk.get("usage"):
            # Unlike Anthropic's, this count is a part of `prompt_tokens`.
            cached = as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")
            reasoning = as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens")
            self.usage = Usage(
                token_count(usage.get("prompt_tokens")),
                token_count(usage.get("completion_tokens")),
                tokens_cached=cached_count(cached),
                tokens_reasoning=cached_count(reasoning),
            )
            self.cost = usage.get("cost")
        for choice in (chunk.get("choices") or [])[:1]:
            message = choice.get("delta") or {}
            self.add_text(message.get("content"))
            self.declined += message.get("refusal") or ""
            # OpenRouter reports "error" when the model's server failed in the middle.
            if choice.get("finish_reason") != "error":
                self.finish = choice.get("finish_reason") or self.finish
        if self.finish == "content_filter":
            self.declined = self.declined or "its content filter stepped in"


def chat_messages(system: str | None, prompt: str) -> list[dict[str, str]]:
    """Returns a prompt as the messages of a chat."""
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": prompt}]
