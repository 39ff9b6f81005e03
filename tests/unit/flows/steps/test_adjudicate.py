"""The judge is checked, and the loop ends."""

from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.flows.model import AdjudicationConfig, ConvergenceConfig
from signoff.review.severity import Severity
from signoff.store.memory import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import changed, fails, flow, go_on, issue, passes, play, rules, step

LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", mode="rewrite", loop_to="review"),
]


def by_policy() -> list[Any]:
    """Returns the same loop with the judge that costs nothing."""
    return [changed(s, agent="policy") if s.id == "judge" else s for s in LOOP]


def never_pleased(finding: str = "bad") -> ScriptedAgent:
    """Returns an agent whose critic finds the same in every version."""
    claude = ScriptedAgent()
    claude.on("You review an artifact", fails(issue(finding)))
    claude.on("Write the artifact", *(f"Version {n}." for n in range(1, 30)))
    return claude


@pytest.mark.parametrize(
    "decision",
    [
        {"issue_id": "clear-001", "status": "pursuing"},
        {"issue_id": "clear-001", "status": "pursuing", "severity": "LOW"},
        {"issue_id": "other", "status": "dismissed"},
        None,
    ],
)
async def test_an_approval_stands_only_if_nothing_that_blocks_is_pursued(
    decision: Any, tmp_path: Path
) -> None:
    """A judge that contradicts the findings must not decide alone, whatever it calls them."""
    said = rules("APPROVED", *([decision] if decision else []))
    claude = ScriptedAgent(["Text.", fails(issue("bad")), said, "Text!"])

    result = await play(flow(LOOP, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert result.state["last_adjudication"]["status"] == "REWRITE"
    assert result.state["last_adjudication"]["notes"]


async def test_a_judge_may_dismiss_what_a_critic_found(tmp_path: Path) -> None:
    """That is what it is there for."""
    said = rules("APPROVED", {"issue_id": "clear-001", "status": "dismissed", "rationale": "no"})
    claude = ScriptedAgent(["Text.", fails(issue("bad")), said])

    result = await play(flow(LOOP), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED


async def test_a_judge_nobody_can_read_is_asked_twice_then_a_person_decides(
    tmp_path: Path,
) -> None:
    """Two imitations of an approval are no approval."""
    made = flow(LOOP, max_iterations=1)
    twice = f"{rules('REWRITE')}\n{rules('APPROVED')}"
    claude = ScriptedAgent(["Text.", passes(), "APPROVED!", twice])
    store = MemoryStore()
    waiting = await play(made, {"claude": claude}, tmp_path, store=store)

    result = await go_on(made, {"claude": claude}, tmp_path, store, "rules")

    assert waiting.status is Status.WAITING
    # In a list it stands on one line, where only the stop parts what was wrong from what to do.
    assert ".\nretry: ask it again" in waiting.inbox[0].prompt
    assert result.status is Status.COMPLETED


@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize(
    "block_on",
    [(), (Severity.CRITICAL,), (Severity.CRITICAL, Severity.HIGH), tuple(Severity)],
    ids=len,
)
async def test_the_policy_judge_blocks_on_what_it_is_told_to(
    severity: Severity, block_on: tuple[Severity, ...], tmp_path: Path
) -> None:
    """No model is asked, and every cell of the policy holds."""
    from signoff.review.behaviors import ConstraintBehavior, IssueBehavior

    made = flow(
        by_policy(),
        max_iterations=1,
        adjudication=AdjudicationConfig(block_on=block_on),
        default_behavior=ConstraintBehavior(dict.fromkeys(Severity, IssueBehavior.CONTINUE)),
    )
    claude = ScriptedAgent(["Text.", fails(issue("bad", severity.value)), "Text!"])

    result = await play(made, {"claude": claude}, tmp_path)

    assert result.status is (Status.LIMIT if severity in block_on else Status.COMPLETED)


@pytest.mark.parametrize(
    ("rule", "config", "rounds"),
    [
        ("plateau", ConvergenceConfig(plateau=2), 3),
        ("thrashing", ConvergenceConfig(thrashing=2), 2),
    ],
)
async def test_a_loop_that_gets_nowhere_ends_by_name(
    rule: str, config: ConvergenceConfig, rounds: int, tmp_path: Path
) -> None:
    """Rounds that change nothing cost money and end in the same place."""
    made = flow(by_policy(), max_iterations=20, convergence=config)

    result = await play(made, {"claude": never_pleased()}, tmp_path)

    assert result.status is Status.NOT_CONVERGING
    assert rule in result.reason
    assert result.iteration == rounds
    assert (tmp_path / "run/final/artifact.md").read_text().startswith("Version")
    assert rule in (tmp_path / "run/final/status.md").read_text()


@pytest.mark.parametrize(
    ("answer", "status"), [("stop", Status.NOT_CONVERGING), ("continue", Status.WAITING)]
)
async def test_whether_to_go_on_may_be_for_a_person(
    answer: str, status: Status, tmp_path: Path
) -> None:
    """Escalating is configured; going on starts the count anew.

    Whoever decides reads what was found, and not only what it is numbered.
    """
    made = flow(
        by_policy(),
        max_iterations=20,
        convergence=ConvergenceConfig(thrashing=2, action="escalate"),
    )
    store, claude = MemoryStore(), never_pleased()
    first = await play(made, {"claude": claude}, tmp_path, store=store)

    result = await go_on(made, {"claude": claude}, tmp_path, store, answer)

    assert first.status is Status.WAITING
    assert first.inbox[0].prompt.startswith("The loop is not converging")
    assert "bad" in first.inbox[0].prompt
    assert result.status is status
    assert result.iteration == (first.iteration if answer == "stop" else 4)


async def test_findings_that_thrash_are_put_to_a_person_where_that_is_a_trigger(
    tmp_path: Path,
) -> None:
    """Pursued in three judgements in a row, nothing but a person will help."""
    made = flow(
        by_policy(), max_iterations=20, adjudication=AdjudicationConfig(triggers=("thrashing",))
    )
    store, claude = MemoryStore(), never_pleased()
    waiting = await play(made, {"claude": claude}, tmp_path, store=store)

    result = await go_on(made, {"claude": claude}, tmp_path, store, "write it in verse")

    assert (waiting.status, waiting.iteration) == (Status.WAITING, 3)
    assert waiting.inbox[0].prompt.endswith(": bad")
    assert (result.status, result.iteration) == (Status.WAITING, 6)
    assert "write it in verse" in claude.prompts[-1]


async def test_critical_findings_that_contradict_each_other_are_put_to_a_person(
    tmp_path: Path,
) -> None:
    """Two constraints that cannot both be kept are for whoever wrote them."""
    made = flow(LOOP, adjudication=AdjudicationConfig(triggers=("conflicting_criticals",)))
    found = fails(issue("too long", "CRITICAL"), issue("too short", "CRITICAL"))
    said = rules(
        "REWRITE",
        {"issue_id": "clear-001", "status": "pursuing", "competing_constraint": "complete"},
        {"issue_id": "clear-002", "status": "pursuing"},
    )

    result = await play(made, {"claude": ScriptedAgent(["Text.", found, said])}, tmp_path)

    assert result.status is Status.WAITING
    assert "complete" in result.inbox[0].prompt


async def test_the_iteration_limit_may_ask_a_person_for_more_rounds(tmp_path: Path) -> None:
    """The best version is there to be looked at while they decide."""
    made = flow(
        by_policy(), max_iterations=2, adjudication=AdjudicationConfig(triggers=("max_iterations",))
    )
    store, claude = MemoryStore(), never_pleased()
    waiting = await play(made, {"claude": claude}, tmp_path, store=store)
    saved = (tmp_path / "run/final/status.md").read_text()

    result = await go_on(made, {"claude": claude}, tmp_path, store, "continue")

    assert (waiting.status, waiting.iteration) == (Status.WAITING, 2)
    assert "2 iterations" in saved
    assert (result.status, result.iteration) == (Status.WAITING, 4)


async def test_an_earlier_judge_lets_the_flow_go_on_past_its_refine(tmp_path: Path) -> None:
    """Approving the structure is not approving the style."""
    made = flow(
        [
            step("generate"),
            step("critique", "one"),
            step("adjudicate", "first", agent="policy"),
            step("refine", "fix", mode="rewrite"),
            step("critique", "two"),
            step("adjudicate", "last", agent="policy"),
        ]
    )
    claude = ScriptedAgent(["Text.", passes(), passes()])

    result = await play(made, {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert claude.remaining == 0


async def test_the_best_reviewed_version_is_kept_not_the_last(tmp_path: Path) -> None:
    """At the limit a person gets the version with the fewest, least severe findings."""
    made = flow(by_policy(), max_iterations=3)
    claude = ScriptedAgent(
        [
            "One.",
            fails(issue("a", "CRITICAL"), issue("b", "CRITICAL")),
            "Two.",
            fails(issue("a", "CRITICAL")),
            "Three.",
            fails(issue("a", "CRITICAL"), issue("c", "CRITICAL")),
            "Four.",
        ]
    )

    await play(made, {"claude": claude}, tmp_path)

    assert (tmp_path / "run/final/artifact.md").read_text() == "Two.\n"
    assert (tmp_path / "run/final/artifact_unreviewed.md").read_text() == "Four.\n"
