"""Release notes, written by an agent, reviewed by critics, signed off by a person.

The critics are plain code: what they can decide they decide exactly, and for nothing.
The writer is whatever agent the settings call `writer`; here one that plays back drafts
from a file, so the example runs anywhere and costs nothing.
"""

import re

from signoff import (
    Append,
    Condition,
    Edge,
    End,
    Gate,
    GateOption,
    Outcome,
    StepContext,
    StepDef,
    StepFailed,
    Workflow,
)

GOAL = "Write release notes for version 2.4 in three short bullet points."
Result = tuple[Outcome, dict[str, object]]


async def draft(ctx: StepContext) -> Result:
    """Asks for a first version."""
    reply = await ctx.ask("writer", GOAL, key="draft")
    return Outcome.OK, {"artifact": reply.text.strip(), "rounds": []}


async def review(ctx: StepContext) -> Result:
    """Lets every critic look at once."""
    artifact = ctx.step_state["artifact"]

    async def one(item: StepContext, critic: str) -> list[str]:
        item.progress(f"{critic} is reading")
        return CRITICS[critic](artifact)

    found = await ctx.map(list(CRITICS), one, key="critics")
    findings = [text for critic in found for text in critic]
    ctx.progress(f"{len(findings)} findings")
    return Outcome.OK, {"findings": findings, "rounds": Append([len(findings)])}


async def judge(ctx: StepContext) -> Result:
    """Passes only what has no open finding."""
    return (Outcome.ITERATE if ctx.step_state["findings"] else Outcome.OK), {}


async def refine(ctx: StepContext) -> Result:
    """Asks for a better version, saying exactly what is wrong with this one."""
    open_findings = "\n".join(f"- {finding}" for finding in ctx.step_state["findings"])
    prompt = f"{GOAL}\n\nYour version:\n{ctx.step_state['artifact']}\n\nMend:\n{open_findings}"
    if ctx.feedback:
        prompt += f"\n\nA person says: {ctx.feedback}"
    reply = await ctx.ask("writer", prompt, key="refine")
    if not reply.text.strip():
        raise StepFailed("the writer returned nothing")
    return Outcome.OK, {"artifact": reply.text.strip()}


async def publish(ctx: StepContext) -> Result:
    """Writes what was signed off, byte for byte."""
    await ctx.write("final/release-notes.md", ctx.step_state["artifact"] + "\n")
    return Outcome.OK, {}


def says_what_changed(text: str) -> list[str]:
    """Wants one bullet for each change."""
    bullets = re.findall(r"^- ", text, re.MULTILINE)
    return [] if len(bullets) == 3 else [f"three bullets wanted, {len(bullets)} found"]


def is_short(text: str) -> list[str]:
    """Wants lines that fit a screen."""
    return [f"line too long: {line[:30]}..." for line in text.splitlines() if len(line) > 72]


def promises_nothing(text: str) -> list[str]:
    """Wants no word a lawyer would strike out."""
    return [f"promises too much: {word!r}" for word in ("always", "never", "best") if word in text]


CRITICS = {"content": says_what_changed, "length": is_short, "tone": promises_nothing}

WORKFLOW = Workflow(
    "release-notes",
    StepDef("draft", "Write a first version", handler=draft, next={Outcome.OK: "review"}),
    StepDef("review", "Let the critics look", handler=review, next={Outcome.OK: "judge"}),
    StepDef(
        "judge",
        "Decide",
        handler=judge,
        next={Outcome.ITERATE: Edge("refine", bound=4)},
        gate=Gate(
            "Publish these release notes?",
            [
                GateOption("publish", "publish"),
                GateOption("change", "refine", requires_input=True),
                GateOption("drop", End.REJECTED),
            ],
            context=["artifact", "rounds"],
        ),
    ),
    StepDef(
        "refine",
        "Mend what was found",
        handler=refine,
        postconditions=[
            Condition(
                "it is another version",
                lambda ctx: ctx.result["artifact"] != "",
                "the writer changed nothing",
            )
        ],
        next={Outcome.OK: Edge("review", bound=6, starts_iteration=True)},
    ),
    StepDef("publish", "Write the file", handler=publish, next={Outcome.OK: None}),
    max_iterations=5,
)
