"""Plans a change before it is made: read code, decide, divide into milestones, have it reviewed.

The plan is in `plan.json` of the state directory, what it rests on in `context.json`. Reviewers
check the plan three times: its design, its code-level detail and its documentation.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    FIX_FINDINGS,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)
from signoff.skills.qr.gate import QRGate
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Plan a change so that agents who were not there can carry it out. Use it for work of more than a
day, or across many files. Do not use it for small changes, or while it is open what to build
(deepthink)."""

TEXTS = texts_beside(__file__)

CONTEXT, PLAN = "context.json", "plan.json"

FIELDS = (
    "task acceptance constraints out_of_scope facts conventions tests assumptions open_questions"
)
EMPTY_CONTEXT: dict[str, list[str]] = {field: [] for field in FIELDS.split()}

EMPTY_PLAN: dict[str, Any] = {
    "overview": "",
    "planning_context": {
        "decisions": [],
        "rejected_alternatives": [],
        "constraints": [],
        "risks": [],
    },
    "invisible_knowledge": {"system": "", "invariants": [], "tradeoffs": []},
    "milestones": [],
    "waves": [],
}


def explore(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the reading until the facts are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
PlanStep = partial(StepDef, edits=True)  # plan and context are files


def review(step: str, title: str, text: str, phase: str, following: str) -> tuple[StepDef, StepDef]:
    """Returns a gate, and the step that fixes what it finds."""
    gate, fix = QRGate(phase=phase), f"fix_{step}"
    instructions = FIX_FINDINGS.format(phase=phase, what="the plan", notes=PLAN)
    return (
        PlanStep(f"review_{step}", f"Review {title}", [text], gate, {OK: following, FAIL: fix}),
        PlanStep(fix, f"Fix {title}", [instructions], next={OK: f"review_{step}"}),
    )


WORKFLOW = Workflow(
    "planner",
    PlanStep("start", "Write down the task", [TEXTS["start"]], next={OK: "explore"}),
    PlanStep(
        "explore",
        "Read the code",
        [TEXTS["explore"], CONFIDENCE_SCALE],
        explore,
        {OK: "decide", ITERATE: "explore"},
    ),
    PlanStep("decide", "Settle open questions", [TEXTS["decide"]], next={OK: "approach"}),
    PlanStep("approach", "Compare approaches", [TEXTS["approach"]], next={OK: "milestones"}),
    PlanStep(
        "milestones", "Write the milestones", [TEXTS["milestones"]], next={OK: "review_design"}
    ),
    *review("design", "the design of the plan", TEXTS["review-design"], "plan-design", "detail"),
    PlanStep("detail", "Add code-level detail", [TEXTS["detail"]], next={OK: "review_code"}),
    *review("code", "the detail of the plan", TEXTS["review-code"], "plan-code", "documents"),
    PlanStep("documents", "Plan the documentation", [TEXTS["documents"]], next={OK: "review_docs"}),
    *review(
        "docs", "the documentation in the plan", TEXTS["review-documents"], "plan-docs", "hand_over"
    ),
    StepDef("hand_over", "Hand the plan over", [TEXTS["hand-over"]], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory(
        "planner",
        {
            CONTEXT: json.dumps(EMPTY_CONTEXT, indent=2) + "\n",
            PLAN: json.dumps(EMPTY_PLAN, indent=2) + "\n",
        },
    ),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
