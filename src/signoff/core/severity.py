"""How bad a finding is: the one list of severities, with the defaults of each.

A new severity is a line in `Severity` and a row in `_DEFAULTS`. Prompts, file formats and plots are
derived from them; its meaning for critics and its color are texts (see docs/architecture.md).
`tests/architecture/test_severities.py` finds modules that list severities by name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class IssueBehavior(StrEnum):
    """What an issue does to the review that reported it."""

    HALT = "halt"
    """Ends the critique step; the findings so far go to the judge."""
    CONTINUE = "continue"
    """Goes to the judge; the review continues."""
    ESCALATE = "escalate"
    """Goes to a human before anything else happens."""
    IGNORE = "ignore"
    """Is logged and not shown to the judge."""


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
    def key(self) -> str:
        """Its name as a key in files and records."""
        return self.value.lower()

    @property
    def rank(self) -> int:
        """0 for the worst, so that sorting puts it first."""
        return _RANKS[self]

    @property
    def or_worse(self) -> tuple[Severity, ...]:
        """It and every worse severity, the worst first."""
        return tuple(each for each in Severity if each.rank <= self.rank)

    @property
    def defaults(self) -> SeverityDefaults:
        """What happens to its issues unless a flow or a constraint says otherwise."""
        return _DEFAULTS[self]

    @classmethod
    def named(cls, text: object) -> Severity | None:
        """Returns the severity that a word names, in any case; None for an unknown word."""
        word = str(text).strip().lower()
        return next((each for each in cls if each.key == word), None) or SYNONYMS.get(word)

    @classmethod
    def read(cls, text: object) -> Severity:
        """Returns the severity that a word names; the default for an unknown word."""
        return cls.named(text) or DEFAULT_SEVERITY


class SeverityDefaults(NamedTuple):
    """What happens to the issues of one severity."""

    behavior: IssueBehavior
    """What they do to the review that reported them."""
    blocks: bool
    """Whether they block approval."""
    hide_unverified: bool
    """Whether the judge does not see those whose quote is not in the artifact."""


_DEFAULTS = {
    Severity.CRITICAL: SeverityDefaults(IssueBehavior.HALT, blocks=True, hide_unverified=False),
    Severity.HIGH: SeverityDefaults(IssueBehavior.HALT, blocks=True, hide_unverified=False),
    Severity.MEDIUM: SeverityDefaults(IssueBehavior.CONTINUE, blocks=False, hide_unverified=True),
    Severity.LOW: SeverityDefaults(IssueBehavior.IGNORE, blocks=False, hide_unverified=True),
}

SYNONYMS = {
    "blocker": Severity.CRITICAL,
    "major": Severity.HIGH,
    "moderate": Severity.MEDIUM,
    "minor": Severity.LOW,
    "nit": Severity.LOW,
    "info": Severity.LOW,
}
"""Other words for severities. Words that reviewers use for several ones, such as `serious`, are
not in it: a guess could let a text through."""

_RANKS = {severity: rank for rank, severity in enumerate(Severity)}

DEFAULT_SEVERITY = Severity.HIGH
"""The severity of an issue that comes without a known one: high enough to block approval."""

SEVERITIES = ", ".join(Severity)
"""The names, for messages."""

DEFAULT_BLOCK_ON = tuple(severity for severity in Severity if severity.defaults.blocks)
"""The severities that block approval unless a flow sets others."""
LEAST_BLOCKING = DEFAULT_BLOCK_ON[-1]
WORST = DEFAULT_BLOCK_ON[0]
