"""What the author of a profile implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.profiles.model import ProcessingResult


class WorkflowProfile(ABC):
    """Prompts for one domain, and what the responses to them contain.

    A profile gets strings and mappings and returns strings and `ProcessingResult`s. It never
    reads or writes files, calls a provider or decides what follows: the engine does. Prompts also
    get the number of the round, as `iteration` in their context.
    """

    can_regenerate_prompts: bool = False
    """Whether a rejected prompt is created again, with the approver's feedback in the context."""

    options: Mapping[str, Any] = MappingProxyType({})
    """The values of the profile's `options`, from the settings in `profiles.options`."""

    @classmethod
    @abstractmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        """Returns the profile's `name`, `description` and `context_schema`.

        The schema maps the name of each field of the context to `type` (string, int, bool or
        path), `required`, `choices`, `exists`, `default` and `description`, all optional. A
        schema of the same form in `options` declares what the settings can set for all sessions.
        """

    @abstractmethod
    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the configuration of the standards provider; empty for no standards."""

    @abstractmethod
    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for a plan."""

    @abstractmethod
    def generate_generation_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for the code of the approved plan."""

    @abstractmethod
    def generate_review_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks for a review of the code."""

    @abstractmethod
    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        """Returns the prompt that asks to fix what the review found."""

    @abstractmethod
    def process_planning_response(self, content: str) -> ProcessingResult:
        """Reads a plan."""

    @abstractmethod
    def process_generation_response(self, content: str) -> ProcessingResult:
        """Reads the generated code; its files go into the write plan."""

    @abstractmethod
    def process_review_response(self, content: str) -> ProcessingResult:
        """Reads a review; `metadata["verdict"]` replaces the verdict of `@@@REVIEW_META`."""

    @abstractmethod
    def process_revision_response(self, content: str) -> ProcessingResult:
        """Reads the revised code; its files go into the write plan."""
