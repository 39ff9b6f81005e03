"""The `checklists:` section of the settings."""

from pydantic import BaseModel, ConfigDict, Field


class ChecklistSection(BaseModel):
    """How items are presented."""

    model_config = ConfigDict(extra="forbid")

    greeting: str = Field("Please check", description="a few words")
