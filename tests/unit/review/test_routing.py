from dataclasses import dataclass

import pytest

from signoff.review.constraint import Constraint
from signoff.review.routing import PriorityRange, RoutingPattern, select_reviewers


@dataclass(frozen=True)
class Pattern:
    match: str
    agents: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    low: int
    high: int
    agents: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    default_agents: tuple[str, ...] = ()
    rules: tuple[RoutingPattern, ...] = ()
    priority_routing: tuple[PriorityRange, ...] = ()


FULL = Table(
    ("by-default",),
    (Pattern("sec*", ("by-rule", "second")), Pattern("*", ("late",))),
    (Span(1, 3, ("by-range",)), Span(2, 9, ("late",))),
)
NO_RULES = Table(("by-default",), (), FULL.priority_routing)
OWN = Constraint("security", 2, agents=("own",))
PLAIN = Constraint("security", 2)


@pytest.mark.parametrize(
    ("step", "constraint", "table", "agents", "by"),
    [
        ("step", OWN, FULL, ("step",), "the step's agent"),
        (None, OWN, FULL, ("own",), "the constraint's own agents"),
        (None, OWN, Table(), ("own",), "the constraint's own agents"),
        (None, PLAIN, FULL, ("by-rule", "second"), "the routing rule 'sec*'"),
        (None, Constraint("style", 2), FULL, ("late",), "the routing rule '*'"),
        (None, PLAIN, NO_RULES, ("by-range",), "the routing of priorities 1 to 3"),
        (None, Constraint("x", 3), NO_RULES, ("by-range",), "the routing of priorities 1 to 3"),
        (None, Constraint("x", 4), NO_RULES, ("late",), "the routing of priorities 2 to 9"),
        (None, Constraint("x", 10), NO_RULES, ("by-default",), "default_agents of the routing"),
        (None, PLAIN, Table(), ("claude",), "the default agent"),
        ("", Constraint("x", agents=()), Table(), ("claude",), "the default agent"),
    ],
)
def test_the_first_level_that_names_an_agent_decides(
    step: str | None, constraint: Constraint, table: Table, agents: tuple[str, ...], by: str
) -> None:
    """The reader of a flow file must be able to predict which agents are called, and why."""
    assert select_reviewers(step, constraint, table, ["claude"]) == (agents, by)


def test_a_critic_named_twice_reviews_once() -> None:
    """A doubled name would be paid for twice."""
    table = Table(default_agents=("a", "b", "a"))

    assert select_reviewers(None, PLAIN, table, [])[0] == ("a", "b")


def test_a_rule_without_agents_leaves_the_choice_to_the_next() -> None:
    """A constraint without critics would pass without a review."""
    table = Table(("by-default",), (Pattern("*", ()),))

    assert select_reviewers(None, PLAIN, table, [])[0] == ("by-default",)


def test_globs_are_case_sensitive_on_every_system() -> None:
    """The same file has to mean the same on every system."""
    table = Table(("by-default",), (Pattern("SEC*", ("by-rule",)),))

    assert select_reviewers(None, PLAIN, table, [])[0] == ("by-default",)


def test_a_flow_without_any_agent_gets_a_reason() -> None:
    """The caller refuses such a flow; the reason must be right."""
    assert select_reviewers(None, PLAIN, Table(), []) == ((), "no agent is named")
