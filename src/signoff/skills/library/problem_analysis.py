"""Finds the cause of a problem: from a symptom to a mechanism that has been switched on and off."""

from __future__ import annotations

from typing import Annotated

from signoff.skills import Arg, Outcome, StepContext
from signoff.skills.parts import Iteration, Result, SkillTexts, repeat_until, until_confident

OK, ITERATE = Outcome.OK, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

REPRODUCTIONS = ("not_tried", "not_reproduced", "sometimes", "always")
Reproduction = Annotated[str, Arg("whether the symptom appears on demand", choices=REPRODUCTIONS)]


def reproduce(
    ctx: StepContext, reproduction: Reproduction = "not_tried", iteration: Iteration = 1
) -> Result:
    """Repeats the attempts until the symptom appears on demand."""
    return repeat_until(reproduction == "always", ctx, iteration)


WORKFLOW = TEXTS.workflow(
    TEXTS.step("symptom", {OK: "reproduce"}),
    TEXTS.step("reproduce", {OK: "boundary", ITERATE: "reproduce"}, reproduce),
    TEXTS.step("boundary", {OK: "hypotheses"}),
    TEXTS.step("hypotheses", {OK: "investigate"}),
    TEXTS.step("investigate", {OK: "cause", ITERATE: "investigate"}, until_confident),
    TEXTS.step("cause", {OK: "siblings"}),
    TEXTS.step("siblings", {OK: "fix"}),
    TEXTS.step("fix", {OK: "report"}),
    TEXTS.step("report", {OK: None}),
)
