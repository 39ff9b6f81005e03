"""`signoff prompts` shows what the steps of a flow send."""

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.errors import UnknownName
from signoff.flows.compile import compile_flow
from signoff.flows.model import VerifyConfig
from signoff.flows.prompt_preview import previews_of_flow
from signoff.flows.sections import Goal
from signoff.review.constraint import SourceBlock
from tests.unit.flows.harness import constraint, flow, step

STEPS = (
    step("generate"),
    step("critique"),
    step("adjudicate"),
    step("refine", mode="rewrite"),
)


def test_each_step_is_shown_with_real_material_and_clear_placeholders(tmp_path: Path) -> None:
    """Users see what they pay for before they pay for it."""
    (tmp_path / "notes.md").write_text("Tides come twice a day.")
    sources = SourceBlock(files=("notes.md",), scripts=("date",))
    goal = Goal(goal="Write about the sea.", source=sources)
    the_flow = replace(
        flow(STEPS, (constraint("clear"), constraint("short")), root=tmp_path), goal=goal
    )

    shown = previews_of_flow(compile_flow(the_flow, "sea"))

    assert [(each.step, each.constraint) for each in shown] == [
        ("generate", None),
        ("critique", "clear"),
        ("critique", "short"),
        ("adjudicate", None),
        ("refine", None),
    ]
    assert all(each.prompt.system for each in shown)
    assert all("Write about the sea." in each.prompt for each in shown)
    assert "Tides come twice a day." in shown[0].prompt
    assert "(the output of the script)" in shown[0].prompt
    assert "Tides come twice a day." in shown[1].prompt
    assert "(the artifact)" in shown[1].prompt
    assert "(a finding of a critic)" in shown[3].prompt
    assert "(the work order of the judge)" in shown[4].prompt


def test_one_step_can_be_named_and_a_judge_by_rules_gets_no_prompt() -> None:
    """A wrong name lists the valid ones."""
    workflow = compile_flow(flow([*STEPS[:2], step("adjudicate", agent="policy")]), "sea")

    assert [each.step for each in previews_of_flow(workflow, "critique")] == ["critique"]
    assert previews_of_flow(workflow, "adjudicate") == []
    with pytest.raises(UnknownName, match="generate"):
        previews_of_flow(workflow, "judge")


def test_the_question_to_the_confirming_agent_is_shown_with_the_critics() -> None:
    """It is sent by the same step, and costs a call for each severe finding."""
    verify = VerifyConfig(agent="codex")

    *_, shown = previews_of_flow(compile_flow(flow(STEPS, verify=verify), "sea"), "critique")

    assert (shown.kind, shown.agents) == ("verify", ("codex",))
    assert "(a finding of a critic)" in shown.prompt
