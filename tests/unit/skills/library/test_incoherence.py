from pathlib import Path

from signoff.skills.library.incoherence import WORKFLOW
from tests.unit.skills.library.skill_runs import run_skill


async def test_nothing_is_edited_before_it_was_decided(tmp_path: Path) -> None:
    """Which side is right is not for the agent to say."""
    decisions = "K1: requests time out after 30 s (docs/limits.md:12)"

    run = await run_skill(WORKFLOW, {"settle": [decisions]}, state_dir=str(tmp_path))

    order = ["sources", "collect", "compare", "confirm", "options", "settle", "apply", "verify"]
    assert run.steps == [*order, "report"]
    assert decisions in run.prompts[run.steps.index("apply")]
