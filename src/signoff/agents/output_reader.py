"""How the JSON output of a vendor's program becomes a reply."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
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


class OutputReader:
    """Reads one vendor's JSON; a new one is created for each call.

    This base displays the output and recognizes nothing in it.
    """

    def __init__(self) -> None:
        self.reply = ProgramReply(complete=False)
        """The reply so far."""
        self.recognized = False
        """Whether any of the output was the vendor's JSON."""

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one JSON object as it arrives and returns its text to display, if any.

        An empty text tells that the model begins to answer, and None that there is nothing to tell.

        Raises `AgentError` when there is no point in continuing.
        """
        return f"{json.dumps(data)}\n"

    def read_stderr(self, line: str) -> None:
        """Reads one line of standard error; raises `AgentError` likewise."""

    def update(self, **fields: Any) -> None:
        """Adds fields of a vendor's event to the reply."""
        self.recognized = True
        self.reply = replace(self.reply, **fields)

    def deny(self, action: str) -> None:
        """Adds an action that the program was not allowed to take, unless it is listed already."""
        # Some programs report a denial twice: as an event and on standard error.
        denied = dict.fromkeys((*self.reply.denied, action[:200]))
        self.reply = replace(self.reply, denied=tuple(denied))
