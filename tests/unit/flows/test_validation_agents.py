"""Names of agents that nobody knows are told before anybody is paid."""

from signoff.flows.model import GenflowConfig
from signoff.flows.sections import ConstraintConfig, PriorityRoute, RoutingConfig, RoutingRule
from signoff.flows.validation import unknown_agents
from tests.unit.flows.harness import constraint, step

KNOWN = ("claude", "codex")


def test_every_place_that_can_name_an_agent_is_looked_at() -> None:
    """A judge nobody knows would otherwise be noticed after the critics were paid."""
    routing = RoutingConfig(
        default_agents=("a",),
        rules=(RoutingRule(match="x*", agents=("b", "claude")),),
        priority_routing=(PriorityRoute(range=(1, 5), agents=("c",)),),
    )
    config = GenflowConfig(
        workflow=(
            step("generate", agent="d"),
            step("critique"),
            step("adjudicate", agent="policy"),
        ),
        constraints=ConstraintConfig(routing=routing),
    )

    found = unknown_agents(config, [constraint("clear", agents=("e", "codex"))], KNOWN)

    assert [mistake.path[:3] for mistake in found] == [
        ("workflow", 0, "agent"),
        ("constraints", "routing", "default_agents"),
        ("constraints", "routing", "rules"),
        ("constraints", "routing", "priority_routing"),
        ("constraints",),
    ]


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    """Most unknown agents are slips of the pen."""
    config = GenflowConfig(workflow=(step("generate", agent="cladue"),))

    (mistake,) = unknown_agents(config, [], KNOWN)

    assert "did you mean 'claude'?" in mistake.remedy


def test_where_nobody_says_who_there_is_every_name_may_be_right() -> None:
    """Programs give agents of their own when they run a flow."""
    config = GenflowConfig(workflow=(step("generate", agent="mine"),))

    assert unknown_agents(config, [], None) == []
