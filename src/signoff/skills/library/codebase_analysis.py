"""Builds an understanding of a code base that others can rely on: measured, traced and checked."""

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
Understand an unfamiliar code base, with references for every statement. Use it before planning
work in it, or for onboarding. Do not use it to look up one function or to find defects
(code-review)."""

TEXTS = texts_beside(__file__)

NOTES = "notes.md"

WHOLE = "the whole code base"

Areas = Annotated[list[str] | None, Arg("names of the areas to read, separated by commas")]


def divide(
    ctx: StepContext, areas: Areas = None, iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Keeps the areas for the sub-agents; without any, one reads everything."""
    outcome, _ = repeat_until(bool(areas), ctx, iteration)
    return outcome, {"areas": areas or [WHOLE]}


def deepen(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the reading until every answer is well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "codebase-analysis",
    StepDef(
        "scope", "Write the questions", [TEXTS["scope"], NOTES_IN_REPLY], next={OK: "inventory"}
    ),
    StepDef(
        "inventory",
        "Measure the code base",
        [TEXTS["inventory"], NOTES_IN_REPLY],
        next={OK: "orient"},
    ),
    StepDef(
        "orient", "Check the stated design", [TEXTS["orient"], NOTES_IN_REPLY], next={OK: "divide"}
    ),
    StepDef(
        "divide",
        "Divide it into areas",
        [TEXTS["divide"], NOTES_IN_REPLY],
        divide,
        {OK: "explore", ITERATE: "divide"},
        edits=True,
    ),
    StepDef(
        "explore",
        "Read an area",
        [TEXTS["explore"]],
        Dispatch(AgentRole.EXPLORE, free_form=True, for_each="areas"),
        {OK: "trace"},
    ),
    StepDef("trace", "Trace real paths", [TEXTS["trace"], NOTES_IN_REPLY], next={OK: "deepen"}),
    StepDef(
        "deepen",
        "Answer the questions",
        [TEXTS["deepen"], NOTES_IN_REPLY, CONFIDENCE_SCALE],
        deepen,
        {OK: "verify", ITERATE: "deepen"},
    ),
    StepDef(
        "verify", "Try to refute the map", [TEXTS["verify"], NOTES_IN_REPLY], next={OK: "report"}
    ),
    StepDef("report", "Write the report", [TEXTS["report"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("codebase-analysis", {NOTES: f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
