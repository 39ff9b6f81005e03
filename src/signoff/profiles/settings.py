"""The `profiles:` section of the settings: who responds at each role, and who approves what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from signoff.documents.sections import Section
from signoff.profiles.factories import AGENT_ALIASES
from signoff.profiles.session import MANUAL, StageRules, position_of, step_id
from signoff.profiles.transitions import TransitionTable, WorkflowPhase, WorkflowStage

SECTION = "profiles"

STAGES = tuple(
    step_id(phase, stage)
    for phase in WorkflowPhase
    for stage in WorkflowStage
    if TransitionTable.commands(phase, stage)
)
"""The stages of a session in their order; each has an approver."""

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


def _stage_from_name(raw: Any) -> Any:
    """Returns the settings of a stage for which only an approver is named."""
    return {"approver": raw} if isinstance(raw, str) else raw


def _field(stage: str) -> str:
    # Names of stages contain a dot, which no attribute can.
    return stage.replace(".", "_")


_StageField = Annotated[
    StageSection, BeforeValidator(_stage_from_name, json_schema_input_type=str | StageSection)
]
_STAGE = "an approver, as in `skip`, or {approver, max_retries, ...}"

_STAGE_FIELDS: dict[str, Any] = {
    _field(name): (_StageField, Field(default_factory=StageSection, alias=name, description=_STAGE))
    for name in STAGES
}
# A model and not a mapping, so that a misspelled stage is refused with the names of all stages.
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

    @property
    def by_name(self) -> dict[str, dict[str, Any]]:
        """The values of each profile that has any; a key without a value counts as absent."""
        extra = self.__pydantic_extra__
        return {name: values for name, values in extra.items() if values is not None}


class ProfilesSection(Section):
    """What sessions of profiles use unless the command line says otherwise."""

    providers: ProvidersSection = Field(
        default_factory=ProvidersSection, description="providers by role"
    )
    approval: GatesSection = Field(
        default_factory=GatesSection, description="approvers by stage, and their defaults"
    )
    max_iterations: int = Field(5, ge=1, description="a whole number from 1")
    """How many reviews a session may have; the last one that fails ends it."""
    hash_prompts: bool = Field(False, description=_YES_NO)
    """Whether the state holds the digest of each approved prompt."""
    standards_provider: str | None = Field(
        None, min_length=1, description="the name of a standards provider"
    )
    """Replaces the provider that a profile names."""
    standards: ByProfileSection = Field(
        default_factory=ByProfileSection,
        description="a configuration by profile, as in {python-module: {root: standards, ...}}",
    )
    """The configuration of standards by profile; replaces the profile's own."""
    options: ByProfileSection = Field(
        default_factory=ByProfileSection,
        description="the options of profiles, as in {letter: {language: en}}",
    )
    dir: str | None = Field(None, min_length=1, description="the path of a folder")
    """The folder of local profiles, relative to the project's root."""

    @classmethod
    def of(cls, settings: Mapping[str, Mapping[str, Any]]) -> ProfilesSection:
        """Returns the section out of all those that notations brought, which were checked."""
        return cls.model_validate(settings.get(SECTION, {}))

    def provider_for(self, role: str) -> str:
        """Returns the name of the provider that responds in a role."""
        return agent_name(getattr(self.providers, role) or self.providers.default or MANUAL)

    def stage(self, name: str) -> StageRules:
        """Returns how a stage such as `plan.prompt` is approved."""
        gates = self.approval
        rules = StageRules(
            gates.default_approver,
            gates.default_max_retries,
            gates.default_allow_rewrite,
            presence=gates.default_presence,
        )
        if gates.default_prompt_approver and position_of(name)[1] is WorkflowStage.PROMPT:
            rules = replace(rules, approver=gates.default_prompt_approver)
        own: StageSection = getattr(gates.stages, _field(name))
        # 0 and false are values; only what a stage leaves out is the default.
        rules = replace(rules, **own.model_dump(exclude_none=True))
        return replace(rules, approver=agent_name(rules.approver))


def agent_name(name: str) -> str:
    """Returns the name under which an agent or provider is known here."""
    return AGENT_ALIASES.get(name, name)
