"""A first workflow: three lookups in parallel, then a human signs off."""

from signoff import Approval, End, Outcome, StepDef, Workflow


async def read(ctx, topic):
    """Looks up one topic; `sleep` simulates work that takes a while."""
    script = f"sleep 2; echo notes on {topic}"
    found = await ctx.command(["sh", "-c", script], on_crash="rerun")
    return found.stdout.strip()


async def research(ctx):
    """Looks up all topics in parallel; finished lookups survive a crash."""
    return Outcome.OK, {"notes": await ctx.map(["cats", "dogs", "birds"], read)}


async def sign_off(ctx):
    """Shows the approver exactly what would be published."""
    answer = await ctx.wait(Approval("Publish this?", "\n".join(ctx.step_state["notes"])))
    return (Outcome.OK if answer.approved else Outcome.FAIL), {}


WORKFLOW = Workflow(
    "hello",
    StepDef("research", handler=research, next={Outcome.OK: "sign_off"}),
    StepDef("sign_off", handler=sign_off, next={Outcome.OK: None, Outcome.FAIL: End.REJECTED}),
)
