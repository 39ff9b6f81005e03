"""What findings do to a review: every severity, behavior, level and execution mode."""

from itertools import product
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.core.severity import DEFAULT_BLOCK_ON, IssueBehavior, Severity
from signoff.review.flow.model import Flow
from signoff.review.pure.constraint import ConstraintBehavior, Level
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.tables import table
from tests.unit.review.flow.harness import (
    answer_and_resume,
    constraint,
    fails,
    flow,
    issue,
    passes,
    play,
    step,
)

CASES = list(product(Severity, IssueBehavior, Level, ("parallel", "serial")))


def behaving(
    severity: Severity, behavior: IssueBehavior, level: Level, execution: str
) -> tuple[Flow, bool]:
    """Returns a flow in which one level sets a behavior, and whether that level can set it."""
    behaviors = ConstraintBehavior({severity: behavior})
    # Lower levels set another behavior, so that only the right level explains the result.
    other = next(b for b in IssueBehavior if b is not behavior)
    below = ConstraintBehavior(dict.fromkeys(Severity, other))
    own = behaviors if level is Level.CONSTRAINT else None
    of_flow = behaviors if level is Level.FLOW else below if level is Level.CONSTRAINT else None
    default = behaviors if level is Level.DEFAULT else below
    if level is Level.BUILT_IN:
        of_flow, default = None, ConstraintBehavior()
    first = constraint("first", priority=1, behavior=own)
    the_flow = flow(
        [
            step("generate"),
            step("critique", execution=execution),
            step("adjudicate", agent="policy"),
            step("refine", mode="rewrite"),
        ],
        [first, constraint("second", priority=2)],
        constraint_behaviors={"first": of_flow} if of_flow else {},
        default_behavior=default,
        max_iterations=1,
    )
    return the_flow, the_flow.config.behavior(first, severity).behavior is behavior


@table(("severity", "behavior", "level", "execution"), CASES)
async def test_every_behavior_at_every_level(
    severity: Severity,
    behavior: IssueBehavior,
    level: Level,
    execution: str,
    tmp_path: Path,
) -> None:
    """Policy is data, and users rely on every combination."""
    the_flow, possible = behaving(severity, behavior, level, execution)
    if not possible:
        assert level is Level.BUILT_IN
        return
    verdict = fails(issue("found", severity.value))
    claude = ScriptedAgent(["Text.", verdict])
    claude.on(lambda request: "against second now" in request.prompt, passes())
    claude.on("# Goal", "Text.", "Other text.")
    claude.on("against first now", verdict)

    store = MemoryStore()
    result = await play(the_flow, {"claude": claude}, tmp_path, store=store)

    read_second = any("against second now" in prompt for prompt in claude.prompts)
    stops = behavior in (IssueBehavior.HALT, IssueBehavior.ESCALATE)
    # What was skipped is read before the approval that ends the run.
    skips = execution == "serial" and stops and result.status is not Status.COMPLETED
    assert read_second is not skips
    if behavior is IssueBehavior.ESCALATE:
        assert result.status is Status.WAITING
        result = await answer_and_resume(the_flow, {"claude": claude}, tmp_path, store, "leave it")
    blocks = severity in DEFAULT_BLOCK_ON and behavior is not IssueBehavior.IGNORE
    assert result.status is (Status.LIMIT if blocks else Status.COMPLETED), result.reason
    judged = result.state["last_adjudication"]
    assert bool(judged["decisions"]) is (behavior is not IssueBehavior.IGNORE)


@pytest.mark.parametrize("execution", ["parallel", "serial"])
async def test_an_escalation_next_to_a_halt_still_asks_a_human(
    execution: str, tmp_path: Path
) -> None:
    """A halt in the same critique must not suppress the escalation."""
    behaviors = ConstraintBehavior(
        {Severity.CRITICAL: IssueBehavior.ESCALATE, Severity.HIGH: IssueBehavior.HALT}
    )
    the_flow = flow(
        [step("generate"), step("critique", execution=execution), step("adjudicate")],
        default_behavior=behaviors,
    )
    claude = ScriptedAgent(["Text.", fails(issue("halts", "HIGH"), issue("worse", "CRITICAL"))])

    result = await play(the_flow, {"claude": claude}, tmp_path)

    assert result.status is Status.WAITING
    (item,) = result.inbox
    assert "worse" in item.prompt
    assert "halts" not in item.prompt


async def test_a_finding_that_several_critics_escalate_is_asked_about_once(tmp_path: Path) -> None:
    """Users saw every finding as often as there were critics."""
    the_flow = flow(
        [step("generate"), step("critique"), step("adjudicate")],
        [constraint("clear", agents=("ann", "ben"))],
        default_behavior=ConstraintBehavior({Severity.HIGH: IssueBehavior.ESCALATE}),
    )
    agents = {name: ScriptedAgent([fails(issue("dull"))]) for name in ("ann", "ben")}

    result = await play(the_flow, {"claude": ScriptedAgent(["Text."]), **agents}, tmp_path)

    (item,) = result.inbox
    assert item.prompt.count("dull") == 1
