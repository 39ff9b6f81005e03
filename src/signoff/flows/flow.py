"""A flow that is ready to run: its configuration with its goal and its constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.core.severity import IssueBehavior, Severity
from signoff.flows.model import GenflowConfig, StepKind, WorkflowStep, resolve_constraints_for_step
from signoff.flows.sections import Goal, RoutingConfig
from signoff.review.constraint import Constraint, SourceBlock
from signoff.runtime.ports import Capabilities


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
    # The first level that names anybody decides alone. Mixing levels would make it impossible to
    # say in one sentence why an agent reviews a constraint.
    levels = _levels(step_agent, constraint, routing, default_agents)
    agents, rule = next(((agents, rule) for agents, rule in levels if agents), ((), NO_AGENT))
    return tuple(dict.fromkeys(agents)), rule


def _levels(
    step_agent: str | None,
    constraint: Constraint,
    routing: RoutingConfig,
    default_agents: Sequence[str],
) -> Iterator[tuple[Iterable[str], str]]:
    """Yields the agents that each level names, the strongest first; empty if it names none."""
    yield (step_agent,) if step_agent else (), "the step's agent"
    yield constraint.agents or (), "the constraint's own agents"
    for rule in routing.rules:
        if fnmatchcase(constraint.id, rule.match):
            yield rule.agents, f"the routing rule {rule.match!r}"
    for route in routing.priority_routing:
        low, high = route.range
        if low <= constraint.priority <= high:
            yield route.agents, f"the routing of priorities {low} to {high}"
    yield routing.default_agents, "default_agents of the routing"
    yield default_agents, "the default agent"
