"""Builds an understanding of a code base that others can rely on: measured, traced and checked."""

from __future__ import annotations

from typing import Annotated

from signoff.skills import AgentRole, Arg, Dispatch, Outcome, StepContext
from signoff.skills.parts import Iteration, Result, SkillTexts, repeat_until, until_confident

OK, ITERATE = Outcome.OK, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

WHOLE = "the whole code base"

Areas = Annotated[list[str] | None, Arg("names of the areas to read, separated by commas")]


def divide(ctx: StepContext, areas: Areas = None, iteration: Iteration = 1) -> Result:
    """Keeps the areas for the sub-agents; without any, one reads everything."""
    outcome, _ = repeat_until(bool(areas), ctx, iteration)
    return outcome, {"areas": areas or [WHOLE]}


EXPLORE = Dispatch(AgentRole.EXPLORE, free_form=True, for_each="areas")

WORKFLOW = TEXTS.workflow(
    TEXTS.step("scope", {OK: "inventory"}),
    TEXTS.step("inventory", {OK: "orient"}),
    TEXTS.step("orient", {OK: "divide"}),
    TEXTS.step("divide", {OK: "explore", ITERATE: "divide"}, divide, edits=True),
    TEXTS.step("explore", {OK: "trace"}, EXPLORE),
    TEXTS.step("trace", {OK: "deepen"}),
    TEXTS.step("deepen", {OK: "verify", ITERATE: "deepen"}, until_confident),
    TEXTS.step("verify", {OK: "report"}),
    TEXTS.step("report", {OK: None}),
)
