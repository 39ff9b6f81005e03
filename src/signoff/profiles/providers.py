"""What providers implement: they respond to prompts, judge files and collect standards.

Unlike profiles, providers may read files, and an `AIProvider` may write them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from signoff.profiles.transitions import WorkflowPhase, WorkflowStage

if TYPE_CHECKING:
    from signoff.profiles.model import AIProviderResult, ApprovalResult


class FsAbility(StrEnum):
    """What a provider can do with files; decides what the end of a prompt asks for."""

    LOCAL_WRITE = "local-write"
    """It writes the response file itself."""
    LOCAL_READ = "local-read"
    """It reads files, but answers in text."""
    WRITE_ONLY = "write-only"
    """It offers files for download, like a chat in a browser."""
    NONE = "none"
    """It gets and returns text only."""


class AIProvider(ABC):
    """Responds to the prompts of a session."""

    description: ClassVar[str] = ""
    """One line for listings."""
    fs_ability: ClassVar[FsAbility] = FsAbility.NONE
    """What it can do with files, unless the user says otherwise."""
    timeout_seconds: ClassVar[float] = 1800.0
    """How long a response may take; then the call fails like that of an agent."""

    @abstractmethod
    def validate(self) -> None:
        """Raises `ProviderError` if it cannot be used, for example without a key."""

    @abstractmethod
    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        """Returns its response; None leaves it to a human to write the response file."""


class ApprovalProvider(ABC):
    """Judges a prompt or a response."""

    description: ClassVar[str] = ""
    """One line for listings."""
    timeout_seconds: ClassVar[float] = 600.0
    """How long a decision may take; then the session waits for a human."""

    @abstractmethod
    def evaluate(
        self,
        *,
        phase: WorkflowPhase,
        stage: WorkflowStage,
        files: Mapping[str, str | None],
        context: Mapping[str, Any],
    ) -> ApprovalResult:
        """Returns its decision about a stage.

        `files` maps the paths of the files it needs to their texts, None for a missing file.
        """


class StandardsProvider(ABC):
    """Collects the standards that a session has to follow."""

    description: ClassVar[str] = ""
    """One line for listings."""
    warnings: Sequence[str] = ()
    """What the user should know about the last bundle."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, folder: Path | None = None
    ) -> None:
        """`config` comes from the profile; relative paths in it start in `folder`."""
        self.config: Mapping[str, Any] = config or {}
        self.folder = folder if folder is not None else Path()

    @abstractmethod
    def validate(self) -> None:
        """Raises `ProviderError` if its configuration cannot be used."""

    @abstractmethod
    def create_bundle(
        self,
        context: Mapping[str, Any],
        connection_timeout: float | None = None,
        response_timeout: float | None = None,
    ) -> str:
        """Returns all standards for a context as one text; raises `ProviderError`.

        The timeouts are in seconds; None leaves them to the provider.
        """
