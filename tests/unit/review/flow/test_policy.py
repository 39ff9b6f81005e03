from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.app.settings.project import Project
from signoff.core.errors import UnknownName, UsageError
from signoff.core.outcome import Status
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.policy import explain, replay
from signoff.review.pure.constraint import ConstraintBehavior
from signoff.surfaces.notations.policy import recorded_run
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import constraint, fails, flow, issue, rules, step

TEXT = "The see is wide.\n"


async def begin(project: Project, *, verdict: str = "REWRITE", **config: Any) -> list[str]:
    """Runs a flow to its end and returns the ids of its findings, the worst first."""
    played = flow(
        constraints=[
            replace(constraint("clear"), behavior=ConstraintBehavior.from_dict({"low": "continue"}))
        ],
        max_iterations=1,
        **config,
    )
    found = fails(
        issue("Misspelt.", "HIGH", "The see", id="clear-001"),
        issue("Too wide.", "LOW", "wide", id="clear-002"),
        issue("A whale.", "HIGH", "a purple whale", id="clear-003"),
    )
    decided = {"issue_id": "clear-002", "status": "dismissed", "rationale": "A matter of taste."}
    replies = [TEXT, found, found, rules(verdict, decided), "The sea is wide.\n"]
    project.agents = {"claude": ScriptedAgent(replies)}
    async with project.engine() as engine:
        result = await engine.start(compile_flow(played, "sea"), name="one")
    assert result.status is Status.LIMIT, result
    entries = result.state["findings"]["entries"]
    return [each["id"] for each in sorted(entries, key=lambda each: str(each["finding"]))][::-1]


@pytest.mark.parametrize("named", ["whole", "beginning", "issue"])
async def test_a_finding_is_named_by_its_id_a_prefix_or_its_issue(
    project: Project, named: str
) -> None:
    """Users copy from `show`, from a log, or from a critique."""
    _, misspelled, _ = await begin(project)
    name = {"whole": misspelled, "beginning": misspelled[:6], "issue": "clear-001"}[named]

    assert explain(recorded_run(project, "one"), name).finding.id == misspelled


@pytest.mark.parametrize("named", ["nope", "", "c"])
async def test_an_unknown_finding_is_reported_with_the_known_ones(
    project: Project, named: str
) -> None:
    """Twelve hexadecimal digits are easily mistyped."""
    ids = await begin(project)

    with pytest.raises(UnknownName, match="valid names: ") as caught:
        explain(recorded_run(project, "one"), named)

    assert all(each in str(caught.value) for each in ids)


async def test_only_flows_have_a_policy(project: Project, tmp_path: Path) -> None:
    """A workflow in Python has findings of its own kind, or none."""
    async with project.engine() as engine:
        quick = Workflow("quick", StepDef("only", next={Outcome.OK: None}))
        await engine.start(quick, name="two")

    with pytest.raises(UsageError, match="is not a review flow"):
        explain(recorded_run(project, "two"), "x")
    with pytest.raises(UsageError, match="is not a review flow"):
        replay(recorded_run(project, "two"), tmp_path / "policy.yaml")


async def two_rounds(project: Project) -> None:
    """Runs a flow whose second round has another finding under the same issue id."""
    bill = "Fix it."
    first = rules("REWRITE", {"issue_id": "clear-001", "guidance": "Spell it."}, bill=bill)
    replies = [
        *(TEXT, fails(issue("Misspelt.", "HIGH", "see"), issue("Dull.", "HIGH", "wide")), first),
        *("The sea is wide.\n", fails(issue("Dull.", "HIGH", "wide"))),
        *(rules("REWRITE", bill=bill), "The sea is deep.\n"),
    ]
    steps = [
        step("generate"),
        step("critique"),
        step("adjudicate"),
        step("refine", mode="rewrite", loop_to="critique"),
    ]
    project.agents = {"claude": ScriptedAgent(replies)}
    async with project.engine() as engine:
        await engine.start(compile_flow(flow(steps, max_iterations=2), "sea"), name="two")


@pytest.mark.parametrize(("named", "words"), [("clear-001", "Dull."), ("clear-002", "Dull.")])
async def test_an_issue_of_any_round_names_its_finding_the_latest_round_first(
    project: Project, named: str, words: str
) -> None:
    """Ids of earlier rounds appear in critiques and logs, and were unknown after the round."""
    await two_rounds(project)

    assert explain(recorded_run(project, "two"), named).finding.finding == words


async def test_a_fixed_finding_keeps_the_decision_about_it(project: Project) -> None:
    """Later judges do not see it any more, so the last verdict does not mention it."""
    await two_rounds(project)
    (fixed,) = [
        each for each in recorded_run(project, "two").findings.values() if each.status == "fixed"
    ]

    decision = explain(recorded_run(project, "two"), fixed.id).decision

    assert decision is not None
    assert decision["guidance"] == "Spell it."


async def test_an_issue_that_may_be_several_findings_is_not_guessed(project: Project) -> None:
    """Two critics use the same id for different issues."""
    steps = [step("generate"), step("critique"), step("adjudicate", agent="policy")]
    played = flow(steps, [constraint("clear", agents=("claude", "codex"))], max_iterations=1)
    claude = ScriptedAgent([TEXT, fails(issue("Misspelt.", "HIGH", "see"))])
    codex = ScriptedAgent([fails(issue("Dull.", "HIGH", "wide"))])
    project.agents = {"claude": claude, "codex": codex}
    async with project.engine() as engine:
        await engine.start(compile_flow(played, "sea"), name="both")

    with pytest.raises(UsageError, match="matches several findings") as caught:
        explain(recorded_run(project, "both"), "clear-001")

    assert all(
        each.id in str(caught.value) for each in recorded_run(project, "both").findings.values()
    )
