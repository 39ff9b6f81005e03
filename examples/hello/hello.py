"""A first workflow: three look-ups at once, then a person signs off."""

from signoff import Approval, End, Outcome, StepDef, Workflow


async def read(ctx, topic):
    """Looks one topic up; `sleep` stands for work that takes a while."""
    script = f"sleep 2; echo notes on {topic}"
    found = await ctx.command(["sh", "-c", script], on_crash="rerun")
    return found.stdout.strip()


async def research(ctx):
    """Looks all topics up at once; each finished one is kept whatever happens next."""
    return Outcome.OK, {"notes": await ctx.map(["cats", "dogs", "birds"], read)}


async def sign_off(ctx):
    """Shows a person exactly what would be published."""
    answer = await ctx.wait(Approval("Publish this?", "\n".join(ctx.step_state["notes"])))
    return (Outcome.OK if answer.approved else Outcome.FAIL), {}


WORKFLOW = Workflow(
    "hello",
    StepDef("research", handler=research, next={Outcome.OK: "sign_off"}),
    StepDef("sign_off", handler=sign_off, next={Outcome.OK: None, Outcome.FAIL: End.REJECTED}),
)
