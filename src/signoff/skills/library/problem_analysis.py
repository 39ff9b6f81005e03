"""Finds the cause of a problem: from a symptom to a mechanism that has been switched on and off."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until,
    repeat_until_confident,
)
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Find the cause of wrong behavior: a bug, a flaky test, a slow request. Use it when the cause is
unknown. Do not use it to fix a known cause, or for an incident that is over (incident-review)."""

TEXTS = texts_beside(__file__)

REPRODUCTIONS = ("not_tried", "not_reproduced", "sometimes", "always")


def reproduce(
    ctx: StepContext,
    reproduction: Annotated[
        str, Arg("whether the symptom appears on demand", choices=REPRODUCTIONS)
    ] = "not_tried",
    iteration: Iteration = 1,
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the attempts until the symptom appears on demand."""
    return repeat_until(reproduction == "always", ctx, iteration)


def investigate(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the tests until one hypothesis is well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "problem-analysis",
    StepDef("symptom", "Describe the symptom", [TEXTS["symptom"]], next={OK: "reproduce"}),
    StepDef(
        "reproduce",
        "Reproduce it",
        [TEXTS["reproduce"]],
        reproduce,
        {OK: "boundary", ITERATE: "reproduce"},
    ),
    StepDef(
        "boundary",
        "Find where it occurs and where not",
        [TEXTS["boundary"]],
        next={OK: "hypotheses"},
    ),
    StepDef(
        "hypotheses", "Write competing hypotheses", [TEXTS["hypotheses"]], next={OK: "investigate"}
    ),
    StepDef(
        "investigate",
        "Refute the hypotheses",
        [TEXTS["investigate"], CONFIDENCE_SCALE],
        investigate,
        {OK: "cause", ITERATE: "investigate"},
    ),
    StepDef("cause", "Prove the cause", [TEXTS["cause"]], next={OK: "siblings"}),
    StepDef("siblings", "Look for the same flaw elsewhere", [TEXTS["siblings"]], next={OK: "fix"}),
    StepDef("fix", "Compare the fixes", [TEXTS["fix"]], next={OK: "report"}),
    StepDef("report", "Write the report", [TEXTS["report"]], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK],
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
