"""Reviews an incident after it is over: what happened, what made it possible, what to change."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    NOTES_IN_REPLY,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Review an incident: what happened, what made it possible, what to change. Use it after an outage
or a loss of data. Do not use it while it lasts, or for a bug that harmed no one
(problem-analysis)."""

TEXTS = texts_beside(__file__)
FILES = {
    "evidence.md": f"{TEXTS['evidence.md']}\n",
    "review.md": "",
}
"""The files of the state directory, and how each begins."""


def conditions(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the search until the conditions are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "incident-review",
    StepDef(
        "incident",
        "Describe the incident",
        [TEXTS["incident"], NOTES_IN_REPLY],
        next={OK: "timeline"},
    ),
    StepDef(
        "timeline",
        "Establish the timeline",
        [TEXTS["timeline"], NOTES_IN_REPLY],
        next={OK: "conditions"},
    ),
    StepDef(
        "conditions",
        "Find what made it possible",
        [TEXTS["conditions"], CONFIDENCE_SCALE, NOTES_IN_REPLY],
        conditions,
        {OK: "challenge", Outcome.ITERATE: "conditions"},
    ),
    StepDef(
        "challenge",
        "Try to break the explanation",
        [TEXTS["challenge"], NOTES_IN_REPLY],
        next={OK: "response"},
    ),
    StepDef(
        "response",
        "Review detection and recovery",
        [TEXTS["response"], NOTES_IN_REPLY],
        next={OK: "actions"},
    ),
    StepDef(
        "actions", "Derive what to change", [TEXTS["actions"], NOTES_IN_REPLY], next={OK: "write"}
    ),
    StepDef(
        "write",
        "Write the review",
        [TEXTS["write"], NOTES_IN_REPLY],
        next={OK: "examine"},
        edits=True,
    ),
    StepDef(
        "examine",
        "Have the review examined",
        [TEXTS["examine"]],
        Dispatch(AgentRole.QUALITY_REVIEWER),
        {OK: "handover", Outcome.FAIL: "revise"},
    ),
    StepDef(
        "revise",
        "Correct the review",
        [TEXTS["revise"], NOTES_IN_REPLY],
        next={OK: Edge("examine", bound=3, on_limit="ask")},
        edits=True,
    ),
    StepDef("handover", "Hand it over", [TEXTS["handover"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("incident-review", FILES),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
