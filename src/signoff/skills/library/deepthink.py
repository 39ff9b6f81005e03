"""Works out an answer to an open question: criteria, facts, candidates, a draft, attacks on it."""

from __future__ import annotations

from typing import Annotated

from signoff.skills import AgentRole, Arg, Dispatch, Outcome, StepContext
from signoff.skills.parts import Iteration, Result, SkillTexts, repeat_until, until_confident

OK, SKIP, ITERATE = Outcome.OK, Outcome.SKIP, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

QUICK, FULL = "quick", "full"

Mode = Annotated[str | None, Arg("alone, or with sub-agents", choices=(QUICK, FULL))]
Angles = Annotated[list[str] | None, Arg("names of the angles, separated by commas")]
DEFAULT_ANGLE = "the one who bears the consequences"


def frame(ctx: StepContext, mode: Mode = None, iteration: Iteration = 1) -> Result:
    """Asks for the mode until there is one."""
    outcome, _ = repeat_until(mode is not None, ctx, iteration)
    return outcome, {"mode": mode or FULL}


def candidates(ctx: StepContext, mode: Mode = None) -> Result:
    """Leaves out the sub-agents in mode quick."""
    # A run keeps the mode that its worker chose; by hand, each command carries it.
    chosen = mode or ctx.step_state.get("mode")
    return (SKIP if chosen == QUICK else OK), {}


def angles(ctx: StepContext, angles: Angles = None, iteration: Iteration = 1) -> Result:
    """Keeps the angles for the sub-agents."""
    outcome, _ = repeat_until(bool(angles), ctx, iteration)
    return outcome, {"angles": angles or [DEFAULT_ANGLE]}


THINK = Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, for_each="angles")

WORKFLOW = TEXTS.workflow(
    TEXTS.step("frame", {OK: "criteria", ITERATE: "frame"}, frame),
    TEXTS.step("criteria", {OK: "facts"}),
    TEXTS.step("facts", {OK: "candidates"}),
    TEXTS.step("candidates", {OK: "angles", SKIP: "draft"}, candidates),
    TEXTS.step("angles", {OK: "think", ITERATE: "angles"}, angles, edits=True),
    TEXTS.step("think", {OK: "reconcile"}, THINK),
    TEXTS.step("reconcile", {OK: "draft"}),
    TEXTS.step("draft", {OK: "refine"}),
    TEXTS.step("refine", {OK: "answer", ITERATE: "refine"}, until_confident),
    TEXTS.step("answer", {OK: None}),
)
