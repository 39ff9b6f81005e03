"""What has changed in a run since a commit, computed from its journal."""

from signoff import Approval, Outcome, StepContext, StepDef, Workflow
from signoff.app.history import news
from signoff.app.project import Project
from signoff.flows.compile import compile_flow
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import fails, flow, issue, passes, step


async def two_steps(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    approved = await ctx.wait(Approval("Ship?", "text"))
    return Outcome.OK, {"approved": approved.value}


ASKS = Workflow("asks", StepDef("only", handler=two_steps, next={Outcome.OK: None}))

LOOP = [
    step("generate", "draft"),
    step("critique", "review"),
    step("adjudicate", "judge", agent="policy"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
]


async def test_nothing_is_new_for_who_has_seen_everything(project: Project) -> None:
    """A follower pays for each word of an answer."""
    async with project.engine() as engine:
        await engine.start(ASKS, name="one")
    head = project.store.row("one").head

    for after in (head, head + 100):
        found = news(project, "one", after)
        assert found.before == found.now
        assert found.decisions == ()


async def test_findings_are_counted_as_new_and_gone(project: Project) -> None:
    """An agent sees at each commit whether the review gets better."""
    first = fails(issue("A typo.", evidence="see is"), issue("Dull.", "MEDIUM", "wide"))
    claude = ScriptedAgent(["The see is wide.", first, "The sea is blue.", passes()])
    project.agents = {"claude": claude}
    async with project.engine() as engine:
        await engine.start(compile_flow(flow(LOOP), "sea"), name="one")
    heads = range(project.store.row("one").head + 1)

    seen = [news(project, "one", after) for after in heads]

    assert all(each.open_findings == {} for each in seen)
    assert {"HIGH": 1, "MEDIUM": 1} in [each.gone_findings for each in seen]
    assert seen[0].gone_findings == seen[-1].gone_findings == {}
    assert seen[0].now.spend.calls == 4
