"""What a vendor's JSON says about a call, and who understands it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from signoff.core.spend import Usage
from signoff.errors import AgentError


@dataclass(frozen=True)
class ProgramReply:
    """What a program's JSON says about a call."""

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    session: str | None = None
    complete: bool = True
    """Whether the program reported an end; without one the output was cut off."""
    cut_off: bool = False
    """Whether the model was stopped before it had finished."""
    declined: str = ""
    denied: tuple[str, ...] = ()
    """What the program was not allowed to do."""
    fault: AgentError | None = None


class OutputReader(Protocol):
    """Understands one vendor's JSON; lives for one call."""

    def event(self, data: dict[str, Any]) -> str | None:
        """Takes one JSON object as it comes and returns text to show, if it holds any.

        Raises `AgentError` when there is no point in going on.
        """
        ...

    def complaint(self, line: str) -> None:
        """Takes one line of standard error; raises `AgentError` likewise."""
        ...

    def said(self) -> ProgramReply | None:
        """Returns what it all meant, or None when none of it was the vendor's."""
        ...
