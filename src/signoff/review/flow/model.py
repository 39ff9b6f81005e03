"""A whole flow: its steps, its settings and their stored form; and the flow that is ready to run.

Both forms of flow files share the settings. In the stored form every field is written, whether or
not it has its default, so that a later release with other defaults reads an old run as it was.
Mappings become lists of pairs: the order of patterns matters, and the keys of a JSON object may be
sorted. The form is part of the digest of every recorded definition: another one would make every
run under way look changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Strict, field_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.core.errors import UnsafePath
from signoff.core.requests import AnswerableBy
from signoff.core.severity import (
    DEFAULT_BLOCK_ON,
    LEAST_BLOCKING,
    SEVERITIES,
    IssueBehavior,
    Severity,
)
from signoff.core.spend import Limits
from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import FileSection
from signoff.review.flow.sections import (
    BEHAVIORS,
    AgentName,
    BehaviorField,
    ConstraintConfig,
    FlowSection,
    Goal,
    GoalField,
    LimitsField,
    Many,
    Paths,
    RoutingConfig,
    SeverityName,
    Text,
    Word,
)
from signoff.review.flow.state import STATUS
from signoff.review.pure.constraint import (
    Constraint,
    ConstraintBehavior,
    ResolvedBehavior,
    SourceBlock,
    resolve_behavior,
)
from signoff.review.pure.critique import DEFAULT_MAX_FINDINGS, MOST_ISSUES, Critique
from signoff.review.pure.policy import STOP_RULES
from signoff.runtime.paths import check_path, fold_name
from signoff.runtime.ports import Capabilities
from signoff.store.run_files import RESERVED_NAMES

Scope = Literal["accumulated", "previous", "all"]
"""Which critiques a judge sees."""

NAME = r"^[A-Za-z0-9_-]+$"
NAME_WORDS = "letters, digits, _ and -"
FILES_STEP = "files"
"""The id of the step that reads the files of `artifact:`; it is not listed in files."""
POLICY_JUDGE = "policy"
"""The agent of an adjudicate step in which rules decide alone, without a model."""


class StepKind(StrEnum):
    """The kinds of step."""

    GENERATE = "generate"
    CRITIQUE = "critique"
    ADJUDICATE = "adjudicate"
    REFINE = "refine"
    SIGN_OFF = "sign_off"


Mode = Annotated[
    Literal["edit", "rewrite", "apply"], Field(description="one of: edit, rewrite, apply")
]
ModelName = Annotated[Word | None, Field(description="a model's name")]

_COMMON = ("step", "name", "agent", "model", "timeout")
_OWN: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.GENERATE: ("prompt",),
    StepKind.CRITIQUE: ("execution", "order", "constraints"),
    StepKind.ADJUDICATE: ("scope", "on_approved"),
    StepKind.REFINE: (
        *("mode", "loop_to", "validation_retries", "max_size_change_pct", "on_invalid"),
        "prompt",
    ),
    StepKind.SIGN_OFF: ("deadline", "default", "presence"),
}
"""The keys that not every kind of step has."""


def keys_of(kind: StepKind) -> tuple[str, ...]:
    """Returns the keys that a step of a kind may have in a file."""
    # A human signs off, so such a step has no agent.
    common = ("step", "name") if kind is StepKind.SIGN_OFF else _COMMON
    return common + _OWN[kind]


def owners(key: str) -> str:
    """Returns a sentence that names the kinds of step with a key; empty if no kind has it."""
    kinds = [kind.value for kind, keys in _OWN.items() if key in keys]
    return f"only {' and '.join(kinds)} steps have it" if kinds else ""


class WorkflowStep(FlowSection):
    """One step of a flow; keys of other kinds than its own keep their defaults."""

    step: Annotated[StepKind, Strict(False)] = Field(description=f"one of: {', '.join(StepKind)}")
    """The kind of step."""
    name: str | None = Field(None, pattern=NAME, max_length=100, description=NAME_WORDS)
    """The name, for loop_to."""
    agent: AgentName | None = Field(None, description="an agent's name")
    """The agent; the default agent if it is absent."""
    model: ModelName = None
    """The model that the agent uses."""
    prompt: Literal["full", "brief"] = "full"
    """Everything that an author should know, or only the goal, for small models."""
    execution: Literal["parallel", "serial"] = "parallel"
    """All at once, or one after the other with an early end."""
    order: Literal["priority", "definition"] = "priority"
    """Which constraint comes first."""
    constraints: Many[Word] | None = Field(
        None, description='a list of patterns over constraint ids, as in ["style*"]'
    )
    """The constraints; all if it is absent."""
    scope: Scope = Field("accumulated", description="one of: accumulated, previous, all")
    """The critiques that the judge sees."""
    on_approved: Literal["finish", "continue"] | None = None
    """What a pass does; by default the last judge ends the run, others continue it."""
    mode: Mode = "edit"
    """Edits a file, writes the whole text again, or applies literal edits first."""
    loop_to: str | None = Field(None, pattern=NAME, description="the name of an earlier step")
    """The earlier step where the next round starts."""
    validation_retries: int = Field(0, ge=0, le=10, description="a whole number from 0 to 10")
    """How often an edit that changed nothing, or too much, is sent back."""
    max_size_change_pct: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a percentage above 0"
    )
    """By how much an edit may change the number of words."""
    on_invalid: Literal["continue", "escalate"] = "continue"
    """What happens with an edit that stays invalid: it is logged, or a human decides."""
    timeout: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a number of seconds above 0"
    )
    """Seconds that one call may take."""
    deadline: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a number of seconds above 0"
    )
    """Seconds that a human has to sign off, before the default counts."""
    default: Literal["approve", "reject"] | None = None
    """What counts if no human signs off in time; needed with a deadline."""
    presence: bool = False
    """Whether the approval needs the signature of a passkey."""
    id: SkipJsonSchema[str] = ""
    """The step's id in the graph, set by `with_ids`; no key of files."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], WorkflowStep]]
    """Reads one step as it is in YAML; set by `signoff.review.flow.reading`."""

    def selects(self, constraint: Constraint) -> bool:
        """Tells whether a critique step reviews a constraint."""
        if self.constraints is None:
            return True
        return any(fnmatchcase(constraint.id, pattern) for pattern in self.constraints)


def with_ids(steps: Iterable[WorkflowStep]) -> tuple[WorkflowStep, ...]:
    """Gives each step its id: its name, or its kind, with its position if the kind repeats."""
    steps = tuple(steps)
    names = {step.name for step in steps if step.name}
    unnamed = [step.step for step in steps if not step.name]

    def own(position: int, step: WorkflowStep) -> str:
        if step.name:
            return step.name
        # Ids are part of the journal and of the run directory. So a step that is alone gets the
        # plain name of its kind, which does not change when another step is added before it.
        alone = unnamed.count(step.step) == 1 and step.step.value not in names
        return step.step.value if alone else f"{step.step.value}_{position}"

    return tuple(step.model_copy(update={"id": own(i, step)}) for i, step in enumerate(steps))


def resolve_constraints_for_step(
    step: WorkflowStep, constraints: Iterable[Constraint]
) -> list[Constraint]:
    """Returns the constraints that a step's patterns match, in the step's order."""
    chosen = [each for each in constraints if step.selects(each)]
    if step.order == "definition":
        return chosen
    return sorted(chosen, key=lambda constraint: constraint.priority)


MOST_ITERATIONS = 1000

RESERVED = RESERVED_NAMES | {"iterations", "constraints", "critiques", "reviewed", "goal.yaml"}
"""Names in a run's folder that the artifact must not use."""

Trigger = Literal["max_iterations", "thrashing", "conflicting_criticals", "not_converging"]


class ArtifactConfig(FlowSection):
    """Files that exist already and are reviewed, instead of a text that is generated."""

    path: Word | None = Field(None, description="a path")
    """One file or folder."""
    paths: Paths = ()
    """Files and folders; files in folders that git ignores are left out."""
    globs: Many[Word] = Field((), description='a list of patterns, as in ["docs/**/*.md"]')
    """Patterns of files."""
    since: Word | None = Field(None, description="a branch, tag or commit of git")
    """Reviews only what has changed since then."""
    all_lines: bool = False
    """Whether a review of changes also reports about lines that have not changed."""
    intent: Text = ""
    """What a change is meant to do; by default, the messages of its commits."""

    @property
    def every_path(self) -> tuple[str, ...]:
        """The files and folders, under either key."""
        return (*([self.path] if self.path else []), *self.paths)


class OutputConfig(FlowSection):
    """Where the result goes, inside the run's own folder."""

    dir: str = Field(
        "final",
        max_length=200,
        description="a relative path inside the run, without .. and hidden folders",
    )
    """The folder of the artifact."""
    filename: str = Field(
        "artifact.md",
        max_length=120,
        pattern=r"^[^./\\:\x00-\x1f][^/\\:\x00-\x1f]*$",
        description="a file name, without folders",
    )
    """The name of the artifact."""
    write_back: Literal["never", "on_approval"] = "never"
    """Whether fixed files replace those of the project that they come from."""

    @field_validator("dir")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        folder = value.replace("\\", "/").removesuffix("/")
        # The engine would refuse to write there, but only after all agents have been paid.
        if fold_name(folder.split("/")[0]) in RESERVED:
            raise PydanticCustomError(ADVICE, "that folder of a run is reserved; choose another")
        _check_path(folder)
        return folder

    @field_validator("filename")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if fold_name(value) == STATUS:
            raise PydanticCustomError(ADVICE, "that file has the run's status; choose another")
        _check_path(value)
        return value


def _check_path(path: str) -> None:
    try:
        check_path(path)
    except UnsafePath as error:
        raise ValueError(str(error)) from error


Rounds = Annotated[
    int | None,
    Field(ge=1, le=MOST_ITERATIONS, description=f"a whole number from 1 to {MOST_ITERATIONS}"),
]


class ConvergenceConfig(FlowSection):
    """Stop rules besides the round limit; a rule without a number is off."""

    plateau: Rounds = None
    """Rounds in a row without fewer findings."""
    oscillation: Rounds = None
    """How often one finding may return."""
    thrashing: Rounds = None
    """Rounds in a row that ask for a fix of one finding."""
    only_new: Rounds = None
    """Rounds in a row of new findings only."""
    action: Literal["stop", "escalate"] = "stop"
    """Whether the run ends or a human decides."""

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the rules that are on, in the order of `STOP_RULES`."""
        named = ((name, getattr(self, name)) for name in STOP_RULES)
        return {name: number for name, number in named if number is not None}


class Tension(FlowSection):
    """Two goals that conflict, and which one to favor."""

    axis: Word = Field(description="a text, as in brevity vs completeness")
    """The two goals."""
    guidance: Text = ""
    """Which one to favor."""
    winner_on_conflict: Text = ""
    """Which one wins."""


@dataclass(frozen=True)
class AdjudicationConfig:
    """What a judge applies, and when a human is asked.

    Files have two places for some of this; `judging_file` merges them.
    """

    block_on: tuple[Severity, ...] = DEFAULT_BLOCK_ON
    triggers: tuple[Trigger, ...] = ()
    thrash_threshold: int = 2
    tensions: tuple[Tension, ...] = ()
    instructions: str = ""
    answerable_by: AnswerableBy = AnswerableBy.HUMAN
    """Who may answer open questions about findings."""


class VerifyConfig(FlowSection):
    """Has severe findings confirmed by another agent before they block."""

    agent: AgentName = Field(description="an agent's name")
    """The agent that confirms findings."""
    min_severity: SeverityName = Field(LEAST_BLOCKING, description=f"one of: {SEVERITIES}")
    """The least severity that needs a confirmation."""


class FlowSettings(FileSection, FlowSection):
    """The keys that a flow file and the flow it describes have in common."""

    name: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?$",
        max_length=100,
        description="letters, digits, _, . and -",
    )
    """The flow's name."""
    description: Text = ""
    """What the flow is for."""
    goal: GoalField | None = Field(None, description="a text, or a mapping with goal and source")
    """What to write, if there is no goal file."""
    max_iterations: int = Field(
        3, ge=1, le=MOST_ITERATIONS, description=f"a whole number from 1 to {MOST_ITERATIONS}"
    )
    """How many rounds a run may have."""
    constraints: ConstraintConfig = Field(default_factory=ConstraintConfig.model_construct)
    """Where the constraints are, and which agents review them."""
    artifact: ArtifactConfig | None = None
    """Files to start from, instead of a generate step."""
    output: OutputConfig = Field(default_factory=OutputConfig.model_construct)
    """Where the result goes."""
    allow_scripts: bool = False
    """Whether scripts of sources may run."""
    allow_unreviewed: bool = False
    """Whether a text may pass although no critic reads it; such a flow is refused otherwise."""
    limits: LimitsField = Field(default_factory=Limits, description="usd, tokens, calls or seconds")
    """What a run may cost at most."""
    convergence: ConvergenceConfig = Field(default_factory=ConvergenceConfig.model_construct)
    """Stop rules besides the round limit."""
    rereview: Literal["all", "changed"] = "all"
    """From the second round on, which constraints are read again: all, or those with open findings
    or a changed passage. Before the end, everything is read in its final form."""
    max_findings: int = Field(
        DEFAULT_MAX_FINDINGS,
        ge=1,
        le=MOST_ISSUES,
        description=f"a whole number from 1 to {MOST_ISSUES}",
    )
    """How many findings one critique may have; blocking ones are never cut."""
    verify: VerifyConfig | None = None
    """Has severe findings confirmed by another agent before they block."""
    default_behavior: BehaviorField = Field(
        default_factory=ConstraintBehavior, description=BEHAVIORS
    )
    """What issues do, by severity."""
    constraint_behaviors: dict[str, BehaviorField] = Field(
        default_factory=dict, description="behaviors by severity for each constraint id"
    )
    """What issues of one constraint do, by its id or a pattern."""
    prompts: Word | None = Field(None, description="a folder with templates of prompts")
    """A folder with templates of prompts that replace the built-in ones."""


class GenflowConfig(FlowSettings):
    """A whole flow."""

    workflow: Many[WorkflowStep]
    adjudication: AdjudicationConfig = AdjudicationConfig()

    from_dict: ClassVar[Callable[[Mapping[str, Any]], GenflowConfig]]
    """Reads a flow as it is in YAML; set by `signoff.review.flow.reading`."""

    def behavior(self, constraint: Constraint, severity: Severity) -> ResolvedBehavior:
        """Returns the behavior of an issue, and the level that set it."""
        return resolve_behavior(
            severity,
            constraint.behavior,
            self._flow_behavior(constraint.id, severity),
            self.default_behavior,
        )

    def with_behaviors(self, critique: Critique, constraint: Constraint) -> Critique:
        """Returns a critique with the behavior of each issue."""
        issues = (
            replace(issue, behavior=self.behavior(constraint, issue.severity).behavior.value)
            for issue in critique.issues
        )
        return replace(critique, issues=tuple(issues))

    def ends_on_approval(self, position: int) -> bool:
        """Tells whether a judge's approval ends the run; by default, only the last judge's does."""
        judge, *later = self.workflow[position:]
        if judge.on_approved is not None:
            return judge.on_approved == "finish"
        # Without a word from the author, an early judge only lets the text go on to the next
        # critics: ending the run there would skip their review.
        return all(step.step is not StepKind.ADJUDICATE for step in later)

    def leads_past_fixes(self, position: int) -> bool:
        """Tells whether a judge's approval leads to a step after the refine step behind it."""
        later = self.workflow[position + 1 :]
        signed_off = any(step.step is StepKind.SIGN_OFF for step in later)
        return signed_off or not self.ends_on_approval(position)

    def _flow_behavior(self, constraint: str, severity: Severity) -> ConstraintBehavior | None:
        """Returns the flow's entry for a constraint; an exact id takes precedence over patterns."""
        # A pattern must not override what the author says about one constraint by its name,
        # wherever in the file the pattern is.
        exact = self.constraint_behaviors.get(constraint)
        if exact is not None and exact.get(severity) is not None:
            return exact
        matching = (
            behavior
            for pattern, behavior in self.constraint_behaviors.items()
            if fnmatchcase(constraint, pattern) and behavior.get(severity) is not None
        )
        return next(matching, None)


def get_behavior_for_severity(
    config: GenflowConfig, constraint: Constraint, severity: Severity | str
) -> IssueBehavior:
    """Returns the behavior of issues with a severity, whichever level sets it."""
    return config.behavior(constraint, Severity(str(severity).upper())).behavior


def config_to_json(config: GenflowConfig) -> dict[str, Any]:
    """Returns a flow as plain data; equal flows give equal data."""
    stored = config.model_dump(mode="json")
    # The order of constraints decides in which order they are read, and JSON objects have none.
    stored["constraints"]["inline"] = [[*pair] for pair in stored["constraints"]["inline"].items()]
    stored["default_behavior"] = stored["default_behavior"]["by_severity"]
    behaviors = stored["constraint_behaviors"]
    stored["constraint_behaviors"] = [[key, each["by_severity"]] for key, each in behaviors.items()]
    return stored


def config_from_json(raw: Mapping[str, Any]) -> GenflowConfig:
    """Reads the result of `config_to_json`."""
    constraints = {**raw["constraints"], "inline": dict(raw["constraints"]["inline"])}
    read = ConstraintBehavior.from_dict
    stored = {
        **raw,
        "constraints": constraints,
        "default_behavior": read(raw["default_behavior"]),
        "constraint_behaviors": {name: read(each) for name, each in raw["constraint_behaviors"]},
    }
    return GenflowConfig.model_validate(stored, strict=False)


@dataclass(frozen=True)
class Flow:
    """Everything the steps of one flow share."""

    config: GenflowConfig
    goal: Goal
    constraints: tuple[Constraint, ...]
    root: Path
    """The project's folder: where scripts run, and what sources may be read from."""
    home: Path | None = None
    """The project's `.signoff/`."""
    default_agent: str = DEFAULT_AGENT
    installed: tuple[str, ...] = tuple(PROGRAMS)
    """Which vendors' programs are installed here."""
    agents: Mapping[str, KnownAgent] = field(default_factory=dict)
    """The agents and roles that can be asked."""
    allow_scripts: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The templates of prompts that the flow replaces, by name."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the command line, stored so that the same flow can be compiled again."""

    def capabilities(self, agent: str) -> Capabilities:
        """Returns what an agent can do; an unknown agent can only answer."""
        known = self.agents.get(agent)
        return known.capabilities if known is not None else Capabilities()

    def is_missing(self, agent: str) -> bool:
        """Tells whether an agent needs a vendor's program that is not installed."""
        known = self.agents.get(agent)
        configured = known is not None and known.configured
        return agent in PROGRAMS and agent not in self.installed and not configured

    def agent(self, step: WorkflowStep) -> str:
        """Returns the agent of a step; for a critique, the one without any routing."""
        return step.agent or self.default_agent

    def agents_of(self, step: WorkflowStep) -> list[str]:
        """Returns all agents that a step asks."""
        if step.step is StepKind.SIGN_OFF:
            return []
        if step.step is not StepKind.CRITIQUE:
            return [self.agent(step)]
        names = (name for each in self.selected(step) for name in self.reviewers(step, each))
        return list(dict.fromkeys(names))

    def selected(self, step: WorkflowStep) -> list[Constraint]:
        """Returns the constraints that a critique step reviews, in its order."""
        return resolve_constraints_for_step(step, self.constraints)

    def routing(self, step: WorkflowStep, constraint: Constraint) -> tuple[tuple[str, ...], str]:
        """Returns the agents of a constraint, installed or not, and the rule that named them."""
        routing = self.config.constraints.routing
        return select_reviewers(step.agent, constraint, routing, (self.default_agent,))

    def reviewers(self, step: WorkflowStep, constraint: Constraint) -> tuple[str, ...]:
        """Returns the agents that review the artifact against a constraint in a step.

        Agents that are not installed are left out. If none would remain, all stay: the run
        then reports what is missing instead of skipping the review.
        """
        # A review by fewer agents than the file names is better than none, and the user is warned
        # of those that are left out.
        agents, _rule = self.routing(step, constraint)
        return tuple(name for name in agents if not self.is_missing(name)) or agents

    @cached_property
    def sources(self) -> Mapping[str, SourceBlock]:
        """The material of the goal, under an empty name, and of each constraint by its id."""
        return {"": self.goal.source, **{c.id: c.source for c in self.constraints}}

    @cached_property
    def by_id(self) -> Mapping[str, Constraint]:
        """The constraints by id."""
        return {constraint.id: constraint for constraint in self.constraints}

    @cached_property
    def escalates(self) -> bool:
        """Whether a finding of any severity can go to a human at once."""
        return any(
            self.config.behavior(constraint, severity).behavior is IssueBehavior.ESCALATE
            for constraint in self.constraints
            for severity in Severity
        )

    @property
    def changes_artifact(self) -> bool:
        """Whether any step writes or fixes the artifact; otherwise it is only reviewed."""
        makers = (StepKind.GENERATE, StepKind.REFINE)
        return any(step.step in makers for step in self.config.workflow)

    def of_kind(self, kind: StepKind) -> Sequence[WorkflowStep]:
        """Returns the steps of a kind, in order."""
        return [step for step in self.config.workflow if step.step is kind]

    def index(self, step: WorkflowStep) -> int:
        """Returns a step's position in the list."""
        return [each.id for each in self.config.workflow].index(step.id)

    def leads_to(self, step: WorkflowStep) -> int:
        """Returns the position of the step that follows one without an approval."""
        ids = [each.id for each in self.config.workflow]
        if step.loop_to is not None:
            return ids.index(step.loop_to)
        return (ids.index(step.id) + 1) % len(ids)

    def finishes(self, step: WorkflowStep) -> bool:
        """Tells whether a judge's approval ends the run."""
        return self.config.ends_on_approval(self.index(step))

    def is_signed_off(self, step: WorkflowStep) -> bool:
        """Tells whether a human signs off what a judge approves."""
        later = self.config.workflow[self.index(step) + 1 :]
        return any(each.step is StepKind.SIGN_OFF for each in later)

    def ends_with(self, step: WorkflowStep) -> bool:
        """Tells whether a run ends with its result when this step passes it."""
        if step.step is StepKind.SIGN_OFF:
            return self.index(step) + 1 == len(self.config.workflow)
        is_judge = step.step is StepKind.ADJUDICATE
        return is_judge and self.finishes(step) and not self.is_signed_off(step)

    def fixes_requests_of(self, step: WorkflowStep) -> WorkflowStep | None:
        """Returns the step that makes the changes a human asks for; None if no step can."""
        earlier = self.config.workflow[: self.index(step)]
        return next((each for each in reversed(earlier) if each.step is StepKind.REFINE), None)

    def passed_on_approval(self, step: WorkflowStep) -> WorkflowStep:
        """Returns the last step that an approval skips: the refine step after it, or its own."""
        following = self.config.workflow[self.index(step) + 1 :][:1]
        return following[0] if following and following[0].step is StepKind.REFINE else step

    def starts_round_on_approval(self, step: WorkflowStep) -> bool:
        """Tells whether leaving a judge with its approval starts the next round."""
        return self.passed_on_approval(step).id == self.config.workflow[-1].id

    def starts_round(self, step: WorkflowStep) -> bool:
        """Tells whether leaving a step without approval starts the next round."""
        return step.loop_to is not None or step.id == self.config.workflow[-1].id


NO_AGENT = "no agent is named"


def select_reviewers(
    step_agent: str | None,
    constraint: Constraint,
    routing: RoutingConfig,
    default_agents: Sequence[str],
) -> tuple[tuple[str, ...], str]:
    """Returns the agents that review a constraint, and the rule that named them."""
    rules = [rule for rule in routing.rules if fnmatchcase(constraint.id, rule.match)]
    routes = [
        route
        for route in routing.priority_routing
        if route.range[0] <= constraint.priority <= route.range[1]
    ]
    # The first level that names anybody decides alone. Mixing levels would make it impossible to
    # say in one sentence why an agent reviews a constraint.
    levels: list[tuple[Sequence[str], str]] = [
        ((step_agent,) if step_agent else (), "the step's agent"),
        (constraint.agents or (), "the constraint's own agents"),
        *((rule.agents, f"the routing rule {rule.match!r}") for rule in rules[:1]),
        *(
            (each.agents, "the routing of priorities {} to {}".format(*each.range))
            for each in routes[:1]
        ),
        (routing.default_agents, "default_agents of the routing"),
        (default_agents, "the default agent"),
    ]
    agents, rule = next(((agents, rule) for agents, rule in levels if agents), ((), NO_AGENT))
    return tuple(dict.fromkeys(agents)), rule
