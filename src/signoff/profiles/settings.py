"""The `profiles:` section of the settings: who responds at each role, and who approves what.

The values are plain, because every step by hand reads them. `settings_section` checks the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.errors import Problem
from signoff.profiles.factories import AGENT_ALIASES
from signoff.profiles.session import MANUAL, ROLES, StageRules, position_of, step_id
from signoff.profiles.transitions import TransitionTable, WorkflowPhase, WorkflowStage

SECTION = "profiles"
_BY_NAME = ("providers", "standards", "options")

STAGES = tuple(
    step_id(phase, stage)
    for phase in WorkflowPhase
    for stage in WorkflowStage
    if TransitionTable.commands(phase, stage)
)
"""The stages of a session in their order; each has an approver."""


@dataclass(frozen=True)
class ProfileSettings:
    """What sessions of profiles use unless the command line says otherwise."""

    providers: Mapping[str, str] = field(default_factory=dict)
    """The provider of each role; `default` responds where a role has none."""
    default_stage: StageRules = field(default_factory=StageRules)
    """What a stage leaves out."""
    prompt_approver: str | None = None
    """The approver of prompts, where it is not that of all stages."""
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What stages say themselves, by `<phase>.<stage>`."""
    max_iterations: int = 5
    """How many reviews a session may have; the last one that fails ends it."""
    hash_prompts: bool = False
    """Whether the state holds the digest of each approved prompt."""
    standards_provider: str | None = None
    """Replaces the provider that a profile names."""
    standards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The configuration of standards by profile; replaces the profile's own."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The values of profiles' own options, by profile."""
    dir: str | None = None
    """The folder of local profiles, relative to the project's root."""

    @classmethod
    def of(cls, settings: Mapping[str, Mapping[str, Any]]) -> ProfileSettings:
        """Returns the section out of all those that notations brought, which were checked."""
        values = _present(settings.get(SECTION, {}))
        approval = _present(values.pop("approval", {}))
        stages, prompts = approval.pop("stages", {}), approval.pop("default_prompt_approver", None)
        defaults = {name.removeprefix("default_"): value for name, value in approval.items()}
        return cls(
            **{**values, **{name: _present(values.get(name, {})) for name in _BY_NAME}},
            default_stage=StageRules(**defaults),
            prompt_approver=prompts,
            stages={name: _present(stage_from_name(own)) for name, own in stages.items()},
        )

    def provider_for(self, role: str) -> str:
        """Returns the name of the provider that responds in a role."""
        default = self.providers.get("default", MANUAL)
        return agent_name(self.providers.get(role, default))

    def stage(self, name: str) -> StageRules:
        """Returns how a stage such as `plan.prompt` is approved."""
        default = self.default_stage
        if self.prompt_approver is not None and position_of(name)[1] is WorkflowStage.PROMPT:
            default = replace(default, approver=self.prompt_approver)
        own = replace(default, **self.stages.get(name, {}))
        return replace(own, approver=agent_name(own.approver))

    def unknown_names(
        self, providers: Collection[str], approvers: Collection[str]
    ) -> Iterator[Problem]:
        """Yields a problem for every provider and approver that is not among the known ones."""
        for role in (*ROLES.values(), "default"):
            if role in self.providers:
                where = f"{SECTION}.providers.{role}"
                yield from _unknown(where, "provider", self.providers[role], providers)
        default = self.default_stage.approver
        where = f"{SECTION}.approval"
        yield from _unknown(f"{where}.default_approver", "approver", default, approvers)
        if (prompts := self.prompt_approver) is not None:
            yield from _unknown(f"{where}.default_prompt_approver", "approver", prompts, approvers)
        for stage in STAGES:
            name = self.stages.get(stage, {}).get("approver")
            if name is not None:
                yield from _unknown(f"{where}.stages.{stage}", "approver", name, approvers)


def stage_from_name(raw: Any) -> Any:
    """Returns the settings of a stage for which only an approver is named."""
    return {"approver": raw} if isinstance(raw, str) else raw


def agent_name(name: str) -> str:
    """Returns the name under which an agent or provider is known here."""
    return AGENT_ALIASES.get(name, name)


def _unknown(where: str, kind: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    if agent_name(name) not in known:
        valid = ", ".join(sorted(known))
        yield Problem(where, f"unknown {kind} {name!r}", f"valid: {valid}")


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that are set; a key without a value counts as absent."""
    return {name: value for name, value in values.items() if value is not None}
