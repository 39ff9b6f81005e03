"""Compiles a profile to a workflow: the transition table becomes its steps and edges."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from signoff.core.args import Param
from signoff.core.digest import text_digest
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.documents.regular_files import read_regular
from signoff.error_text import describe_error
from signoff.errors import ConfigError, Problem
from signoff.notation import Ask, CompileContext
from signoff.profiles import library
from signoff.profiles.context_schema import context_params, option_values, read_context_files
from signoff.profiles.discovery import find_profile, load_profiles
from signoff.profiles.factories import (
    AIProviderFactory,
    ApprovalProviderFactory,
    InvalidProfile,
    ProfileRegistry,
    StandardsProviderFactory,
)
from signoff.profiles.phases import WorkflowPhase, WorkflowStage
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.profile_calls import create_profile, create_prompt
from signoff.profiles.provider_agents import ApproverAgent, ProviderAgent
from signoff.profiles.session import (
    MANUAL,
    ROLES,
    SKIP,
    STANDARDS_PARAM,
    STANDARDS_PROVIDER_PARAM,
    Session,
    StageRules,
    position_of,
    step_id,
)
from signoff.profiles.settings import SECTION, STAGES, ProfileSettings, agent_name
from signoff.profiles.stages import StageHandler
from signoff.profiles.standards_source import StandardsSource, unknown_profiles
from signoff.profiles.transitions import SessionCommand, TransitionResult, TransitionTable
from signoff.runtime.ports import Agent

T = TypeVar("T")

MOST_ROUNDS = 1000
"""How often a human may send a session back to the same stage."""

_OUTCOMES: Mapping[SessionCommand, Outcome] = {
    SessionCommand.APPROVE: Outcome.OK,
    SessionCommand.APPROVE_COMPLETE: Outcome.OK,
    SessionCommand.APPROVE_REVISE: Outcome.FAIL,
    SessionCommand.REJECT: Outcome.ITERATE,
}
"""The outcome for each command; `cancel` is the engine's own. What leads back to its own stage
is always `iterate`."""


def resolve(name: str, context: CompileContext) -> Workflow:
    """Returns the workflow of a profile's sessions."""
    profile_class = find_profile(name, context)
    metadata = profile_class.get_metadata()
    section = ProfileSettings.of(context.settings)
    options = _options(name, metadata.get("options") or {}, section)
    session = _session(name, create_profile(profile_class, options), section, context)
    agents = _agents(session)
    schema = metadata.get("context_schema", {})
    return Workflow(
        name,
        *_steps(session, section.max_iterations),
        entry_point=_entry_point(),
        description=str(metadata.get("description", "")),
        max_iterations=section.max_iterations,
        notation="profiles",
        source=_source(session, profile_class, section, context),
        inputs=_inputs(name, schema, context),
        prepare=_Preparation(session, agents, schema, section, context.root),
        agents=agents,
    )


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents that respond and approve; a model is never named for them."""
    source = workflow.source
    approvers = (rule["approver"] for rule in source["approval"].values())
    return [Ask(name) for name in dict.fromkeys([*source["providers"].values(), *approvers])]


def _session(
    name: str, profile: WorkflowProfile, section: ProfileSettings, context: CompileContext
) -> Session:
    providers = {
        role: agent_name(str(context.options.get(role) or section.provider_for(role)))
        for role in ROLES.values()
    }
    rules = {
        step_id(phase, stage): _rules(section, phase, stage, context)
        for phase, stage in map(position_of, STAGES)
    }
    standards = {section.standards_provider, section.standards.get(name, {}).get("provider")}
    used = {*providers.values(), *(rule.approver for rule in rules.values()), *standards} - {None}
    if not used <= {
        *context.agents,
        *AIProviderFactory.registered(),
        *ApprovalProviderFactory.keys(),
        *StandardsProviderFactory.keys(),
    }:
        # Another profile may register what the settings of the project name for all of them.
        load_profiles(context)
    _refuse_unknown(name, section, providers, context)
    approving = ApprovalProviderFactory.keys()
    by_hand = frozenset(
        agent
        for agent in providers.values()
        if (known := context.agents.get(agent)) is not None and known.capabilities.answered_by_human
    )
    approvers = {
        rule.approver: f"approver:{rule.approver}"
        for rule in rules.values()
        if rule.approver not in (MANUAL, SKIP) and rule.approver in approving
    }
    abilities = {
        key: AIProviderFactory.get_class(key).fs_ability
        for key in set(providers.values()).intersection(AIProviderFactory.registered())
    }
    return Session(
        name, profile, providers, rules, by_hand, approvers, section.hash_prompts, abilities
    )


def _options(name: str, schema: Mapping[str, Any], section: ProfileSettings) -> dict[str, Any]:
    """Returns the profile's own options; raises `InvalidProfile` for wrong ones."""
    values, problems = option_values(
        schema, section.options.get(name, {}), f"{SECTION}.options.{name}"
    )
    if problems:
        raise InvalidProfile(name, problems)
    return values


def _rules(
    section: ProfileSettings, phase: WorkflowPhase, stage: WorkflowStage, context: CompileContext
) -> StageRules:
    rules = section.stage(step_id(phase, stage))
    if stage is WorkflowStage.PROMPT and context.options.get("skip_prompts"):
        return replace(rules, approver=SKIP)
    if not rules.criteria_file:
        return rules
    try:
        criteria = read_regular(context.root / rules.criteria_file, None, follow=True).decode()
    except (OSError, UnicodeDecodeError) as error:
        where = f"profiles.approval.stages.{step_id(phase, stage)}.criteria_file"
        raise ConfigError(f"{where}: cannot read {rules.criteria_file}: {error}") from error
    return replace(rules, criteria=criteria)


def _refuse_unknown(
    name: str, section: ProfileSettings, providers: Mapping[str, str], context: CompileContext
) -> None:
    """Raises `InvalidProfile` for providers, approvers and profiles that do not exist."""
    if context.agent_names is None:
        # A run under way is not affected by what the settings name now.
        return
    known = {*context.agent_names, *AIProviderFactory.registered()}
    problems = [*section.unknown_names(known, {*known, *ApprovalProviderFactory.keys()})]
    problems += [
        Problem(role, f"unknown provider {provider!r}", f"valid: {', '.join(sorted(known))}")
        for role, provider in providers.items()
        if provider not in known and role in context.options
    ]
    problems += unknown_profiles(section, context)
    if problems:
        raise InvalidProfile(name, problems)


def _entry_point() -> str:
    first = TransitionTable.get(WorkflowPhase.INIT, None, SessionCommand.INIT)
    if first is None or first.stage is None:
        raise ConfigError("the transition table has no way to start a session")
    return step_id(first.phase, first.stage)


def _steps(session: Session, max_iterations: int) -> Iterator[StepDef]:
    for phase, stage in map(position_of, STAGES):
        yield StepDef(
            step_id(phase, stage),
            title=f"{phase.value.capitalize()}: {stage.value}",
            handler=StageHandler(session, phase, stage),
            next=_edges(phase, stage, max_iterations),
            phase=phase.value,
        )


def _edges(phase: WorkflowPhase, stage: WorkflowStage, max_iterations: int) -> dict[Outcome, Edge]:
    edges: dict[Outcome, Edge] = {}
    for command, outcome in _OUTCOMES.items():
        row = TransitionTable.get(phase, stage, command)
        if row is None:
            continue
        if (row.phase, row.stage) == (phase, stage):
            back = Edge(step_id(phase, stage), bound=MOST_ROUNDS, on_limit="ask", resets=True)
            edges[Outcome.ITERATE] = back
        else:
            edges[outcome] = _edge(phase, row, max_iterations)
    return edges


def _edge(phase: WorkflowPhase, row: TransitionResult, max_iterations: int) -> Edge:
    if row.stage is None:
        return Edge(None)
    to = step_id(row.phase, row.stage)
    match phase, row.phase:
        case WorkflowPhase.REVIEW, WorkflowPhase.REVISE:
            # A failed review starts the next round, and the revision already belongs to it.
            return Edge(to, starts_iteration=True)
        case WorkflowPhase.REVISE, WorkflowPhase.REVIEW:
            # The rounds limit this loop; the engine's own bound on loops may be lower.
            return Edge(to, bound=max_iterations)
        case _:
            return Edge(to)


def _agents(session: Session) -> dict[str, Agent]:
    """Returns the registered providers and approvers that a session uses, as agents."""
    used = {*session.providers.values(), *(rule.approver for rule in session.rules.values())}
    agents: dict[str, Agent] = {
        key: ProviderAgent(key, _created(AIProviderFactory, key))
        for key in sorted(used.intersection(AIProviderFactory.registered()))
    }
    for key, agent in session.approvers.items():
        agents[agent] = ApproverAgent(key, _created(ApprovalProviderFactory, key))
    return agents


def _created(factory: type[ProfileRegistry[T]], key: str) -> T:
    try:
        return factory.create(key)
    except Exception as error:
        # The user's own code may raise anything.
        what = f"{factory.kind} {key!r} cannot be created: {describe_error(error)}"
        raise ConfigError(what) from error


def _source(
    session: Session,
    profile_class: type[WorkflowProfile],
    section: ProfileSettings,
    context: CompileContext,
) -> dict[str, Any]:
    """Returns what the sessions depend on, as data."""
    labels = {name: context.options[name] for name in ("task_id", "dev") if name in context.options}
    return {
        "profile": session.name,
        "code": _code_digest(profile_class),
        "providers": dict(session.providers),
        "approval": {
            step: {
                "approver": rule.approver,
                "max_retries": rule.max_retries,
                "allow_rewrite": rule.allow_rewrite,
                "criteria": rule.criteria,
                "presence": rule.presence,
            }
            for step, rule in session.rules.items()
        },
        "options": dict(session.profile.options),
        "standards_provider": section.standards_provider,
        "hash_prompts": session.hash_prompts,
        "metadata": labels,
    }


@cache
def _code_digest(profile_class: type[WorkflowProfile]) -> str:
    """Returns the digest of a user's profile; an upgrade of a shipped one strands no session."""
    if profile_class.__module__.startswith(f"{library.__name__}."):
        return ""
    try:
        return text_digest(inspect.getsource(profile_class))
    except (OSError, TypeError):
        # Defined at a prompt; such a profile cannot be compared.
        return ""


def _inputs(name: str, schema: Mapping[str, Any], context: CompileContext) -> dict[str, Param]:
    params, problems = context_params(schema, context.root)
    if problems:
        raise InvalidProfile(name, problems)
    return params


@dataclass(frozen=True)
class _Preparation:
    """Reads what a session needs from outside, once, before it starts."""

    session: Session
    agents: Mapping[str, Agent]
    schema: Mapping[str, Any]
    section: ProfileSettings
    root: Path

    def __call__(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the files that the context names, and the standards."""
        profile = self.session.profile
        for agent in self.agents.values():
            if isinstance(agent, ProviderAgent):
                agent.provider.validate()
        texts = read_context_files(self.schema, context, self.root)
        # Called again by the first step; a profile that cannot even start leaves no run behind.
        create_prompt(profile, WorkflowPhase.PLAN, {**context, **texts})
        return {**texts, **self._standards(profile, {**context, **texts})}

    def _standards(self, profile: WorkflowProfile, context: Mapping[str, Any]) -> dict[str, str]:
        source = StandardsSource.of(self.session.name, profile, self.section, context)
        if not source.config:
            return {STANDARDS_PARAM: ""}
        provider = source.create(self.root)
        bundle = provider.create_bundle(context)
        for warning in provider.warnings:
            logging.getLogger("signoff").warning("standards: %s", warning)
        return {STANDARDS_PARAM: bundle, STANDARDS_PROVIDER_PARAM: source.provider}
