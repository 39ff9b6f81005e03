import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.app.runs.history import need_review
from signoff.app.settings.project import Project
from signoff.core.errors import UsageError
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.policy import explain
from signoff.surfaces.notations.policy import recorded_run
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import fails, flow, issue, rules, step

TEXT = "The see is wide.\n"


async def test_only_flows_have_a_policy(project: Project) -> None:
    """A workflow in Python has findings of its own kind, or none."""
    async with project.engine() as engine:
        quick = Workflow("quick", StepDef("only", next={Outcome.OK: None}))
        await engine.start(quick, name="two")

    with pytest.raises(UsageError, match="is not a review flow"):
        recorded_run(project, "two")


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


async def test_a_fixed_finding_keeps_the_decision_about_it(project: Project) -> None:
    """Later judges do not see it any more, so the last verdict does not mention it."""
    await two_rounds(project)
    _, history = need_review(project, "two")
    (fixed,) = [each for each in history.findings if each.status == "fixed"]

    decision = explain(recorded_run(project, "two"), fixed).decision

    assert decision is not None
    assert decision["guidance"] == "Spell it."
