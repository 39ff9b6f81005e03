"""A flow that is ready to run: its configuration with the goal and the constraints it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.flows.model import GenflowConfig
from signoff.flows.sections import Goal
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.behaviors import IssueBehavior
from signoff.review.constraint import Constraint
from signoff.review.severity import Severity
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
    found: tuple[str, ...] = tuple(PROGRAMS)
    """Which vendors' programs are installed here."""
    agents: Mapping[str, KnownAgent] = field(default_factory=dict)
    """The agents and roles that can be asked."""
    allow_scripts: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the command line said, kept so that the same flow can be built again."""

    def capabilities(self, agent: str) -> Capabilities:
        """Returns what an agent can do; one that is not known can only answer."""
        known = self.agents.get(agent)
        return known.capabilities if known is not None else Capabilities()

    def is_missing(self, agent: str) -> bool:
        """Tells whether an agent needs a vendor's program that is not installed."""
        known = self.agents.get(agent)
        configured = known is not None and known.configured
        return agent in PROGRAMS and agent not in self.found and not configured

    def agent(self, step: WorkflowStep) -> str:
        """Returns who works a step; for a critique, who would without any routing."""
        return step.agent or self.default_agent

    @cached_property
    def by_id(self) -> Mapping[str, Constraint]:
        """The constraints by id."""
        return {constraint.id: constraint for constraint in self.constraints}

    @cached_property
    def escalates(self) -> bool:
        """Whether a finding of any severity can go to a person at once."""
        return any(
            self.config.behavior(constraint, severity).behavior is IssueBehavior.ESCALATE
            for constraint in self.constraints
            for severity in Severity
        )

    def of_kind(self, kind: StepKind) -> Sequence[WorkflowStep]:
        """Returns the steps of a kind, in order."""
        return [step for step in self.config.workflow if step.step is kind]

    def index(self, step: WorkflowStep) -> int:
        """Returns a step's position in the list."""
        return [each.id for each in self.config.workflow].index(step.id)

    def leads_to(self, step: WorkflowStep) -> int:
        """Returns the position of the step that follows one, unless it approves."""
        ids = [each.id for each in self.config.workflow]
        if step.loop_to is not None:
            return ids.index(step.loop_to)
        return (ids.index(step.id) + 1) % len(ids)

    def passed_on_approval(self, step: WorkflowStep) -> WorkflowStep:
        """Returns the last step that a judge's approval passes over: a refine, else its own."""
        following = self.config.workflow[self.index(step) + 1 :][:1]
        return following[0] if following and following[0].step is StepKind.REFINE else step

    def starts_round_on_approval(self, step: WorkflowStep) -> bool:
        """Tells whether leaving a judge with its approval begins the next iteration."""
        return self.passed_on_approval(step).id == self.config.workflow[-1].id

    def starts_round(self, step: WorkflowStep) -> bool:
        """Tells whether leaving a step without approval begins the next iteration."""
        return step.loop_to is not None or step.id == self.config.workflow[-1].id
