"""Examines a decision before it is carried out: what it rests on, and what speaks against it."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Examine a decision and its reasons before it is carried out. Use it when undoing it would be
expensive. Do not use it to choose among open options (deepthink) or to find a cause
(problem-analysis)."""

TEXTS = texts_beside(__file__)


def answer(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the search for answers until they are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "decision-critic",
    StepDef("structure", "Take the decision apart", [TEXTS["structure"]], next={OK: "load"}),
    StepDef("load", "Find the statements that carry it", [TEXTS["load"]], next={OK: "questions"}),
    StepDef(
        "questions",
        "Write the questions before the answers",
        [TEXTS["questions"]],
        next={OK: "answer"},
    ),
    StepDef(
        "answer",
        "Answer the questions from evidence",
        [TEXTS["answer"], CONFIDENCE_SCALE],
        answer,
        {OK: "alternatives", Outcome.ITERATE: "answer"},
    ),
    StepDef(
        "alternatives",
        "Build the strongest alternatives",
        [TEXTS["alternatives"]],
        next={OK: "failure"},
    ),
    StepDef("failure", "Assume that it failed", [TEXTS["failure"]], next={OK: "recheck"}),
    StepDef("recheck", "Check your own findings", [TEXTS["recheck"]], next={OK: "verdict"}),
    StepDef("verdict", "Give the verdict", [TEXTS["verdict"]], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK],
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
