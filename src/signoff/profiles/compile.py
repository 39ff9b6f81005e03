"""Compiles a profile to a workflow: the transition table becomes its steps and edges."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from signoff.core.args import Arg, Param, bind, fit
from signoff.core.code import EMPTY
from signoff.core.digest import text_digest
from signoff.core.errors import ConfigError, InvalidParams, Problem, ProviderError
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.documents.files import read_text
from signoff.documents.regular_files import read_regular
from signoff.notation import Ask, CompileContext
from signoff.profiles import factories, library
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.providers import ApproverAgent, ProviderAgent, StandardsProvider
from signoff.profiles.session import (
    ITERATION,
    MANUAL,
    ROLES,
    SKIP,
    STANDARDS_PARAM,
    STANDARDS_PROVIDER_PARAM,
    Session,
    StageRules,
    create_profile,
    create_prompt,
    position_of,
    standards_config,
    step_id,
)
from signoff.profiles.settings import SECTION, STAGES, ProfilesSection, agent_name
from signoff.profiles.stages import StageHandler
from signoff.profiles.transitions import (
    SessionCommand,
    TransitionResult,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
)
from signoff.runtime.error_text import describe_error
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
    profile_class = factories.find_profile(name, context)
    metadata = profile_class.get_metadata()
    section = ProfilesSection.of(context.settings)
    where, own = f"{SECTION}.options.{name}", section.options.by_name.get(name, {})
    options, problems = option_values(metadata.get("options") or {}, own, where)
    schema = metadata.get("context_schema", {})
    inputs, mistakes = context_params(schema, context.root)
    # Both are found before the author's own code runs, so a mistake in a declaration is never
    # reported as an error somewhere inside a profile.
    if problems := [*problems, *mistakes]:
        raise factories.InvalidProfile(name, problems)
    session = _session(name, create_profile(profile_class, options), section, context)
    agents = _agents(session)
    return Workflow(
        name,
        *_steps(session, section.max_iterations),
        description=str(metadata.get("description", "")),
        max_iterations=section.max_iterations,
        notation="profiles",
        source=_source(session, profile_class, section, context),
        inputs=inputs,
        prepare=_Preparation(session, agents, schema, section, context.root),
        agents=agents,
    )


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents that respond and approve; a model is never named for them."""
    source = workflow.source
    approvers = (rule["approver"] for rule in source["approval"].values())
    return [Ask(name) for name in dict.fromkeys([*source["providers"].values(), *approvers])]


def _session(
    name: str, profile: WorkflowProfile, section: ProfilesSection, context: CompileContext
) -> Session:
    providers = {
        role: agent_name(str(context.options.get(role) or section.provider_for(role)))
        for role in ROLES.values()
    }
    rules = {step: _rules(section, step, context) for step in STAGES}
    standards = {
        section.standards_provider,
        section.standards.by_name.get(name, {}).get("provider"),
    }
    # Loading every profile costs time and runs their code, so it is done only if a name is not
    # known without them.
    used = {*providers.values(), *(rule.approver for rule in rules.values()), *standards} - {None}
    if not used <= {
        *context.agents,
        *factories.AIProviderFactory.registered(),
        *factories.ApprovalProviderFactory.keys(),
        *factories.StandardsProviderFactory.keys(),
    }:
        # Another profile may register what the settings of the project name for all of them.
        factories.load_profiles(context)
    _refuse_unknown(name, section, providers, rules, context)
    approving = factories.ApprovalProviderFactory.keys()
    # Such an agent would only print the prompt and wait. A session waits for the response file
    # instead, so that its user can work with an editor and a chat window.
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
    # Agents that the settings name have no such declaration: what they get is decided by the user,
    # at a gate.
    abilities = {
        key: factories.AIProviderFactory.get_class(key).fs_ability
        for key in set(providers.values()).intersection(factories.AIProviderFactory.registered())
    }
    return Session(
        name, profile, providers, rules, by_hand, approvers, section.hash_prompts, abilities
    )


def _rules(section: ProfilesSection, step: str, context: CompileContext) -> StageRules:
    rules = section.stage(step)
    if context.options.get("skip_prompts") and position_of(step)[1] is WorkflowStage.PROMPT:
        return replace(rules, approver=SKIP)
    if not rules.criteria_file:
        return rules
    try:
        criteria = read_regular(context.root / rules.criteria_file, None, follow=True).decode()
    except (OSError, UnicodeDecodeError) as error:
        where = f"profiles.approval.stages.{step}.criteria_file"
        raise ConfigError(f"{where}: cannot read {rules.criteria_file}: {error}") from error
    return replace(rules, criteria=criteria)


def _refuse_unknown(
    name: str,
    section: ProfilesSection,
    providers: Mapping[str, str],
    rules: Mapping[str, StageRules],
    context: CompileContext,
) -> None:
    """Raises `InvalidProfile` for providers, approvers and profiles that do not exist."""
    if context.agent_names is None:
        # A run under way is not affected by what the settings name now.
        return
    known = {*context.agent_names, *factories.AIProviderFactory.registered()}
    approving = {*known, *factories.ApprovalProviderFactory.keys()}
    own = {role: role if role in context.options else f"providers.{role}" for role in providers}
    named = [(own[role], "provider", provider, known) for role, provider in providers.items()]
    named += [
        (f"approval.stages.{step}", "approver", rule.approver, approving)
        for step, rule in rules.items()
    ]
    problems = [
        Problem(where, f"unknown {kind} {each!r}", f"valid: {', '.join(sorted(valid))}")
        for where, kind, each, valid in named
        if each not in valid
    ]
    if problems := [*problems, *unknown_profiles(section, context)]:
        raise factories.InvalidProfile(name, problems)


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
        # A transition to its own stage is a rejection, or a review whose verdict selects one of the
        # other rows; both mean that a human looks at the stage again.
        if (row.phase, row.stage) == (phase, stage):
            # The bound is high because a human takes each round, and it starts afresh when the
            # stage is left: only a stage that nobody ever finishes reaches it.
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
        key: ProviderAgent(key, _created(factories.AIProviderFactory, key))
        for key in sorted(used.intersection(factories.AIProviderFactory.registered()))
    }
    for key, agent in session.approvers.items():
        agents[agent] = ApproverAgent(key, _created(factories.ApprovalProviderFactory, key))
    return agents


def _created(factory: type[factories.ProfileRegistry[T]], key: str) -> T:
    try:
        return factory.create(key)
    except Exception as error:
        # The user's own code may raise anything.
        what = f"{factory.kind} {key!r} cannot be created: {describe_error(error)}"
        raise ConfigError(what) from error


def _source(
    session: Session,
    profile_class: type[WorkflowProfile],
    section: ProfilesSection,
    context: CompileContext,
) -> dict[str, Any]:
    """Returns what the sessions depend on, as data."""
    labels = {name: context.options[name] for name in ("task_id", "dev") if name in context.options}
    return {
        "profile": session.name,
        "code": _code_digest(profile_class),
        "providers": dict(session.providers),
        "approval": {step: asdict(rules) for step, rules in session.rules.items()},
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


@dataclass(frozen=True)
class _Preparation:
    """Reads what a session needs from outside, once, before it starts."""

    session: Session
    agents: Mapping[str, Agent]
    schema: Mapping[str, Any]
    section: ProfilesSection
    root: Path

    def __call__(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the files that the context names, and the standards."""
        profile = self.session.profile
        # A provider without its key is found before the first prompt is written, and before
        # anything is paid for.
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


TYPES: Mapping[str, type] = {"string": str, "int": int, "bool": bool, "path": str}
"""The types of fields, and what their values become."""
KEYS = ("type", "required", "choices", "exists", "default", "description")

SUFFIX = "_text"
"""The text of the file in the field `ddl` is in the context as `ddl_text`."""

_VALID_KEYS = f"valid: {', '.join(KEYS)}"
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def context_params(
    schema: Mapping[str, Any], folder: Path, noun: str = "context field"
) -> tuple[dict[str, Param], list[Problem]]:
    """Returns the parameters of a schema by name, and everything that is wrong with the schema.

    `noun` is what messages call one of them. Relative paths start in `folder`. A field that is
    neither required nor has a default is None.
    """
    params: dict[str, Param] = {}
    problems: list[Problem] = []
    for name, field in schema.items():
        found = _mistakes(name, field)
        if not found:
            params[name], found = _param(name, field, folder)
        problems += [Problem(f"{noun} {name!r}", *mistake) for mistake in found]
    return params, problems


def option_values(
    schema: Mapping[str, Any], values: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Returns the options of a profile, checked by its own schema, and every problem.

    `where` is the setting that has the values; they are the same in every folder.
    """
    params, problems = context_params(schema, Path(), "option")
    if problems:
        return {}, problems
    options, problems = bind(params, values)
    return options, [
        replace(each, where=f"{where}: {each.where.removeprefix('parameter ')}")
        for each in problems
    ]


def read_context_files(
    schema: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any], folder: Path
) -> dict[str, str]:
    """Returns the texts of the files that a context names; raises `InvalidParams`.

    These are the fields of type `path` with `exists: true`. Relative paths start in `folder`;
    a path that leads to a folder has no text.
    """
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for name, field in schema.items():
        path = context.get(name)
        # Profiles get texts and never open files; these are the files that the user named for them.
        if not path or field.get("type") != "path" or not field.get("exists"):
            continue
        file = Path(folder, path)
        text = None if file.is_dir() else read_text(file, problems, name=f"{name}: {path}")
        if text is not None:
            texts[f"{name}{SUFFIX}"] = text
    if problems:
        raise InvalidParams(problems)
    return texts


def _mistakes(name: str, field: Any) -> list[tuple[str, str]]:
    """Returns what is wrong with the form of a field, each with its remedy."""
    # Names become parameters of a run and options on the command line, so they have to be typable
    # in both.
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return [("is not a valid name", "use letters, digits and underscores")]
    if name in (STANDARDS_PARAM, ITERATION):
        return [("is a name that the engine uses itself", "rename it")]
    if not isinstance(field, Mapping):
        return [("is not a mapping", _VALID_KEYS)]
    found = [(f"unknown key {key!r}", _VALID_KEYS) for key in field if key not in KEYS]
    kind = field.get("type", "string")
    if not isinstance(kind, str) or kind not in TYPES:
        found.append((f"unknown type {kind!r:.60}", f"valid: {', '.join(TYPES)}"))
    flags = [key for key in ("required", "exists") if not isinstance(field.get(key, False), bool)]
    found += [(f"{key} is {field[key]!r:.60}", "write true or false") for key in flags]
    if not isinstance(field.get("choices", []), list | tuple):
        found.append((f"choices is {field['choices']!r:.60}", "write a list"))
    if field.get("exists") and kind != "path":
        found.append(("exists is only for paths", "remove it, or write type: path"))
    return found


def _param(
    name: str, field: Mapping[str, Any], folder: Path
) -> tuple[Param, list[tuple[str, str]]]:
    """Returns a field as a parameter, and which of its values do not fit it."""
    required = field.get("required", False)
    plain = Param(name, TYPES[field.get("type", "string")], Arg(), optional=not required)
    choices = [fit(plain, choice) for choice in field.get("choices", ())]
    wrong = [f"choices: {why}" for _, why in choices if why]
    arg = Arg(str(field.get("description", "")), choices=tuple(each for each, _ in choices) or None)
    default = EMPTY
    if not required:
        # A default is converted like a value that a user types, so a profile gets the same type
        # either way.
        default, why = fit(replace(plain, arg=arg), field.get("default"))
        wrong += [f"default: {why}"] if why else []
    check = partial(_problem_with, required, folder if field.get("exists") else None)
    param = replace(plain, arg=arg, default=default, check=check)
    return param, [(each, "") for each in wrong]


def _problem_with(required: bool, folder: Path | None, value: Any) -> str:
    """Returns what is wrong with a converted value; `folder` is that of a path that must exist."""
    if isinstance(value, str) and not value.strip() and (required or folder):
        return "is empty"
    try:
        missing = folder is not None and not Path(folder, value).exists()
    except OSError as error:
        return f"{value!r:.80} cannot be read: {error.strerror}"
    return f"{value!r:.80} does not exist" if missing else ""


DEFAULT_PROVIDER = "scoped-layer-fs"
"""The provider of standards where none is named."""

_SETTING = f"{SECTION}.standards"


@dataclass(frozen=True)
class StandardsSource:
    """A provider of standards and its configuration."""

    provider: str
    config: Mapping[str, Any]
    """Empty if there are no standards."""
    setting: str = ""
    """The setting that has the configuration; empty if it is the profile's own."""

    @classmethod
    def of(
        cls,
        name: str,
        profile: WorkflowProfile,
        section: ProfilesSection,
        context: Mapping[str, Any],
    ) -> StandardsSource:
        """Returns the source for a profile's sessions; the settings replace the profile's own."""
        own = section.standards.by_name.get(name)
        if own is not None:
            # The setting for one profile is the more specific one, so it wins over the provider
            # that is set for all of them.
            provider = own.get("provider") or section.standards_provider or DEFAULT_PROVIDER
            return cls(str(provider), own, f"{_SETTING}.{name}")
        config = standards_config(profile, context)
        provider = section.standards_provider or config.get("provider") or DEFAULT_PROVIDER
        return cls(str(provider), config)

    def create(self, folder: Path) -> StandardsProvider:
        """Returns the provider, ready to be used; raises `ProviderError`.

        Relative paths of the configuration start in `folder`.
        """
        provider = factories.StandardsProviderFactory.create(
            self.provider, self.config, folder=folder
        )
        try:
            provider.validate()
        except ProviderError as error:
            if not self.setting:
                raise
            raise ProviderError(f"{self.setting}: {error}") from error
        return provider


def unknown_profiles(section: ProfilesSection, context: CompileContext) -> Iterator[Problem]:
    """Yields a problem for every profile that has standards in the settings and does not exist."""
    if not section.standards.by_name:
        return
    known = {each.name for each in factories.all_profiles(context)}
    for name in sorted(section.standards.by_name.keys() - known):
        valid = ", ".join(sorted(known))
        yield Problem(_SETTING, f"unknown profile {name!r}", f"valid: {valid}")
