"""Judges what a model said before it counts as an answer: whole, not empty, fitting its schema.

A failed judgement carries what the call cost, because it was paid for all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.agents.structured import parse_answer
from signoff.core.effects import Reply
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput
from signoff.runtime.effect_errors import with_usage

MOST_CHARACTERS = 16_000_000
"""An answer longer than this is a fault, not an answer; it must not fill the memory."""


@dataclass(frozen=True)
class ModelAnswer:
    """What a model said, as it came."""

    text: str
    finish: str | None = None
    """Why the model stopped, in the provider's own word."""
    cut_off: bool = False
    """Whether the model was stopped before it had finished."""
    declined: str = ""
    """Why the model would not answer, when it said so."""
    usage: Usage | None = None
    session: str | None = None
    may_be_silent: bool = False
    """Whether the work is elsewhere, in files, and nothing has to be said about it."""


def judge(answer: ModelAnswer, schema: Mapping[str, Any] | None) -> Reply:
    """Returns the reply an answer makes; raises `AgentBadOutput` when it makes none."""
    try:
        value = _value(answer, schema)
    except AgentBadOutput as error:
        raise with_usage(error, answer.usage) from error.__cause__
    return Reply(answer.text, value, answer.usage, answer.session, answer.finish)


def tokens(count: object) -> int | None:
    """Returns a reported number of tokens; servers that do not count send none, or 0."""
    counted = isinstance(count, int) and not isinstance(count, bool) and count > 0
    return count if counted else None  # type: ignore[return-value]  # an int, by the line above


def whole_characters(text: str) -> str:
    """Joins halves of characters that came apart, and replaces those that stand alone.

    A cut-off emoji or a badly decoded byte cannot be sent as UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Collected:
    """A streamed answer: every piece is shown to whoever watches, and kept."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._pieces: list[str] = []
        self._room = MOST_CHARACTERS

    def add(self, piece: str | None) -> None:
        """Takes the next piece; raises `AgentBadOutput` when it never ends."""
        if not piece:
            return
        self._room -= len(piece)
        if self._room < 0:
            raise AgentBadOutput(f"the answer is longer than {MOST_CHARACTERS:,} characters")
        self._pieces.append(piece)
        self._emit(piece)

    @property
    def text(self) -> str:
        """The answer so far."""
        return whole_characters("".join(self._pieces))


def _value(answer: ModelAnswer, schema: Mapping[str, Any] | None) -> Any:
    if answer.declined:
        raise AgentBadOutput(f"the model would not answer: {answer.declined:.300}")
    if answer.cut_off:
        raise AgentBadOutput(
            f"the answer was cut off ({answer.finish}); allow it more tokens, or ask for less"
        )
    if not answer.text.strip():
        if answer.may_be_silent and schema is None:
            return None
        raise AgentBadOutput("the answer is empty")
    return None if schema is None else parse_answer(answer.text, schema)
