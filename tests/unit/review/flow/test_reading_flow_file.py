from pathlib import Path

import pytest

from signoff.core.errors import InvalidWorkflow
from signoff.core.severity import IssueBehavior, Severity
from signoff.review.flow.model import ConvergenceConfig, Tension
from signoff.review.flow.reading import config_from_dict, read_flow_file
from signoff.review.flow.sections import PriorityRoute, RoutingRule
from signoff.review.pure.constraint import Constraint

FLOWS = Path(__file__).parents[3] / "fixtures" / "flows"


def test_a_file_with_only_a_version_is_the_whole_loop() -> None:
    """Every key is optional and has its documented default."""
    config = config_from_dict({"version": 1})

    generate, critique, adjudicate, refine = config.workflow
    assert config.max_iterations == 3
    assert config.constraints.routing.default_agents == ("claude", "codex", "gemini")
    assert (generate.agent, critique.agent, adjudicate.agent) == (None, None, None)
    assert critique.execution == "parallel"
    assert (refine.agent, refine.mode, refine.loop_to) == (None, "edit", "critique")
    assert (refine.validation_retries, refine.max_size_change_pct) == (2, 20.0)
    assert refine.on_invalid == "escalate"
    assert config.adjudication.block_on == (Severity.CRITICAL, Severity.HIGH)
    assert config.adjudication.triggers == ("max_iterations", "thrashing", "conflicting_criticals")
    assert config.adjudication.thrash_threshold == 2
    assert not config.allow_scripts


def test_every_key_of_the_loop_is_read() -> None:
    """A key that is accepted but ignored misleads its author."""
    config = read_flow_file(FLOWS / "genloop.yaml")

    generate, critique, adjudicate, refine = config.workflow
    routing = config.constraints.routing
    assert (config.name, config.max_iterations, config.allow_scripts) == ("handbook", 7, True)
    assert (generate.agent, generate.model) == ("codex", "large")
    assert critique.execution == "serial"
    assert adjudicate.agent == "policy"
    assert (refine.agent, refine.model, refine.mode) == ("gemini", "small", "rewrite")
    assert (refine.validation_retries, refine.max_size_change_pct) == (1, 35)
    assert (config.constraints.dir, config.constraints.files) == (
        "constraints",
        ("extra/tone.yaml",),
    )
    assert routing.default_agents == ("claude", "gemini")
    assert routing.rules == (RoutingRule(match="security*", agents=("claude", "codex")),)
    assert routing.priority_routing == (PriorityRoute(range=(1, 3), agents=("codex",)),)
    assert config.adjudication.triggers == ("max_iterations", "thrashing")
    assert config.adjudication.thrash_threshold == 4
    assert config.adjudication.tensions == (
        Tension(
            axis="brevity vs completeness",
            guidance="Lean to brevity.",
            winner_on_conflict="brevity",
        ),
    )
    assert config.adjudication.instructions == "Dismiss matters of taste."
    assert config.output.filename == "handbook.md"
    assert config.goal is not None
    assert config.goal.source.scripts == ("tools/facts.sh",)


@pytest.mark.parametrize(
    ("policy", "blocks"),
    [
        ("no_critical", "CRITICAL"),
        ("no_critical_or_high", "CRITICAL HIGH"),
        ("no_critical_and_no_high", "CRITICAL HIGH"),
        ("all_resolved", "CRITICAL HIGH MEDIUM LOW"),
    ],
)
def test_a_policy_is_a_name_for_what_blocks(policy: str, blocks: str) -> None:
    """The policy's name decides what blocks approval."""
    newer = config_from_dict({"adjudication": {"approval": {"policy": policy}}})
    older = config_from_dict({"termination": {"approve_when": policy}})

    assert [each.value for each in newer.adjudication.block_on] == blocks.split()
    assert older.adjudication == newer.adjudication


def test_every_issue_reaches_the_judge_of_the_loop() -> None:
    """`all_resolved` would be wrong if LOW issues were dropped."""
    config = config_from_dict({"default_behavior": {"low": "ignore"}})

    behaviors = [config.behavior(Constraint("a"), severity).behavior for severity in Severity]
    assert behaviors == [*[IssueBehavior.CONTINUE] * (len(Severity) - 1), IssueBehavior.IGNORE]


def test_a_human_is_asked_if_the_loop_does_not_converge_unless_the_file_lists_triggers() -> None:
    """A list of triggers is complete."""

    def rules(raw: dict[str, object]) -> ConvergenceConfig:
        return config_from_dict(raw).convergence

    assert rules({"version": 1}).action == "escalate"
    assert rules({"version": 1}).plateau == 4
    assert rules({"adjudication": {"escalation": {"thrash_threshold": 5}}}).plateau == 7
    assert rules({"termination": {"escalate_on": ["thrashing"]}}) == ConvergenceConfig()
    assert rules({"convergence": {"plateau": 2}}) == ConvergenceConfig(plateau=2)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"max_iterations": 21}, "a whole number from 1 to 20"),
        ({"phases": {"critique": {"pattern": "serial"}}}, "one of: parallel, sequential"),
        ({"phases": {"refine": {"mode": "fix"}}}, "one of: edit, rewrite, apply"),
        ({"phases": {"write": {}}}, "valid: generate, critique, adjudicate, refine"),
        ({"phases": {"generate": {"agent": ""}}}, "an agent's name"),
        ({"adjudication": {"escalation": {"thrash_threshold": 11}}}, "from 1 to 10"),
        ({"termination": {"escalate_on": ["boredom"]}}, "one of: max_iterations, thrashing"),
        ({"termination": {"approve_when": "never"}}, "one of: no_critical, no_critical_or_high"),
        ({"phasse": {}}, "did you mean 'phases'?"),
    ],
)
def test_a_wrong_value_of_the_loop_is_answered_with_the_valid_ones(
    raw: dict[str, object], words: str
) -> None:
    """Unknown values must not be dropped silently."""
    with pytest.raises(InvalidWorkflow) as caught:
        config_from_dict(raw)

    assert words in str(caught.value)
