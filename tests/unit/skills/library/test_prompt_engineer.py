from pathlib import Path

from signoff.core.outcome import Status
from signoff.runtime.dispatch import Dispatch
from signoff.skills.library.prompt_engineer import WORKFLOW
from tests.unit.skills.library.skill_runs import FAIL, PASS, run_skill

BEFORE = ["goal", "cases", "baseline"]
ROUND = ["diagnose", "revise", "trial"]


async def test_the_prompt_is_measured_before_it_is_changed(tmp_path: Path) -> None:
    """Without a baseline, no one can tell whether a change helped."""
    run = await run_skill(WORKFLOW, state_dir=str(tmp_path))

    assert run.steps == [*BEFORE, *ROUND, "deliver"]


async def test_a_failed_trial_is_explained_before_the_next_change(tmp_path: Path) -> None:
    """Changing words until a case passes fits the prompt to that case."""
    run = await run_skill(WORKFLOW, {"trial": [FAIL, PASS]}, state_dir=str(tmp_path))

    assert run.steps == [*BEFORE, *ROUND, *ROUND, "deliver"]
    again = [prompt for step, prompt in zip(run.steps, run.prompts, strict=True) if step in ROUND][
        3
    ]
    assert FAIL["notes"] in again


async def test_a_prompt_that_does_not_get_better_is_a_humans_decision(tmp_path: Path) -> None:
    """Some failures cannot be fixed by words."""
    run = await run_skill(WORKFLOW, {"trial": [FAIL]}, state_dir=str(tmp_path))

    assert run.result.status is Status.WAITING
    assert run.steps.count("trial") == 4


async def test_the_agent_that_tries_the_prompt_knows_nothing_of_its_history(tmp_path: Path) -> None:
    """An agent that knows what was meant reads it into any text."""
    secret = "the summary must be short"

    run = await run_skill(WORKFLOW, {"goal": [secret]}, state_dir=str(tmp_path))

    assert isinstance(WORKFLOW["trial"].handler, Dispatch)
    assert secret in run.prompts[run.steps.index("revise")]
    assert secret not in run.prompts[run.steps.index("trial")]
