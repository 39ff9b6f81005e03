"""How the JSON output of a vendor's program becomes a reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from signoff.agents.answer import ModelAnswer
from signoff.errors import AgentError


@dataclass(frozen=True)
class ProgramReply(ModelAnswer):
    """A model's answer, with what the program reports about its own run."""

    complete: bool = True
    """Whether the program reported an end; without one its output was cut off."""
    denied: tuple[str, ...] = ()
    """Actions that the program was not allowed to take."""
    fault: AgentError | None = None
    """The error that the program reports."""


class OutputReader(ABC):
    """Reads one vendor's JSON; a new one is created for each call."""

    @abstractmethod
    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one JSON object as it arrives and returns its text to display, if any.

        Raises `AgentError` when there is no point in continuing.
        """

    def read_stderr(self, line: str) -> None:  # noqa: B027  # most programs need only their JSON
        """Reads one line of standard error; raises `AgentError` likewise."""

    @abstractmethod
    def reply(self) -> ProgramReply | None:
        """Returns the reply, or None when none of the output was the vendor's JSON."""
