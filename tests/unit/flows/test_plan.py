"""Tests of what a dry run foretells."""

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.flows.compile import compile_flow
from signoff.flows.plan import FlowPlan, plan
from signoff.flows.sections import ConstraintConfig, Goal, RoutingConfig, RoutingRule
from signoff.review.constraint import SourceBlock
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import changed, constraint, flow, play, step

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


def planned() -> FlowPlan:
    made = flow(STEPS, CONSTRAINTS, max_iterations=4)
    routed = changed(made.config, constraints=ConstraintConfig(routing=ROUTING))
    return plan(compile_flow(replace(made, config=routed), "flow"))


def test_every_step_says_who_is_asked_and_about_what() -> None:
    """People look at this before they spend money."""
    draft, gate, review, judge, fix = planned().facts["plan"]

    assert (draft["agents"], draft["model"], draft["calls"]) == (["claude"], "opus", 1)
    assert (gate["constraints"], gate["agents"]) == (["legal-terms"], ["gemini"])
    assert review["constraints"] == ["legal-terms", "style"]
    assert (judge["scope"], judge["calls"]) == ("accumulated", 0)
    assert (fix["mode"], fix["loop_to"]) == ("edit", "review")


def test_who_decided_on_a_critic_is_told() -> None:
    """With rules, ranges and defaults, nobody knows by heart who reads what."""
    review = planned().facts["plan"][2]

    decided = {(ask["constraint"], ask["agent"]): ask["decided_by"] for ask in review["asks"]}
    assert decided[("legal-terms", "gemini")] == "the routing rule 'legal*'"
    assert decided[("style", "codex")] == "default_agents of the routing"


def test_calls_are_bounded_for_the_whole_run_and_corrections_counted_apart() -> None:
    """The bound must hold: 1 draft, 1 + 3 readings, no judge, 1 edit, four times over."""
    foreseen = planned()

    assert foreseen.calls == {
        "per_round": 6,
        "rounds": 4,
        "at_most": 24,
        "again_at_most": (4 + 2) * 4,
    }
    assert "at most 24 calls: 6 a round, 4 rounds" in foreseen.notes


def test_the_table_has_a_row_for_each_step() -> None:
    """It is what people read; the rest is for programs."""
    foreseen = planned()

    assert [row[0] for row in foreseen.rows] == ["draft", "gate", "review", "judge", "fix"]
    assert all(len(row) == len(foreseen.columns) for row in foreseen.rows)
    assert "loop_to review" in str(foreseen.rows[-1][-1])


async def test_the_first_prompt_has_the_size_that_is_foretold(tmp_path: Path) -> None:
    """Or the foretold size would be a guess, which anybody can make."""
    (tmp_path / "notes.md").write_text("Tea is a drink.\n" * 20)
    sources = SourceBlock(files=("notes.md", "gone.md"))
    about_tea = constraint("style", source=sources)
    made = flow((STEPS[0], STEPS[3]), (about_tea,), root=tmp_path)
    made = replace(made, goal=Goal(goal="Write about tea.", source=sources))
    agent = ScriptedAgent(["# Tea"])

    foretold = plan(compile_flow(made, "flow"))
    await play(made, {"claude": agent}, tmp_path / "runs")

    assert foretold.facts["plan"][0]["asks"][0]["prompt_chars"] == len(agent.prompts[0])


def test_programs_get_the_warnings_with_the_plan() -> None:
    """They do not see what the terminal shows before a run."""
    workflow = compile_flow(flow(STEPS, CONSTRAINTS), "flow", ["gone.md: no such file"])

    assert plan(workflow).facts["warnings"] == ["gone.md: no such file"]


@pytest.mark.parametrize("mode", ["edit", "apply", "rewrite"])
def test_every_way_to_refine_is_foretold(mode: str) -> None:
    """A rewrite sends the whole text, an edit does not; both cost one call."""
    made = flow((step("generate"), step("adjudicate"), step("refine", mode=mode)))

    _, _, refine = plan(compile_flow(made, "flow")).facts["plan"]

    assert (refine["mode"], refine["calls"]) == (mode, 1)
    assert refine["asks"][0]["prompt_chars"] > 100


async def test_the_size_of_a_brief_prompt_is_that_of_what_a_small_model_is_told(
    tmp_path: Path,
) -> None:
    """Whoever keeps a prompt short on purpose wants to see that it is."""
    made = flow([step("generate", agent="ann", prompt="brief"), *STEPS[2:3]], max_iterations=1)
    author, critic = ScriptedAgent(["The sea."]), ScriptedAgent(['{"overall": "PASS"}'])

    (foreseen, *_) = plan(compile_flow(made, "flow")).facts["plan"]
    await play(made, {"ann": author, "claude": critic}, tmp_path)

    assert [ask["prompt_chars"] for ask in foreseen["asks"]] == [len(author.prompts[0])]
