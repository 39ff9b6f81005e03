"""The parts that flow, constraint and goal files share, as they may stand in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import Section
from signoff.flows.model import Goal
from signoff.review.behaviors import ConstraintBehavior
from signoff.review.constraint import SourceBlock

TEXT = "a text"
PATHS = "a list of paths"

Word = Annotated[str, Field(min_length=1, pattern=r"\S", description="a text that is not empty")]
AgentName = Annotated[str, Field(min_length=1, pattern=r"\S", description="an agent's name")]
Behavior = Literal["halt", "continue", "escalate", "ignore"]

BEHAVIOR = "one of: halt, continue, escalate, ignore"
BEHAVIORS = "behaviours by severity, as in {critical: halt, low: ignore}"


class SourceSection(Section):
    """Material to work from."""

    files: list[Word] = Field(default_factory=list, title="Files to read", description=PATHS)
    globs: list[Word] = Field(
        default_factory=list, title="Patterns of files to read", description="a list of patterns"
    )
    scripts: list[Word] = Field(
        default_factory=list,
        title="Programs whose output is read, where scripts are allowed",
        description="a list of commands",
    )
    inline: str = Field("", title="The material itself", description=TEXT)

    def block(self) -> SourceBlock:
        """Returns it as a value."""
        return SourceBlock(tuple(self.files), tuple(self.globs), tuple(self.scripts), self.inline)


class BehaviorSection(Section):
    """What issues do, by their severity; a severity that is not named is left to weaker levels."""

    critical: Behavior | None = Field(None, title="CRITICAL issues", description=BEHAVIOR)
    high: Behavior | None = Field(None, title="HIGH issues", description=BEHAVIOR)
    medium: Behavior | None = Field(None, title="MEDIUM issues", description=BEHAVIOR)
    low: Behavior | None = Field(None, title="LOW issues", description=BEHAVIOR)

    @model_validator(mode="before")
    @classmethod
    def _in_any_case(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        read: dict[str, Any] = {}
        for key, value in raw.items():
            name = str(key).strip().lower()
            if name in read:
                raise PydanticCustomError(ADVICE, "a severity stands there twice")
            read[name] = value.strip().lower() if isinstance(value, str) else value
        return read

    def behavior(self) -> ConstraintBehavior:
        """Returns it as a value that names only the severities it names."""
        said = self.model_dump(exclude_none=True)
        return ConstraintBehavior.from_dict(said)


class GoalSection(Section):
    """What is to be made."""

    goal: Word = Field(title="What is to be made", description="a text that says what to make")
    source: SourceSection = Field(
        default_factory=SourceSection,
        title="The material to make it from",
        description="files, globs, scripts or inline",
    )

    def value(self) -> Goal:
        """Returns it as a value."""
        return Goal(self.goal, self.source.block())


def _form(raw: Any) -> str | None:
    if isinstance(raw, Mapping | Section):
        return "mapping"
    return "text"


GoalField = Annotated[
    Annotated[Word, Tag("text")] | Annotated[GoalSection, Tag("mapping")], Discriminator(_form)
]
"""A goal's text, or a mapping with its material."""


class IndependenceSection(Section):
    """Whether critics may share the author's model family."""

    rule: Literal["none", "different_family"] = Field(
        "different_family", title="The rule", description="one of: none, different_family"
    )
    otherwise: Literal["refuse", "report"] = Field(
        "refuse", title="When it cannot be kept", description="one of: refuse, report"
    )


IndependenceField = Annotated[
    Annotated[Literal["none", "different_family"], Tag("text")]
    | Annotated[IndependenceSection, Tag("mapping")],
    Discriminator(_form),
]
"""The rule alone, or a mapping that also says what happens otherwise."""
