"""An error as data: what it was, who it concerns and what fixes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from signoff.remedies import REMEDIES, Remedy


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What a run keeps of an error, and what surfaces get of it."""

    kind: str
    """The error's class, such as `AgentAuth` or `ValueError`."""
    message: str
    agent: str = ""
    """The agent that was asked, when it was a call."""
    model: str = ""
    """The model that was named for it."""
    location: str = ""
    """`file.py:12`, the line of the author's code that raised; empty if there is none."""
    remedies: tuple[Remedy, ...] = field(default=())
    """What fixes it, most likely first."""

    def to_json(self) -> dict[str, Any]:
        """Returns the error as plain values, all of them, for programs to read."""
        return {
            "kind": self.kind,
            "message": self.message,
            "agent": self.agent or None,
            "model": self.model or None,
            "location": self.location or None,
            "remedies": [REMEDIES.to_json(each) for each in self.remedies],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ErrorInfo:
        """Reads what `to_json` wrote."""
        return cls(
            kind=str(data["kind"]),
            message=str(data["message"]),
            agent=data.get("agent") or "",
            model=data.get("model") or "",
            location=data.get("location") or "",
            remedies=tuple(REMEDIES.from_json(each) for each in data.get("remedies", ())),
        )
