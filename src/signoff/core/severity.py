"""How bad a finding is: the one list of severities, which agents and reviews share."""

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
        """How plots show it."""
        return self.value[0]

    @property
    def rank(self) -> int:
        """0 for the worst; what sorts first matters most."""
        return _RANKS[self]

    @classmethod
    def read(cls, text: object) -> Severity:
        """Returns the severity a text names in any case; what nobody can place is taken as HIGH."""
        try:
            return cls(str(text).strip().upper())
        except ValueError:
            return cls.HIGH


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}

SEVERITIES = ", ".join(Severity)
"""The names, for messages."""
