"""An error as data: what it was, who it concerns and what fixes it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from signoff.remedies import Remedy


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What a run stores about an error, and what surfaces show of it."""

    kind: str
    """The error's class, such as `AgentAuth` or `ValueError`."""
    message: str
    agent: str = ""
    """The agent that was asked, when it was a call."""
    model: str = ""
    """The model that was named for it."""
    location: str = ""
    """`file.py:12`, the line of the author's code that raised; empty if there is none."""
    remedies: tuple[Remedy, ...] = ()
    """What fixes it, most likely first."""

    def to_json(self) -> dict[str, Any]:
        """Returns the error as plain values, all of them, for programs to read."""
        values = {each.name: getattr(self, each.name) or None for each in fields(self)}
        return {**values, "remedies": [remedy.to_json() for remedy in self.remedies]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ErrorInfo:
        """Reads what `to_json` wrote."""
        texts: dict[str, Any] = {name: value or "" for name, value in data.items()}
        remedies = tuple(Remedy.from_json(each) for each in data.get("remedies", ()))
        return cls(**{**texts, "remedies": remedies})
