"""The errors of pairs.

WorkflowError
├── AgentError                  a writer or reviewer cannot be used, or failed
│   └── ModelNotFoundError      the server does not have the model (those it has are listed)
├── ApprovalTimeoutError        the text did not pass within the allowed turns
└── ConfigurationError          values that cannot be used (all of them listed)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from signoff import errors
from signoff.remedies import PassOption

if TYPE_CHECKING:
    from signoff.pair.session import IterationSession


class WorkflowError(errors.SignoffError):
    """A pair did not get to its end."""

    def __init__(
        self,
        message: str = "",
        *,
        session: IterationSession | None = None,
        remedy: errors.Remedies = (),
    ) -> None:
        self.session = session
        """What was done until then; None if nothing was started."""
        super().__init__(message, remedy=remedy)


class AgentError(WorkflowError):
    """A writer or a reviewer cannot be used."""

    is_transient: bool = False
    """Whether another try may help, as for a server that is down."""
    no_server: bool = False
    """Whether nothing answers where the Ollama server should be, or nothing can ask it."""


class ModelNotFoundError(AgentError, errors.UsageError):
    """The server does not have the model."""

    def __init__(self, message: str = "", *, available: Sequence[str] = ()) -> None:
        self.available = tuple(available)
        super().__init__(
            f"{message}; available models: {', '.join(available) or 'none'}",
            remedy=tuple(PassOption("model", each) for each in available[:1]),
        )


class ApprovalTimeoutError(WorkflowError):
    """The text did not pass within the allowed turns."""


class ConfigurationError(WorkflowError, errors.ConfigError):
    """The configuration of the pair cannot be used."""

    def __init__(self, problems: Sequence[errors.Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))
