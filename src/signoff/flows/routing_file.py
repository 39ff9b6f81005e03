"""Where constraints are and who reviews them, as a flow file may say it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from signoff.documents.sections import Section
from signoff.flows.model import ConstraintConfig, PriorityRoute, RoutingConfig, RoutingRule
from signoff.flows.sections import AgentName, Word

AGENTS = 'a list of agents, as in ["claude", "codex"]'

Agents = Annotated[list[AgentName], Field(min_length=1)]


class RoutingRuleSection(Section):
    """Sends constraints whose id matches a pattern to some agents."""

    match: Word = Field(title="Which constraints", description="a pattern over constraint ids")
    agents: Agents = Field(title="Who reviews them", description=AGENTS)


class PriorityRouteSection(Section):
    """Sends constraints of a range of priorities to some agents."""

    range: list[int] = Field(
        min_length=2,
        max_length=2,
        title="Which priorities, both ends included",
        description="two whole numbers, the smaller one first, as in [1, 3]",
    )
    agents: Agents = Field(title="Who reviews them", description=AGENTS)

    @field_validator("range")
    @classmethod
    def _rises(cls, value: list[int]) -> list[int]:
        if value[0] > value[1]:
            raise ValueError(value)
        return value


class RoutingSection(Section):
    """Who reviews what, where neither the step nor the constraint says."""

    default_agents: list[AgentName] = Field(
        default_factory=list, title="Who reviews everything else", description=AGENTS
    )
    rules: list[RoutingRuleSection] = Field(
        default_factory=list,
        title="Who reviews constraints of some ids; the first match wins",
        description="a list of {match, agents}",
    )
    priority_routing: list[PriorityRouteSection] = Field(
        default_factory=list,
        title="Who reviews constraints of some priorities; the first match wins",
        description="a list of {range, agents}",
    )

    def value(self) -> RoutingConfig:
        """Returns it as a value."""
        return RoutingConfig(
            tuple(self.default_agents),
            tuple(RoutingRule(rule.match, tuple(rule.agents)) for rule in self.rules),
            tuple(
                PriorityRoute(route.range[0], route.range[1], tuple(route.agents))
                for route in self.priority_routing
            ),
        )


class ConstraintsSection(Section):
    """Where the constraints are, and who reviews them."""

    dir: Word | None = Field(
        None, title="A folder of constraint files", description="the path of a folder"
    )
    files: list[Word] = Field(
        default_factory=list,
        title="Constraint files, taken before the folder's",
        description="a list of paths",
    )
    inline: dict[str, Word] = Field(
        default_factory=dict,
        title="Constraints in one line each",
        description="a sentence by constraint id, as in {short: No sentence is long.}",
    )
    routing: RoutingSection = Field(
        default_factory=RoutingSection,
        title="Who reviews what",
        description="default_agents, rules or priority_routing",
    )

    def value(self) -> ConstraintConfig:
        """Returns it as a value."""
        return ConstraintConfig(
            self.dir, tuple(self.files), dict(self.inline), self.routing.value()
        )
