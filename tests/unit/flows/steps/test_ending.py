"""What a run writes to `final/`."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.flows.model import AdjudicationConfig
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import answer_and_resume, fails, flow, issue, passes, play, step

JUDGED_BY_RULES = (
    step("generate"),
    step("critique"),
    step("adjudicate", agent="policy"),
    step("refine", mode="rewrite", loop_to="critique"),
)


async def test_an_approval_that_does_not_end_the_run_still_saves_the_artifact(
    tmp_path: Path,
) -> None:
    """With `on_approved: continue` at the end, a run used up its rounds and saved nothing."""
    steps = (
        step("generate"),
        step("critique"),
        step("adjudicate", "judge", agent="policy", on_approved="continue"),
        step("refine", mode="rewrite", loop_to="critique"),
    )
    claude = ScriptedAgent(["The sea."]).on("against clear now", passes())

    result = await play(flow(steps, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert result.reason == "1 round; a pass by 'judge' does not end the run"
    assert (tmp_path / "run/final/artifact.md").read_text() == "The sea.\n"


async def test_an_approval_after_more_rounds_replaces_the_earlier_status(
    tmp_path: Path,
) -> None:
    """The state of an approved run used to remain marked as not approved."""
    adjudication = AdjudicationConfig(triggers=("max_iterations",))
    played = flow(JUDGED_BY_RULES, max_iterations=1, adjudication=adjudication)
    claude = ScriptedAgent(["The see.", "The sea."]).on(
        "against clear now", fails(issue("misspelled", evidence="see")), passes()
    )
    store = MemoryStore()
    waiting = await play(played, {"claude": claude}, tmp_path, store=store)
    assert waiting.status is Status.WAITING
    names = {path.name for path in (tmp_path / "run/final").iterdir()}
    assert names == {"artifact.md", "artifact_unreviewed.md", "status.md"}

    result = await answer_and_resume(played, {"claude": claude}, tmp_path, store, "continue")

    assert result.status is Status.COMPLETED, result.reason
    final = tmp_path / "run/final"
    assert (final / "artifact.md").read_text() == "The sea.\n"
    assert [path.name for path in final.iterdir()] == ["artifact.md"]
