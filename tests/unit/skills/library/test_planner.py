import json
import re
from pathlib import Path

import pytest

from signoff.core.outcome import Outcome
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.library.planner import CONTEXT, EMPTY_CONTEXT, EMPTY_PLAN, PLAN, WORKFLOW
from tests.unit.skills.library import skill_runs

OK, FAIL = Outcome.OK, Outcome.FAIL

GATES = {
    "review_design": ("plan-design", "fix_design", "detail"),
    "review_code": ("plan-code", "fix_code", "documents"),
    "review_docs": ("plan-docs", "fix_docs", "hand_over"),
}


@pytest.mark.parametrize(("step", "gate"), GATES.items())
def test_each_part_of_the_plan_is_reviewed_until_it_passes(
    step: str, gate: tuple[str, str, str]
) -> None:
    """No part may be built on one that failed its review."""
    phase, fix, following = gate
    handler = WORKFLOW[step].handler

    assert isinstance(handler, Dispatch)
    assert handler.agent is AgentRole.QUALITY_REVIEWER
    commands = WORKFLOW.run(step).next_commands
    assert {outcome: each and each.step for outcome, each in commands.items()} == {
        OK: following,
        FAIL: fix,
    }
    assert WORKFLOW.run(fix).next == step
    assert f"qr-{phase}.json" in WORKFLOW[fix].instructions


def test_the_state_directory_starts_with_an_empty_plan_and_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents fill in the fields that reviewers will look for."""
    (tmp_path / ".signoff").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)

    assert WORKFLOW.prepare is not None
    folder = Path(WORKFLOW.prepare({})["state_dir"])

    assert folder.is_relative_to(tmp_path)
    assert json.loads((folder / CONTEXT).read_text()) == EMPTY_CONTEXT
    assert json.loads((folder / PLAN).read_text()) == EMPTY_PLAN


def test_every_field_of_the_context_and_the_plan_is_explained() -> None:
    """An agent would leave out a field that no step mentions."""
    text = "\n".join(step.instructions for step in WORKFLOW.steps.values())
    nested = [EMPTY_PLAN["planning_context"], EMPTY_PLAN["invisible_knowledge"]]
    fields = [*EMPTY_CONTEXT, *EMPTY_PLAN, *(name for part in nested for name in part)]

    assert [name for name in fields if not re.search(rf"[`.]{name}[`.]", text)] == []


def test_the_code_is_read_until_the_facts_are_well_supported() -> None:
    """A plan that was made without reading the code is a guess."""
    assert WORKFLOW.run("explore", confidence="low").next == "explore"
    assert WORKFLOW.run("explore", confidence="high").next == "decide"


async def test_in_a_run_a_failed_review_is_fixed_and_repeated(tmp_path: Path) -> None:
    """The worker that fixes the plan is shown what the reviewer found."""
    replies = {"review_code": [skill_runs.FAIL, skill_runs.PASS]}

    run = await skill_runs.run_skill(WORKFLOW, replies, state_dir=str(tmp_path))

    position = run.steps.index("fix_code")
    assert run.steps[position - 1 : position + 3] == [
        "review_code",
        "fix_code",
        "review_code",
        "documents",
    ]
    assert skill_runs.FAIL["notes"] in run.prompts[position]
    assert {"fix_design", "fix_docs"}.isdisjoint(run.steps)
