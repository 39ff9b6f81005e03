import pytest

from signoff.review.flow.model import select_reviewers
from signoff.review.flow.sections import PriorityRoute, RoutingConfig, RoutingRule
from signoff.review.pure.constraint import Constraint

FULL = RoutingConfig(
    default_agents=("by-default",),
    rules=(
        RoutingRule(match="sec*", agents=("by-rule", "second")),
        RoutingRule(match="*", agents=("late",)),
    ),
    priority_routing=(
        PriorityRoute(range=(1, 3), agents=("by-range",)),
        PriorityRoute(range=(2, 9), agents=("late",)),
    ),
)
NO_RULES = RoutingConfig(default_agents=FULL.default_agents, priority_routing=FULL.priority_routing)
OWN = Constraint("security", 2, agents=("own",))
PLAIN = Constraint("security", 2)


@pytest.mark.parametrize(
    ("step", "constraint", "routing", "agents", "by"),
    [
        ("step", OWN, FULL, ("step",), "the step's agent"),
        (None, OWN, FULL, ("own",), "the constraint's own agents"),
        (None, OWN, RoutingConfig(), ("own",), "the constraint's own agents"),
        (None, PLAIN, FULL, ("by-rule", "second"), "the routing rule 'sec*'"),
        (None, Constraint("style", 2), FULL, ("late",), "the routing rule '*'"),
        (None, PLAIN, NO_RULES, ("by-range",), "the routing of priorities 1 to 3"),
        (None, Constraint("x", 3), NO_RULES, ("by-range",), "the routing of priorities 1 to 3"),
        (None, Constraint("x", 4), NO_RULES, ("late",), "the routing of priorities 2 to 9"),
        (None, Constraint("x", 10), NO_RULES, ("by-default",), "default_agents of the routing"),
        (None, PLAIN, RoutingConfig(), ("claude",), "the default agent"),
        ("", Constraint("x", agents=()), RoutingConfig(), ("claude",), "the default agent"),
    ],
)
def test_the_first_level_that_names_an_agent_decides(
    step: str | None,
    constraint: Constraint,
    routing: RoutingConfig,
    agents: tuple[str, ...],
    by: str,
) -> None:
    """The reader of a flow file must be able to predict which agents are called, and why."""
    assert select_reviewers(step, constraint, routing, ["claude"]) == (agents, by)


def test_a_rule_without_agents_leaves_the_choice_to_the_next() -> None:
    """A constraint without critics would pass without a review."""
    routing = RoutingConfig(
        default_agents=("by-default",),
        # Files cannot contain such a rule, but a definition in Python can.
        rules=(RoutingRule.model_construct(match="*", agents=()),),
    )

    assert select_reviewers(None, PLAIN, routing, [])[0] == ("by-default",)


def test_globs_are_case_sensitive_on_every_system() -> None:
    """The same file has to mean the same on every system."""
    routing = RoutingConfig(
        default_agents=("by-default",), rules=(RoutingRule(match="SEC*", agents=("by-rule",)),)
    )

    assert select_reviewers(None, PLAIN, routing, [])[0] == ("by-default",)
