"""Workflows as users would write them, for the command line to run."""

ENDS = '''
"""Ends as the parameter `ending` says."""
from datetime import timedelta
from typing import Annotated

from signoff import Arg, Edge, End, Outcome, Question, StepDef, Workflow


async def work(ctx, ending: Annotated[str, Arg("how to end")] = "completed"):
    if ending == "failed":
        raise RuntimeError("out of luck")
    if ending == "waiting":
        answer = await ctx.wait(Question("What is your name?"))
        return Outcome.OK, {"name": answer.value}
    if ending == "parked":
        await ctx.park(timedelta(hours=1))
    if ending == "budget":
        await ctx.ask("echo", "hello")
    outcomes = {
        "rejected": Outcome.FAIL,
        "not_converging": Outcome.SKIP,
        "round_limit": Outcome.ITERATE,
    }
    return outcomes.get(ending, Outcome.OK), {}


WORKFLOW = Workflow(
    "ends",
    StepDef(
        "only",
        handler=work,
        next={
            Outcome.OK: None,
            Outcome.FAIL: End.REJECTED,
            Outcome.SKIP: End.NOT_CONVERGING,
            Outcome.ITERATE: Edge("only", bound=2),
        },
    ),
)
'''

SIGNS = '''
"""Writes a draft, has it approved, publishes it."""
from signoff import Approval, End, Outcome, StepDef, Workflow

TEXT = "the draft\\n"


async def draft(ctx):
    await ctx.command(["sh", "-c", "echo drafted >> calls.txt"], on_crash="rerun")
    await ctx.write("draft.md", TEXT)
    return Outcome.OK, {"text": TEXT}


async def sign(ctx):
    request = Approval("Ship this?", ctx.step_state["text"], path="draft.md")
    answer = await ctx.wait(request)
    outcome = Outcome.OK if answer.approved else Outcome.FAIL
    return outcome, {"by": answer.by, "why": answer.text}


async def publish(ctx):
    await ctx.write("final/published.md", ctx.step_state["text"])
    return Outcome.OK, {}


WORKFLOW = Workflow(
    "signs",
    StepDef("draft", handler=draft, next={Outcome.OK: "sign"}),
    StepDef("sign", handler=sign, next={Outcome.OK: "publish", Outcome.FAIL: End.REJECTED}),
    StepDef("publish", handler=publish, next={Outcome.OK: None}),
)
'''

HOLDS = '''
"""Does one thing at once, and then a second one that takes until the file `go` is there."""
from signoff import Outcome, StepDef, Workflow

HOLD = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done"


async def first(ctx):
    await ctx.command(["sh", "-c", "echo first >> calls.txt"], on_crash="rerun")
    return Outcome.OK, {}


async def second(ctx):
    await ctx.command(["sh", "-c", HOLD], on_crash="rerun")
    return Outcome.OK, {}


WORKFLOW = Workflow(
    "holds",
    StepDef("first", handler=first, next={Outcome.OK: "second"}),
    StepDef("second", handler=second, next={Outcome.OK: None}),
)
'''

DEFIES = HOLDS.replace('HOLD = "', "HOLD = \"trap '' TERM INT; ")
"""The same with a program that does not end when it is asked to."""

SEVERAL = '''
"""Has three texts approved, all at once."""
from signoff import Approval, Outcome, StepDef, Workflow


async def sign(ctx, name):
    return (await ctx.wait(Approval(f"Ship {name}?", f"text {name}"))).approved


async def work(ctx):
    return Outcome.OK, {"shipped": await ctx.map(["a", "b", "c"], sign)}


WORKFLOW = Workflow("several", StepDef("only", handler=work, next={Outcome.OK: None}))
'''
