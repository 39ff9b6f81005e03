from pathlib import Path

from signoff.runtime.sub_agents import Dispatch
from signoff.skills.library.prompt_engineer import WORKFLOW
from tests.unit.skills.library.skill_runs import run_skill


async def test_the_agent_that_tries_the_prompt_knows_nothing_of_its_history(tmp_path: Path) -> None:
    """An agent that knows what was meant reads it into any text."""
    secret = "the summary must be short"

    run = await run_skill(WORKFLOW, {"goal": [secret]}, state_dir=str(tmp_path))

    assert isinstance(WORKFLOW["trial"].handler, Dispatch)
    assert secret in run.prompts[run.steps.index("revise")]
    assert secret not in run.prompts[run.steps.index("trial")]
