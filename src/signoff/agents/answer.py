"""Checks a model's answer before it counts: complete, not empty, valid for its schema.

A failed check carries the cost of the call, which was billed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.agents.structured import parse_answer
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput, AgentBadRequest, AgentTransient
from signoff.runtime.effect_errors import with_usage

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
        raise with_usage(error, answer.usage) from error.__cause__
    return Reply(answer.text, value, answer.usage, answer.session, answer.finish)


def refuse_edits(request: AgentRequest, label: str) -> None:
    """Raises `AgentBadRequest` when a request wants files edited, which a bare model cannot do."""
    if request.edit:
        raise AgentBadRequest(
            f"{label} cannot edit files; use an agent that can, such as claude, codex or gemini"
        )


def replace_lone_surrogates(text: str) -> str:
    """Joins surrogate pairs and replaces surrogates without a partner.

    A cut-off emoji or a badly decoded byte cannot be sent as UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class StreamedAnswer:
    """An answer that arrives in pieces, each shown live; a subclass reads its server's format."""

    def __init__(self, model: str, emit: Callable[[str], None]) -> None:
        self.model = model
        self.session: str | None = None
        self.finish: str | None = None
        """Why the model stopped; None as long as the end is missing."""
        self.declined = ""
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self.tokens_cached: int | None = None
        self.tokens_cache_write: int | None = None
        self.tokens_reasoning: int | None = None
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
        parts = self.tokens_cached, self.tokens_cache_write, self.tokens_reasoning
        usage = Usage(self.tokens_in, self.tokens_out, usd, self.model, *parts)
        cut_off = self.finish in _CUT_OFF
        return ModelAnswer(text, self.finish, cut_off, self.declined, usage, self.session)


def _parse(answer: ModelAnswer, schema: Mapping[str, Any] | None) -> Any:
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
