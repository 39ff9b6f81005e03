"""Unknown agents are reported before any agent is paid."""

from signoff.flows.model import GenflowConfig
from signoff.flows.sections import ConstraintConfig, PriorityRoute, RoutingConfig, RoutingRule
from signoff.flows.validation import unknown_agents
from tests.unit.flows.harness import constraint, step

KNOWN = ("claude", "codex")


def test_every_key_that_can_name_an_agent_is_checked() -> None:
    """An unknown judge would otherwise be noticed after the critics were paid."""
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


def test_a_similar_name_is_suggested() -> None:
    """Most unknown agents are typos."""
    config = GenflowConfig(workflow=(step("generate", agent="cladue"),))

    (mistake,) = unknown_agents(config, [], KNOWN)

    assert "did you mean 'claude'?" in mistake.remedy


def test_without_a_list_of_agents_every_name_is_accepted() -> None:
    """Programs pass their own agents when they run a flow."""
    config = GenflowConfig(workflow=(step("generate", agent="mine"),))

    assert unknown_agents(config, [], None) == []
