"""Reads flow files and the files they refer to: one call returns a flow, its goal and constraints.

A goal file says what to write, and names the material for it. Mistakes in all files are collected
and reported together, each with its file and line.

Flow files have two forms: with a list of steps of their own, and without one, the fixed loop:
generate, critique, adjudicate, refine. Every key of the fixed loop is optional. It is a plain flow
with other defaults: three critics, edits that are checked, and a human who is asked when it does
not converge. What a judge applies and when a human is asked has two places in both forms, because
`termination` is another one for two of these keys; a file may use either, or both as long as they
agree.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.requests import AnswerableBy
from signoff.core.severity import DEFAULT_BLOCK_ON, SEVERITIES, IssueBehavior, Severity
from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import (
    Mistake,
    format_path,
    line_of,
    mistakes_of,
    unknown_key,
)
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.review.flow import sections, validation
from signoff.review.flow.model import (
    AdjudicationConfig,
    ConvergenceConfig,
    FlowSettings,
    GenflowConfig,
    Mode,
    ModelName,
    StepKind,
    Tension,
    Trigger,
    WorkflowStep,
    keys_of,
    owners,
    with_ids,
)
from signoff.review.flow.prompt_files import read_templates
from signoff.review.pure.constraint import Constraint, ConstraintBehavior

F = TypeVar("F", bound="AnyFlowFile")


class GoalFile(sections.Goal):
    """What to write, and the material for it."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""


def load_goal(path: Path | str) -> sections.Goal:
    """Returns the goal of a file, or of a folder that contains one; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    goal = read_goal(Path(path), problems)
    if goal is None:
        raise InvalidWorkflow("goal", problems)
    return goal


def read_goal(path: Path, problems: list[Problem]) -> sections.Goal | None:
    """Returns the goal of a file or a folder; None after adding to `problems`."""
    if path.is_dir():
        return _goal_of_folder(path, problems)
    file = SourceFile(path)
    if path.suffix.lower() in (".yaml", ".yml") and isinstance(file.content, dict | None):
        return _goal_of_mapping(file, problems)
    text = read_text(path, problems)
    if text is not None and not text.strip():
        problems.append(Problem(display_path(path), "is empty", "write the goal into it"))
    return sections.Goal(goal=text) if text and text.strip() else None


def _goal_of_folder(folder: Path, problems: list[Problem]) -> sections.Goal | None:
    names = [name for name in ("goal.yaml", "goal.yml", "goal.md") if (folder / name).is_file()]
    if not names:
        problems.append(Problem(display_path(folder), "contains no goal.yaml and no goal.md"))
        return None
    return read_goal(folder / names[0], problems)


def _goal_of_mapping(file: SourceFile, problems: list[Problem]) -> sections.Goal | None:
    document = file.mapping(problems, "fields", VERSION)
    if document is None:
        return None
    try:
        goal = GoalFile.model_validate(document.content)
    except ValidationError as error:
        found = [mistake.problem(document.at) for mistake in mistakes_of(error, GoalFile)]
        problems.extend(sorted(found, key=line_of))
        return None
    return sections.Goal(goal=goal.goal, source=goal.source)


@dataclass(frozen=True)
class ReadFlow:
    """A flow with everything that its file refers to."""

    config: GenflowConfig
    goal: sections.Goal | None
    """From the goal file, otherwise from the flow file; None if neither has one."""
    constraints: tuple[Constraint, ...]
    """In the order of definition."""
    prompts: Mapping[str, str]
    """The templates of prompts that the flow replaces, by name."""
    warnings: tuple[str, ...]
    """What is odd but not a mistake, each with its location."""


def read_flow(
    file: SourceFile,
    *,
    root: Path,
    home: Path | None = None,
    goal: Path | None = None,
    known: Collection[str] | None = None,
    agents: Mapping[str, KnownAgent] | None = None,
    default_agent: str = DEFAULT_AGENT,
) -> ReadFlow:
    """Reads a flow file, its constraints and its goal; raises `InvalidWorkflow` with every problem.

    Relative paths start at `root`, the project's folder, or else next to the file. `known` are
    the agents that can be asked, and `agents` what is known about them; None skips a check.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    document, config = _read(file, problems)
    goal_in_file = read_goal(goal, problems) if goal is not None else None
    constraints: list[Constraint] = []
    prompts: dict[str, str] = {}
    folders = (root, file.path.parent)
    if document is not None:
        section = config.constraints if config is not None else _constraints_in(document.content)
        lookup = sections.ConstraintLookup(section, folders, home, document, problems, warnings)
        constraints = lookup.constraints()
    if document is not None and config is not None:
        if config.prompts is not None:
            prompts = read_templates(config.prompts, folders[::-1], document.at, problems)
        # Some rules need the constraints. They would report nonsense about a flow in doubt.
        found = validation.flow_mistakes(config, constraints) if not problems else []
        found += validation.unknown_agents(config, constraints, known)
        found += validation.unable_writers(config, agents or {}, default_agent)
        found += validation.unable_reviewers(config, constraints, agents or {})
        problems.extend(mistake.problem(document.at) for mistake in found)
    if document is None or config is None or problems:
        raise InvalidWorkflow(file.name, problems)
    warnings.extend(m.problem(document.at) for m in validation.flow_warnings(config, constraints))
    texts = tuple(str(each) for each in warnings)
    return ReadFlow(config, goal_in_file or config.goal, tuple(constraints), prompts, texts)


def _constraints_in(raw: Mapping[str, Any]) -> sections.ConstraintConfig:
    """Returns where an invalid flow has its constraints: their mistakes are reported, too."""
    try:
        return sections.ConstraintConfig.model_validate(raw.get("constraints") or {})
    except ValidationError:
        return sections.ConstraintConfig()


def read_flow_file(path: Path) -> GenflowConfig:
    """Returns a flow file without the files it refers to; raises `InvalidWorkflow`."""
    problems: list[Problem] = []
    _document, config = _read(SourceFile(path), problems)
    if config is None or problems:
        raise InvalidWorkflow(display_path(path), problems)
    return config


def read_policy(path: Path, base: GenflowConfig) -> GenflowConfig:
    """Returns a flow with the policy of a file: the behaviors, and what blocks approval.

    The file is a whole flow, or has only those of its keys; whatever it leaves out stays as it
    is in `base`, severity by severity. Raises `InvalidWorkflow` with every problem.
    """
    config = read_flow_file(path)
    keys = SourceFile(path).content
    # A file without steps is read as the fixed loop, which fills in severities of its own.
    own = ConstraintBehavior.from_dict(keys.get("default_behavior") or {}).by_severity
    changes: dict[str, Any] = {
        "default_behavior": ConstraintBehavior({**base.default_behavior.by_severity, **own})
    }
    if "constraint_behaviors" in keys:
        changes["constraint_behaviors"] = config.constraint_behaviors
    if (keys.get("adjudication") or {}).get("approval") or keys.get("termination"):
        block_on = config.adjudication.block_on
        changes["adjudication"] = replace(base.adjudication, block_on=block_on)
    return base.model_copy(update=changes)


def config_from_dict(raw: Mapping[str, Any], name: str = "flow") -> GenflowConfig:
    """Reads a flow as it is in YAML; raises `InvalidWorkflow` with every problem."""
    problems: list[Problem] = []
    if not isinstance(raw, Mapping):
        problems.append(Problem(name, f"is {raw!r:.60}", "a mapping with `workflow`"))
        raise InvalidWorkflow(name, problems)
    config = _checked(dict(raw), lambda path: format_path(path) or name, problems)
    if config is None or problems:
        raise InvalidWorkflow(name, problems)
    return config


def step_from_dict(raw: Mapping[str, Any]) -> WorkflowStep:
    """Reads one step as it is in YAML; raises `InvalidWorkflow` with every problem."""
    file, mistakes = _validated(FlowFile, {"workflow": [raw]})
    if file is None or mistakes:
        raise InvalidWorkflow("step", [mistake.problem(format_path) for mistake in mistakes])
    return with_ids(file.workflow)[0]


# Set here because this module imports the models, and not the other way around.
WorkflowStep.from_dict = staticmethod(step_from_dict)
GenflowConfig.from_dict = staticmethod(config_from_dict)


def _read(
    file: SourceFile, problems: list[Problem]
) -> tuple[Document | None, GenflowConfig | None]:
    document = file.mapping(problems, "settings of a flow", VERSION)
    config = _checked(document.content, document.at, problems) if document is not None else None
    return document, config


def _checked(
    raw: dict[str, Any], at: Callable[[KeyPath], str], problems: list[Problem]
) -> GenflowConfig | None:
    """Returns what can be read of a flow; adds every mistake, in the order of the file.

    If there are problems, the result is only good for finding more of them.
    """
    file, mistakes = _validated(_form_of(raw), raw)
    config = file.config() if file is not None else None
    if file is not None and config is not None and not mistakes:
        # Rules about the whole flow would report nonsense about one whose values are in doubt.
        mistakes = [*file.disagreements(), *validation.flow_mistakes(config)]
    problems.extend(sorted((mistake.problem(at) for mistake in mistakes), key=line_of))
    return config


def _validated(form: type[F], raw: dict[str, Any]) -> tuple[F | None, list[Mistake]]:
    """Returns a file, and what is wrong with its values."""
    # The model of a step has the keys of all kinds, so it would accept those of another kind.
    mistakes = list(_keys_of_other_kinds(raw.get("workflow")))
    try:
        return form.model_validate(raw), mistakes
    except ValidationError as error:
        return None, [*mistakes, *mistakes_of(error, form)]


def _keys_of_other_kinds(steps: Any) -> Iterator[Mistake]:
    for position, step in enumerate(steps if isinstance(steps, list) else ()):
        kind = step.get("step") if isinstance(step, Mapping) else None
        if not isinstance(kind, str) or kind not in set(StepKind):
            continue
        valid = keys_of(StepKind(kind))
        for key in step:
            if key not in valid and key in WorkflowStep.model_fields:
                path = ("workflow", position, key)
                yield Mistake(path, *unknown_key(str(key), valid, owners(key)))


def _form_of(raw: Mapping[str, Any]) -> type[FlowFile | GenloopFile]:
    """Returns whether a file lists its steps (`workflow` may have a typo) or is the fixed loop."""
    if "workflow" in raw:
        return FlowFile
    others = [key for key in raw if key not in GenloopFile.model_fields]
    close = difflib.get_close_matches("workflow", others, n=1, cutoff=0.75)
    return FlowFile if close else GenloopFile


VERSION = 1

PolicyName = Literal[
    "no_critical", "no_critical_or_high", "no_critical_and_no_high", "all_resolved"
]
POLICIES: Mapping[PolicyName, tuple[Severity, ...]] = {
    "no_critical": Severity.CRITICAL.or_worse,
    "no_critical_or_high": Severity.HIGH.or_worse,
    "no_critical_and_no_high": Severity.HIGH.or_worse,
    "all_resolved": tuple(Severity),
}
"""Names for the severities that block."""


TRIGGERS = ", ".join(get_args(Trigger))
TriggerName = Annotated[Trigger, Field(description=f"one of: {TRIGGERS}")]
Triggers = Annotated[sections.Many[TriggerName] | None, Field(description=f"a list of: {TRIGGERS}")]
Policy = Annotated[PolicyName | None, Field(description=f"one of: {', '.join(POLICIES)}")]


class ApprovalSection(sections.FlowSection):
    """Which findings keep a text from passing."""

    block_on: sections.Many[sections.SeverityName] | None = Field(
        None, description=f"a list of: {SEVERITIES}"
    )
    """Severities that block."""
    policy: Policy = None
    """The same by a name."""


class EscalationSection(sections.FlowSection):
    """When a human is asked."""

    triggers: Triggers = None
    """What makes a human decide."""
    thrash_threshold: int = Field(2, ge=1, le=10, description="a whole number from 1 to 10")
    """After how many repetitions an issue to fix counts as thrashing."""
    answerable_by: Literal["human", "agent"] = Field("human", description="human or agent")
    """Who may answer open questions about findings."""


class AdjudicationSection(sections.FlowSection):
    """What a judge applies."""

    approval: ApprovalSection = Field(default_factory=ApprovalSection.model_construct)
    """Which findings keep a text from passing."""
    escalation: EscalationSection = Field(default_factory=EscalationSection.model_construct)
    """When a human is asked."""
    tensions: sections.Many[Tension] = Field(
        (), description="a list of {axis, guidance, winner_on_conflict}"
    )
    """Goals that conflict."""
    instructions: sections.Text | None = Field(None, description="a text")
    """Further instructions for the judge."""


class TerminationSection(sections.FlowSection):
    """Other names for `adjudication.approval.policy` and `adjudication.escalation.triggers`."""

    approve_when: Policy = None
    """Which findings keep a text from passing."""
    escalate_on: Triggers = None
    """What makes a human decide."""


def _disagreements(lists: Mapping[tuple[str, ...], tuple[Any, ...]]) -> Iterator[Mistake]:
    texts = {
        path: f"{'.'.join(path)} is {', '.join(map(str, values)) or 'empty'}"
        for path, values in lists.items()
    }
    first, *others = lists or [()]
    for path in others:
        if set(lists[path]) != set(lists[first]):
            yield Mistake(path, f"{texts[path]}, but {texts[first]}", "keep one of them")


class AnyFlowFile(FlowSettings):
    """The keys that flow files have with and without a `workflow:`."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""
    notation: Literal["flows"] = Field("flows", description="flows")
    """The notation of this file."""
    adjudication: AdjudicationSection = Field(default_factory=AdjudicationSection.model_construct)
    """What a judge applies."""
    termination: TerminationSection = Field(default_factory=TerminationSection.model_construct)
    """Other names for what keeps a text from passing and when a human is asked."""

    @property
    def triggers(self) -> tuple[Trigger, ...] | None:
        """What makes a human decide; None if the file does not say."""
        return next(iter(self._triggers().values()), None)

    def disagreements(self) -> list[Mistake]:
        """Returns where two keys about judging contradict each other."""
        return [*_disagreements(self._block_on()), *_disagreements(self._triggers())]

    def judging(self, default_triggers: tuple[Trigger, ...]) -> AdjudicationConfig:
        """Returns what a judge applies."""
        return AdjudicationConfig(
            next(iter(self._block_on().values()), DEFAULT_BLOCK_ON),
            # An empty list is a decision as well: the author wants no human to be asked.
            default_triggers if self.triggers is None else self.triggers,
            self.adjudication.escalation.thrash_threshold,
            self.adjudication.tensions,
            self.adjudication.instructions or "",
            AnswerableBy(self.adjudication.escalation.answerable_by),
        )

    def shared(self) -> dict[str, Any]:
        """Returns the settings that the file has in common with the flow it describes."""
        return {name: getattr(self, name) for name in FlowSettings.model_fields}

    def _block_on(self) -> dict[tuple[str, ...], tuple[Severity, ...]]:
        """Returns the severities that block by each key that names some."""
        approval, approve_when = self.adjudication.approval, self.termination.approve_when
        named = {
            ("adjudication", "approval", "block_on"): approval.block_on,
            ("adjudication", "approval", "policy"): approval.policy and POLICIES[approval.policy],
            ("termination", "approve_when"): approve_when and POLICIES[approve_when],
        }
        # The order of a list in a file means nothing, and is part of what identifies requests.
        return {
            path: tuple(each for each in Severity if each in severities)
            for path, severities in named.items()
            if severities is not None
        }

    def _triggers(self) -> dict[tuple[str, ...], tuple[Trigger, ...]]:
        """Returns what makes a human decide by each key that names something."""
        named = {
            ("adjudication", "escalation", "triggers"): self.adjudication.escalation.triggers,
            ("termination", "escalate_on"): self.termination.escalate_on,
        }
        return {
            path: tuple(dict.fromkeys(names)) for path, names in named.items() if names is not None
        }


class FlowFile(AnyFlowFile):
    """A review flow: steps that generate, critique, adjudicate and refine."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        "phases": "only files without `workflow` have it"
    }

    workflow: sections.Some[
        Annotated[
            WorkflowStep,
            Field(description="a mapping with step: generate, critique, adjudicate or refine"),
        ]
    ] = Field(
        description="a list of steps, each with step: generate, critique, adjudicate or refine"
    )
    """The steps, in order."""

    def config(self) -> GenflowConfig:
        """Returns the flow that the file describes."""
        return GenflowConfig.model_construct(
            **self.shared(),
            workflow=with_ids(self.workflow),
            adjudication=self.judging(()),
        )


DEFAULT_TRIGGERS: tuple[Trigger, ...] = ("max_iterations", "thrashing", "conflicting_criticals")
KEEP_ALL = ConstraintBehavior(dict.fromkeys(Severity, IssueBehavior.CONTINUE))
"""The loop has approval policies instead of behaviors: every issue reaches the judge."""


class PhaseSection(sections.FlowSection):
    """The agent of a phase."""

    agent: sections.AgentName | None = Field(None, description="an agent's name")
    """The agent; without one, the default agent."""
    model: ModelName = None
    """The model that the agent uses."""


class CritiquePhaseSection(sections.FlowSection):
    """How the critics work."""

    pattern: Literal["parallel", "sequential"] = "parallel"
    """All at once, or one after the other."""


class RefinePhaseSection(PhaseSection):
    """How the artifact is fixed, and how an edit is checked."""

    mode: Mode = "edit"
    """Edits a file, writes the whole text again, or applies literal edits first."""
    validation_retries: int = Field(2, ge=0, le=10, description="a whole number from 0 to 10")
    """How often an edit that changed nothing, or too much, is sent back."""
    max_size_change_pct: float = Field(
        20.0, gt=0, allow_inf_nan=False, description="a percentage above 0"
    )
    """By how much an edit may change the number of words."""


class PhasesSection(sections.FlowSection):
    """The four phases."""

    generate: PhaseSection = Field(default_factory=PhaseSection.model_construct)
    """Writes the artifact."""
    critique: CritiquePhaseSection = Field(default_factory=CritiquePhaseSection.model_construct)
    """Reviews the artifact."""
    adjudicate: PhaseSection = Field(default_factory=PhaseSection.model_construct)
    """Decides about the findings."""
    refine: RefinePhaseSection = Field(default_factory=RefinePhaseSection.model_construct)
    """Fixes the artifact."""


class GenloopFile(AnyFlowFile):
    """The fixed loop: generate, critique, adjudicate, refine."""

    max_iterations: int = Field(3, ge=1, le=20, description="a whole number from 1 to 20")
    """How many rounds a run may have."""
    phases: PhasesSection = Field(default_factory=PhasesSection.model_construct)
    """The agent and the options of each phase."""

    def config(self) -> GenflowConfig:
        """Returns the loop as a flow."""
        # What the file says about one severity leaves the others as the loop has them.
        own = self.default_behavior.by_severity
        return GenflowConfig.model_construct(
            **{
                **self.shared(),
                "default_behavior": ConstraintBehavior({**KEEP_ALL.by_severity, **own}),
                "constraints": self._routed(),
                "convergence": self._convergence(),
            },
            workflow=with_ids(self._steps()),
            adjudication=self.judging(DEFAULT_TRIGGERS),
        )

    def _steps(self) -> tuple[WorkflowStep, ...]:
        phases = self.phases
        serial = phases.critique.pattern == "sequential"
        return (
            WorkflowStep(step=StepKind.GENERATE, **dict(phases.generate)),
            WorkflowStep(step=StepKind.CRITIQUE, execution="serial" if serial else "parallel"),
            WorkflowStep(step=StepKind.ADJUDICATE, **dict(phases.adjudicate)),
            WorkflowStep(
                step=StepKind.REFINE,
                on_invalid="escalate",
                loop_to=StepKind.CRITIQUE.value,
                **dict(phases.refine),
            ),
        )

    def _convergence(self) -> ConvergenceConfig:
        """Asks a human when the loop does not converge, unless the file has its own rules.

        Each number is larger than what the thrashing trigger needs, which should fire first.
        """
        if "convergence" in self.model_fields_set:
            return self.convergence
        if self.triggers is not None:
            return ConvergenceConfig()
        plateau = self.adjudication.escalation.thrash_threshold + 2
        return ConvergenceConfig(plateau=plateau, oscillation=2, only_new=4, action="escalate")

    def _routed(self) -> sections.ConstraintConfig:
        routing = self.constraints.routing
        agents = routing.default_agents or tuple(PROGRAMS)
        routed = routing.model_copy(update={"default_agents": agents})
        return self.constraints.model_copy(update={"routing": routed})
