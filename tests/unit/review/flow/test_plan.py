"""Tests of the plan that a dry run shows."""

from dataclasses import replace

from signoff.core.workflow import Workflow
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.plan import call_bounds, dry_run
from signoff.review.flow.sections import ConstraintConfig, RoutingConfig, RoutingRule
from tests.unit.review.flow.harness import changed, constraint, flow, step

ROUTING = RoutingConfig(
    default_agents=("claude", "codex"), rules=(RoutingRule(match="legal*", agents=("gemini",)),)
)
STEPS = (
    step("generate", "draft", model="opus"),
    step("critique", "gate", agent="gemini", execution="serial", constraints=("legal*",)),
    step("critique", "review"),
    step("adjudicate", "judge", agent="policy"),
    step("refine", "fix", agent="codex", loop_to="review", validation_retries=2),
)
CONSTRAINTS = (constraint("style"), constraint("legal-terms", priority=1))


def planned() -> Workflow:
    the_flow = flow(STEPS, CONSTRAINTS, max_iterations=4)
    routed = changed(the_flow.config, constraints=ConstraintConfig(routing=ROUTING))
    return compile_flow(replace(the_flow, config=routed), "flow")


def test_the_rule_that_selected_a_critic_is_shown() -> None:
    """With rules, ranges and defaults, users cannot know which agent reviews what."""
    review = dry_run(planned()).facts["plan"][2]

    decided = {(ask["constraint"], ask["agent"]): ask["decided_by"] for ask in review["asks"]}
    assert decided[("legal-terms", "gemini")] == "the routing rule 'legal*'"
    assert decided[("style", "codex")] == "default_agents of the routing"


def test_calls_are_bounded_for_the_whole_run_and_corrections_counted_separately() -> None:
    """The bound must hold: 1 draft, 1 + 3 reviews, no judge, 1 edit, four times."""
    assert call_bounds(planned()) == {
        "per_round": 6,
        "rounds": 4,
        "at_most": 24,
        "again_at_most": (4 + 2) * 4,
    }
    assert "at most 24 calls: 6 a round, 4 rounds" in dry_run(planned()).notes


def test_programs_get_the_warnings_with_the_plan() -> None:
    """They do not see what the terminal shows before a run."""
    workflow = compile_flow(flow(STEPS, CONSTRAINTS), "flow", ["gone.md: no such file"])

    assert dry_run(workflow).facts["warnings"] == ["gone.md: no such file"]


def test_calls_that_confirm_findings_are_announced() -> None:
    """Their number depends on the findings, so no bound includes them."""
    workflow = compile_flow(flow(STEPS, CONSTRAINTS, verify={"agent": "gemini"}), "flow")

    notes = dry_run(workflow).notes

    assert "and one call of gemini for each finding that is HIGH or worse (verify)" in notes
