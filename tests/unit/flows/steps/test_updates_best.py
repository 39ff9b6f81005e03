"""Which version is in `final/` when none was approved."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    constraint,
    fails,
    flow,
    issue,
    long_constraint,
    passes,
    play,
    step,
)

IN_TWO_PASSES = (
    step("generate"),
    step("critique", "structure", constraints=("structure",)),
    step("adjudicate", "first", agent="policy", scope="previous"),
    step("refine", "fix", mode="rewrite"),
    step("critique", "style", constraints=("style",)),
    step("adjudicate", "second", agent="policy"),
    step("refine", "polish", mode="rewrite", loop_to="structure"),
)


async def test_a_version_reviewed_against_fewer_constraints_is_not_the_best(tmp_path: Path) -> None:
    """A draft without a style review was saved, since it had no style findings yet."""
    claude = (
        ScriptedAgent(["draft", "fixed", "polished", "fixed again", "polished again"])
        .on("against structure now", fails(issue("no end")), passes())
        .on("against style now", fails(issue("dull"), issue("long")), fails(issue("dull")))
    )
    played = flow(IN_TWO_PASSES, [constraint("structure"), constraint("style")], max_iterations=2)

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "polished\n"
    assert "open: 1 HIGH" in (tmp_path / "run/final/status.md").read_text()


async def test_a_review_that_is_not_repeated_counts_for_the_later_version(tmp_path: Path) -> None:
    """With `rereview: changed`, the first draft was the only one read against everything."""
    loop = (
        step("generate"),
        step("critique", "review"),
        step("adjudicate", agent="policy"),
        step("refine", mode="rewrite", loop_to="review"),
    )
    claude = (
        ScriptedAgent(["one see", "two see", "red see"])
        .on(
            "against clear now",
            fails(issue("bad", "CRITICAL", "one see")),
            fails(issue("odd", "HIGH", "two see")),
        )
        .on("against short now", passes())
    )
    constraints = [constraint("clear"), long_constraint("short")]
    played = flow(loop, constraints, max_iterations=2, rereview="changed")

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "two see\n"
