"""How bad a finding is: the list of severities, shared by agents and reviews."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """The severities, the worst first."""

    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"

    @property
    def letter(self) -> str:
        """The letter for it in plots."""
        return self.value[0]

    @property
    def rank(self) -> int:
        """0 for the worst, so that sorting puts it first."""
        return _RANKS[self]

    @classmethod
    def read(cls, text: object) -> Severity:
        """Returns the severity a text names, in any case; HIGH for an unknown one."""
        try:
            return cls(str(text).strip().upper())
        except ValueError:
            return cls.HIGH


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}

SEVERITIES = ", ".join(Severity)
"""The names, for messages."""
