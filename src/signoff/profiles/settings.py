"""The `profiles:` section of the settings: who responds at each role, and who approves what."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, create_model

from signoff.documents.sections import Section
from signoff.errors import Problem
from signoff.light_dataclass import light_dataclass
from signoff.profiles.factories import AGENT_ALIASES
from signoff.profiles.phases import WorkflowPhase, WorkflowStage
from signoff.profiles.session import MANUAL, ROLES, step_id
from signoff.profiles.transitions import TransitionTable

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


@light_dataclass(frozen=True)
class StageSettings:
    """How one stage is approved."""

    approver: str = MANUAL
    max_retries: int = 0
    """How often a rejected response is requested again."""
    allow_rewrite: bool = False
    """Whether the content that an approver suggests replaces a rejected prompt."""
    criteria_file: str | None = None
    """A file with what the approver has to check, relative to the project's root."""


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


def _field_name(stage: str) -> str:
    return stage.replace(".", "_")


def _stage_from_name(raw: Any) -> Any:
    return {"approver": raw} if isinstance(raw, str) else raw


_StageField = Annotated[
    StageSection, BeforeValidator(_stage_from_name, json_schema_input_type=str | StageSection)
]
_STAGE = "an approver, as in `skip`, or {approver, max_retries, allow_rewrite, criteria_file}"

_STAGE_FIELDS: dict[str, Any] = {
    _field_name(name): (
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

    default_approver: str = Field(MANUAL, min_length=1, description=_APPROVER)
    default_max_retries: int = Field(0, ge=0, description=_RETRIES)
    default_allow_rewrite: bool = Field(False, description=_YES_NO)
    stages: StagesSection = Field(default_factory=StagesSection, description="approvers by stage")


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
    dir: str | None = Field(None, min_length=1, description="the path of a folder")
    """The folder of local profiles, relative to the project's root."""

    @classmethod
    def of(cls, settings: Mapping[str, Mapping[str, Any]]) -> ProfilesSection:
        """Returns the section out of all those that notations brought."""
        return cls.model_validate(settings.get(SECTION, {}))

    def provider_for(self, role: str) -> str:
        """Returns the name of the provider that responds in a role."""
        providers = self.providers
        return agent_name(getattr(providers, role) or providers.default or MANUAL)

    def stage(self, name: str) -> StageSettings:
        """Returns how a stage such as `plan.prompt` is approved."""
        own = self._own_stage(name)
        defaults = {
            "approver": self.approval.default_approver,
            "max_retries": self.approval.default_max_retries,
            "allow_rewrite": self.approval.default_allow_rewrite,
        }
        values: dict[str, Any] = defaults | own.model_dump(exclude_none=True)
        return StageSettings(**{**values, "approver": agent_name(values["approver"])})

    def unknown_names(
        self, providers: Collection[str], approvers: Collection[str]
    ) -> Iterator[Problem]:
        """Yields a problem for every provider and approver that is not among the known ones."""
        for role in (*ROLES.values(), "default"):
            name = getattr(self.providers, role)
            if name is not None:
                yield from _unknown(f"{SECTION}.providers.{role}", "provider", name, providers)
        default = self.approval.default_approver
        where = f"{SECTION}.approval"
        yield from _unknown(f"{where}.default_approver", "approver", default, approvers)
        for stage in STAGES:
            name = self._own_stage(stage).approver
            if name is not None:
                yield from _unknown(f"{where}.stages.{stage}", "approver", name, approvers)

    def _own_stage(self, name: str) -> StageSection:
        section: StageSection = getattr(self.approval.stages, _field_name(name))
        return section


def agent_name(name: str) -> str:
    """Returns the name under which an agent or provider is known here."""
    return AGENT_ALIASES.get(name, name)


def _unknown(where: str, kind: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    if agent_name(name) not in known:
        valid = ", ".join(sorted(known))
        yield Problem(where, f"unknown {kind} {name!r}", f"valid: {valid}")
