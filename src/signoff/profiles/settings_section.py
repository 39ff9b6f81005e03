"""Checks the `profiles:` section of settings files; `settings` holds the values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from signoff.documents.sections import Section
from signoff.profiles.session import StageRules
from signoff.profiles.settings import STAGES, ProfileSettings, stage_from_name

_PROVIDER = "the name of an agent or a registered provider"
_APPROVER = "manual, skip, or the name of an agent or a registered approver"
_RETRIES = "a whole number from 0"
_YES_NO = "true or false"


class ProvidersSection(Section):
    """The provider of each role; `default` responds where a role has none."""

    planner: str | None = Field(None, min_length=1, description=_PROVIDER)
    generator: str | None = Field(None, min_length=1, description=_PROVIDER)
    reviewer: str | None = Field(None, min_length=1, description=_PROVIDER)
    reviser: str | None = Field(None, min_length=1, description=_PROVIDER)
    default: str | None = Field(None, min_length=1, description=_PROVIDER)


class StageSection(Section):
    """The approver of one stage; what it leaves out is the default of all stages."""

    approver: str | None = Field(None, min_length=1, description=_APPROVER)
    max_retries: int | None = Field(None, ge=0, description=_RETRIES)
    allow_rewrite: bool | None = Field(None, description=_YES_NO)
    criteria_file: str | None = Field(None, min_length=1, description="the path of a file")
    presence: bool | None = Field(None, description=_YES_NO)


_StageField = Annotated[
    StageSection, BeforeValidator(stage_from_name, json_schema_input_type=str | StageSection)
]
_STAGE = "an approver, as in `skip`, or {approver, max_retries, ...}"

_STAGE_FIELDS: dict[str, Any] = {
    name.replace(".", "_"): (
        _StageField,
        Field(default_factory=StageSection, alias=name, description=_STAGE),
    )
    for name in STAGES
}
StagesSection: Any = create_model(
    "StagesSection",
    __base__=Section,
    __doc__="The approver of each stage, by `<phase>.<stage>`.",
    **_STAGE_FIELDS,
)


class GatesSection(Section):
    """The approvers of the stages, and the defaults for those that name none."""

    default_approver: str = Field(StageRules.approver, min_length=1, description=_APPROVER)
    default_prompt_approver: str | None = Field(None, min_length=1, description=_APPROVER)
    default_max_retries: int = Field(StageRules.max_retries, ge=0, description=_RETRIES)
    default_allow_rewrite: bool = Field(StageRules.allow_rewrite, description=_YES_NO)
    default_presence: bool = Field(StageRules.presence, description=_YES_NO)
    stages: StagesSection = Field(default_factory=StagesSection, description="approvers by stage")


class ByProfileSection(BaseModel):
    """Values by profile, which the provider of standards or the profile itself checks.

    A model and not a mapping, so that a settings file overrides single profiles.
    """

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, dict[str, Any] | None]


class ProfilesSection(Section):
    """What sessions of profiles use unless the command line says otherwise."""

    providers: ProvidersSection = Field(
        default_factory=ProvidersSection, description="providers by role"
    )
    approval: GatesSection = Field(
        default_factory=GatesSection, description="approvers by stage, and their defaults"
    )
    max_iterations: int = Field(
        ProfileSettings.max_iterations, ge=1, description="a whole number from 1"
    )
    hash_prompts: bool = Field(ProfileSettings.hash_prompts, description=_YES_NO)
    standards_provider: str | None = Field(
        None, min_length=1, description="the name of a standards provider"
    )
    standards: ByProfileSection = Field(
        default_factory=ByProfileSection,
        description="a configuration by profile, as in {python-module: {root: standards, ...}}",
    )
    options: ByProfileSection = Field(
        default_factory=ByProfileSection,
        description="the options of profiles, as in {letter: {language: en}}",
    )
    dir: str | None = Field(None, min_length=1, description="the path of a folder")
