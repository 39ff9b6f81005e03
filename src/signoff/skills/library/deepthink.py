"""Works out an answer to an open question: criteria, facts, candidates, a draft, attacks on it."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    NOTES_IN_REPLY,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until,
    repeat_until_confident,
)
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Work out an answer to an open question. Use it for designs, trade-offs and strategies with
several defensible answers. Do not use it for facts, a cause (problem-analysis), or a decision
made (decision-critic)."""

TEXTS = texts_beside(__file__)

BRIEF = "brief.md"

QUICK, FULL = "quick", "full"

Mode = Annotated[str | None, Arg("alone, or with sub-agents", choices=(QUICK, FULL))]
Angles = Annotated[list[str] | None, Arg("names of the angles, separated by commas")]
DEFAULT_ANGLE = "the one who bears the consequences"
Result = tuple[Outcome, dict[str, Any]]


def frame(ctx: StepContext, mode: Mode = None, iteration: Iteration = 1) -> Result:
    """Asks for the mode until there is one."""
    outcome, _ = repeat_until(mode is not None, ctx, iteration)
    return outcome, {"mode": mode or FULL}


def candidates(ctx: StepContext, mode: Mode = None) -> Result:
    """Leaves out the sub-agents in mode quick."""
    chosen = mode or ctx.step_state.get("mode")
    return (Outcome.SKIP if chosen == QUICK else Outcome.OK), {}


def angles(ctx: StepContext, angles: Angles = None, iteration: Iteration = 1) -> Result:
    """Keeps the angles for the sub-agents."""
    outcome, _ = repeat_until(bool(angles), ctx, iteration)
    return outcome, {"angles": angles or [DEFAULT_ANGLE]}


def refine(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> Result:
    """Repeats the attacks until the answer holds."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "deepthink",
    StepDef(
        "frame",
        "Frame the question",
        [TEXTS["frame"], NOTES_IN_REPLY],
        frame,
        {OK: "criteria", ITERATE: "frame"},
    ),
    StepDef(
        "criteria",
        "Fix how answers are judged",
        [TEXTS["criteria"], NOTES_IN_REPLY],
        next={OK: "facts"},
    ),
    StepDef(
        "facts", "Collect the facts", [TEXTS["facts"], NOTES_IN_REPLY], next={OK: "candidates"}
    ),
    StepDef(
        "candidates",
        "Write different candidates",
        [TEXTS["candidates"], NOTES_IN_REPLY],
        candidates,
        {OK: "angles", Outcome.SKIP: "draft"},
    ),
    StepDef(
        "angles",
        "Choose the angles",
        [TEXTS["angles"], NOTES_IN_REPLY],
        angles,
        {OK: "think", ITERATE: "angles"},
        edits=True,
    ),
    StepDef(
        "think",
        "Think from one angle",
        [TEXTS["think"]],
        Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, for_each="angles"),
        {OK: "reconcile"},
    ),
    StepDef(
        "reconcile",
        "Reconcile the answers",
        [TEXTS["reconcile"], NOTES_IN_REPLY],
        next={OK: "draft"},
    ),
    StepDef("draft", "Draft the answer", [TEXTS["draft"], NOTES_IN_REPLY], next={OK: "refine"}),
    StepDef(
        "refine",
        "Attack the draft",
        [TEXTS["refine"], NOTES_IN_REPLY, CONFIDENCE_SCALE],
        refine,
        {OK: "answer", ITERATE: "refine"},
    ),
    StepDef("answer", "Give the answer", [TEXTS["answer"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("deepthink", {BRIEF: f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
