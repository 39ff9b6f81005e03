"""What a flow file says, as values: the steps, who works them, and the rules between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from signoff.core.spend import Limits
from signoff.review.behaviors import (
    ConstraintBehavior,
    IssueBehavior,
    ResolvedBehavior,
    resolve_behavior,
)
from signoff.review.constraint import Constraint, SourceBlock
from signoff.review.severity import DEFAULT_BLOCK_ON, Severity

DEFAULT_MAX_ITERATIONS = 3
POLICY_JUDGE = "policy"
"""The agent of an adjudicate step that costs nothing: the rules decide alone."""


class StepKind(StrEnum):
    """The four kinds of step."""

    GENERATE = "generate"
    CRITIQUE = "critique"
    ADJUDICATE = "adjudicate"
    REFINE = "refine"


Execution = Literal["parallel", "serial"]
Order = Literal["priority", "definition"]
Scope = Literal["accumulated", "previous", "all"]
Mode = Literal["edit", "rewrite", "apply"]
Prompt = Literal["full", "brief"]
OnApproved = Literal["finish", "continue"]
Trigger = Literal["max_iterations", "thrashing", "conflicting_criticals", "not_converging"]


@dataclass(frozen=True)
class WorkflowStep:
    """One step of a flow; fields of other kinds than its own keep their defaults."""

    step: StepKind
    name: str | None = None
    agent: str | None = None
    """None leaves it to the routing (critiques) and the default agent."""
    model: str | None = None
    # generate, and refine where the text is written anew
    prompt: Prompt = "full"
    """`brief` says the goal and what is to be mended and nothing else, for small models."""
    # critique
    execution: Execution = "parallel"
    order: Order = "priority"
    constraints: tuple[str, ...] | None = None
    """Globs over constraint ids; None takes all."""
    # adjudicate
    scope: Scope = "accumulated"
    on_approved: OnApproved | None = None
    """None: the last judge finishes the run, an earlier one lets it go on."""
    # refine
    mode: Mode = "edit"
    loop_to: str | None = None
    validation_retries: int = 0
    """How often an edit that changed nothing, or too much, is sent back."""
    max_size_change_pct: float | None = None
    """By how much an edit may change the number of words; None does not look."""
    on_invalid: Literal["continue", "escalate"] = "continue"
    """What happens with an edit that stays invalid: it is logged, or a person decides."""
    timeout: float | None = None
    """Seconds one call may take."""
    id: str = ""
    """The step's id in the graph: its name, or its kind, told apart by its position."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], WorkflowStep]]
    """Reads one step as it is in YAML; `signoff.flows.reading`, which can read it, sets this."""


@dataclass(frozen=True)
class RoutingRule:
    """Sends constraints whose id matches a glob to some agents."""

    match: str
    agents: tuple[str, ...]


@dataclass(frozen=True)
class PriorityRoute:
    """Sends constraints of a range of priorities, both ends included, to some agents."""

    low: int
    high: int
    agents: tuple[str, ...]


@dataclass(frozen=True)
class RoutingConfig:
    """Who reviews what, where neither the step nor the constraint says."""

    default_agents: tuple[str, ...] = ()
    rules: tuple[RoutingRule, ...] = ()
    priority_routing: tuple[PriorityRoute, ...] = ()

    def __bool__(self) -> bool:
        """Tells whether any is configured."""
        return bool(self.default_agents or self.rules or self.priority_routing)


@dataclass(frozen=True)
class ConstraintConfig:
    """Where the constraints are, and who reviews them."""

    dir: str | None = None
    files: tuple[str, ...] = ()
    inline: Mapping[str, str] = field(default_factory=dict)
    """Shorthand: a summary by id, each one HIGH rule."""
    routing: RoutingConfig = RoutingConfig()


@dataclass(frozen=True)
class Tension:
    """Two aims that pull apart, and which way to lean."""

    axis: str
    guidance: str = ""
    winner_on_conflict: str = ""


@dataclass(frozen=True)
class AdjudicationConfig:
    """What a judge goes by, and when a person is asked."""

    block_on: tuple[Severity, ...] = DEFAULT_BLOCK_ON
    triggers: tuple[Trigger, ...] = ()
    thrash_threshold: int = 2
    tensions: tuple[Tension, ...] = ()
    instructions: str = ""


@dataclass(frozen=True)
class OutputConfig:
    """Where the approved artifact goes inside the run directory."""

    dir: str = "final"
    filename: str = "artifact.md"


@dataclass(frozen=True)
class ConvergenceConfig:
    """Stop rules beside the iteration limit; a rule that is None does not hold.

    Each number is how many rounds in a row (for oscillation: how many returns of one
    finding) it takes.
    """

    plateau: int | None = None
    oscillation: int | None = None
    thrashing: int | None = None
    only_new: int | None = None
    action: Literal["stop", "escalate"] = "stop"


@dataclass(frozen=True)
class Independence:
    """Whether critics may share the author's model family."""

    rule: Literal["none", "different_family"] = "none"
    otherwise: Literal["refuse", "report"] = "refuse"


@dataclass(frozen=True)
class Goal:
    """What is to be made, and the material to make it from."""

    text: str
    source: SourceBlock = field(default_factory=SourceBlock)


@dataclass(frozen=True)
class GenflowConfig:
    """A whole flow."""

    workflow: tuple[WorkflowStep, ...]
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    default_behavior: ConstraintBehavior = field(default_factory=ConstraintBehavior)
    constraint_behaviors: Mapping[str, ConstraintBehavior] = field(default_factory=dict)
    """By constraint id, or by a glob over ids; an exact id is stronger."""
    constraints: ConstraintConfig = ConstraintConfig()
    adjudication: AdjudicationConfig = AdjudicationConfig()
    output: OutputConfig = OutputConfig()
    convergence: ConvergenceConfig = ConvergenceConfig()
    independence: Independence = Independence()
    allow_scripts: bool = False
    limits: Limits = field(default_factory=Limits)
    name: str = ""
    description: str = ""
    goal: Goal | None = None
    agents_of_all: bool = False
    """GenLoop: every routed agent reads every constraint, built-in agents included."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], GenflowConfig]]
    """Reads a flow as it is in YAML; `signoff.flows.reading`, which can read it, sets this."""

    def behavior(self, constraint: Constraint, severity: Severity) -> ResolvedBehavior:
        """Returns what an issue does, and which level decided it."""
        return resolve_behavior(
            severity,
            constraint.behavior,
            self._of_flow(constraint.id, severity),
            self.default_behavior,
        )

    def _of_flow(self, constraint: str, severity: Severity) -> ConstraintBehavior | None:
        from fnmatch import fnmatchcase

        exact = self.constraint_behaviors.get(constraint)
        if exact is not None and exact.get(severity) is not None:
            return exact
        matching = (
            said
            for pattern, said in self.constraint_behaviors.items()
            if fnmatchcase(constraint, pattern) and said.get(severity) is not None
        )
        return next(matching, None)


def get_behavior_for_severity(
    config: GenflowConfig, constraint: Constraint, severity: Severity | str
) -> IssueBehavior:
    """Returns what an issue of a severity does, whichever of the four levels decides it."""
    return config.behavior(constraint, Severity(str(severity).upper())).behavior
